"""Single demonstrations before queries: the flow from each, what it adds, how similar it is."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from experiments.language import readouts, sentences
from experiments.language.text_tasks import TextTask
from experiments.language.written import Writer, short, writer
from lsa_lab import lm
from lsa_lab.lm import flow
from lsa_lab.lm.readings import log_probabilities
from lsa_lab.lm.text import Sentences


class Singles(NamedTuple):
    """What m demonstrations do, each alone before B queries; p is among the label words."""

    before: np.ndarray  # [B, C]  log p without a demonstration
    after: np.ndarray  # [m, B, C]  log p after it
    own: np.ndarray  # [m, C]  log p of its own label, as a query
    relevance: np.ndarray  # [2, m, B]  cosines: of mean embeddings, of mean rows of a layer


def texts(model: lm.Decoder, config, task: TextTask) -> tuple[Writer, Sentences]:
    """The short sentences of a task, and how they are written."""
    whole = sentences.of_task(task)
    kept = short(whole, model.tokenizer, config.fewest_tokens, config.most_tokens)
    return writer(model.tokenizer, sentences.template(task), kept), kept


def measure(
    model: lm.Decoder, writer: Writer, pool: Sentences, queries: Sentences, layer: int
) -> Singles:
    """``layer``: the rows after it say how similar a demonstration's text is to a query's."""
    questions, words, m = writer.questions(queries), writer.label_ids, len(pool)
    prefixes = np.stack([writer.demonstrations(pool.take([i]))[0] for i in range(m)])
    after = log_probabilities(readouts.scores(model, prefixes, *questions, words))
    nothing = writer.demonstrations(pool.take([]))[0]
    pairs = zip(writer.questions(pool), questions, strict=True)
    ids, last = (np.concatenate(pair) for pair in pairs)
    alone = readouts.alone(model, nothing, ids, last, words, layer)
    before = log_probabilities(alone.scores)
    relevance = [readouts.cosines(rows[:m], rows[m:]) for rows in (alone.embedded, alone.rows)]
    return Singles(before[m:], after, before[:m], np.stack(relevance))


def worth(singles: Singles, queries: Sentences) -> np.ndarray:  # [m, B]
    """What each adds to the log-probability of a query's label."""
    right = np.arange(len(queries)), queries.labels
    return singles.after[:, *right] - singles.before[*right]


def log_flows(
    model: lm.Decoder,
    writer: Writer,
    prompts: list[Sentences],  # m of them, each of n demonstrations
    queries: Sentences,
    config,
    run: int,
) -> np.ndarray:  # [m, n, B, L, 2]
    """log |flow| from each demonstration of a prompt to a query, after ``config.layers``.

    It is the flow of the margin of the first two label words, through the logit lens, and of the
    query's row, the root mean square over ``config.directions`` random directions.
    """
    rng = np.random.default_rng([config.seed, run])
    directions = rng.standard_normal((config.directions, model.config.width))
    read = flow.several(
        flow.margin(model.params, model.config, *writer.label_ids[:2]),
        flow.along(jnp.asarray(directions, model.params.embedding.dtype)),
    )
    written, spans = zip(*(writer.demonstrations(prompt) for prompt in prompts), strict=True)
    questions, layers = writer.questions(queries), tuple(config.layers)
    squares = readouts.flows(model, np.stack(written), *questions, read, layers)
    return np.stack([_log_sizes(own, each) for own, each in zip(squares, spans, strict=True)])


def _log_sizes(squares: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Logarithms [n, B, L, 2] of flows from spans [n, 2], of squared flows [B, L, K, P]."""
    sums = np.stack([squares[..., first:stop].sum(-1) for first, stop in spans])
    return np.log(np.stack([sums[..., 0], sums[..., 1:].mean(-1)], axis=-1)) / 2
