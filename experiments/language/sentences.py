"""The sentences of a text task, and what each run takes of them."""

from typing import NamedTuple

import numpy as np

from experiments.language.text_tasks import TextTask
from lsa_lab.lm import text
from lsa_lab.lm.text import Sentences, Template

# Of the invented texts: every word of theirs that the tiny tokenizer knows.
INVENTED_WORDS = ("dull", "bright", "slow", "warm", "film", "the", "a", "was", "end", "start")


class Sets(NamedTuple):
    """What one run takes of a text task: no sentence twice."""

    demonstrations: Sentences  # [n]
    fresh: Sentences  # [B], classes equally often
    others: Sentences  # as many as asked for besides: a pool, or sentences to fit on


def of_task(task: TextTask) -> Sentences:
    """All sentences of the task's classes, each cut to its first words."""
    whole = _invented() if task.source == "invented" else text.sentences(task.source)
    return whole.only(*task.classes).cut(task.most_words)


def template(task: TextTask) -> Template:
    """How the task's demonstrations are written."""
    return Template(tuple(task.words), task.form)


def sets(
    sentences: Sentences,
    task: TextTask,
    config,
    run: int,
    place: int,
    others: int = 0,
    *,
    shots: int | None = None,
    fresh: int | None = None,
) -> Sets:
    """The sentences of one run on the task at ``place`` of a config: the same ones every time.

    ``shots`` and ``fresh`` stand in the place of the config's.
    """
    first, second = np.random.SeedSequence([config.seed, place, run]).generate_state(2).tolist()
    shots = config.shots if shots is None else shots
    fresh = config.fresh if fresh is None else fresh
    if task.balanced:
        return Sets(*sentences.split(first, shots, fresh, others, balanced=True))
    demonstrations, rest = sentences.split(first, shots, len(sentences) - shots)
    return Sets(demonstrations, *rest.split(second, fresh, others, balanced=True))


def with_content_free(fresh: Sentences) -> Sentences:
    """The sentences, and after them the texts that say nothing."""
    labels = np.concatenate([fresh.labels, np.zeros(len(text.CONTENT_FREE), int)])
    return Sentences(fresh.name, fresh.texts + text.CONTENT_FREE, labels, fresh.classes)


def alternating(demonstrations: Sentences) -> Sentences:
    """The same in an order in which each pair has both of two classes, its own order kept: the
    first 2k of them have the classes equally often, if all have."""
    places = [np.flatnonzero(np.asarray(demonstrations.labels) == c) for c in (0, 1)]
    pairs = zip(*places, strict=True)
    return demonstrations.take([row for pair in pairs for row in sorted(pair)])


def _invented(size: int = 128, length: int = 6) -> Sentences:
    """Sentences of one length, so that few programs are compiled."""
    rng, labels = np.random.default_rng(0), np.arange(size) % 2
    texts = tuple(" ".join(rng.choice(INVENTED_WORDS, length)) for _ in range(size))
    return Sentences("invented sentences", texts, labels, ("negative", "positive"))
