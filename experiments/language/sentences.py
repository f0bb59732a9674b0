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
    sentences: Sentences, task: TextTask, config, run: int, place: int, others: int = 0
) -> Sets:
    """The sentences of one run on the task at ``place`` of a config: the same ones every time."""
    first, second = np.random.SeedSequence([config.seed, place, run]).generate_state(2).tolist()
    sizes = (config.shots, config.fresh, others)
    if task.balanced:
        return Sets(*sentences.split(first, *sizes, balanced=True))
    demonstrations, rest = sentences.split(first, config.shots, len(sentences) - config.shots)
    return Sets(demonstrations, *rest.split(second, *sizes[1:], balanced=True))


def _invented(size: int = 128) -> Sentences:
    rng = np.random.default_rng(0)
    labels = np.arange(size) % 2
    lengths = rng.integers(3, 9, size)
    texts = tuple(" ".join(rng.choice(INVENTED_WORDS, length)) for length in lengths)
    return Sentences("invented sentences", texts, labels, ("negative", "positive"))
