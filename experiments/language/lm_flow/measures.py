"""What is measured in one run: sizes of flows to demonstrations, and what single ones are worth."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.language import readouts, sentences
from experiments.language.lm_flow.config import Config
from experiments.language.sentences import Sets
from experiments.language.text_tasks import TextTask
from experiments.language.written import Writer, short, writer
from lsa_lab import lm
from lsa_lab.lm import flow, weights
from lsa_lab.lm.readings import log_probabilities
from lsa_lab.lm.text import Sentences

_random = jax.jit(weights.init, static_argnames=("config", "dtype"))


class Run(NamedTuple):
    """One run's sentences, and the model that reads them."""

    model: lm.Decoder
    writer: Writer
    sets: Sets
    config: Config
    number: int


def texts(model: lm.Decoder, config: Config, task: TextTask) -> tuple[Writer, Sentences]:
    """The short sentences of a task, and how they are written."""
    whole = sentences.of_task(task)
    kept = short(whole, model.tokenizer, config.fewest_tokens, config.most_tokens)
    return writer(model.tokenizer, sentences.template(task), kept), kept


def alone(run: Run) -> dict[str, np.ndarray]:  # log flow [n, query, layer, read], tokens [n]
    """Each demonstration before the queries by itself."""
    each = [run.sets.demonstrations.take([i]) for i in range(run.config.shots)]
    prefixes, spans = zip(*(run.writer.demonstrations(one) for one in each), strict=True)
    squares = _flows(run, np.stack(prefixes))
    sizes = [_log_sizes(own, span)[0] for own, span in zip(squares, spans, strict=True)]
    return {"flow": np.stack(sizes), "length": np.diff(np.concatenate(spans))[:, 0]}


def shared(run: Run) -> dict[str, np.ndarray]:  # log flow [rotation, n, query, layer, read]
    """All demonstrations in one prompt, for every rotation of them."""
    prefixes, spans = [], []
    for place in places(run.config.shots):
        ids, own = run.writer.demonstrations(run.sets.demonstrations.take(np.argsort(place)))
        prefixes.append(ids)
        spans.append(own[place])
    squares = _flows(run, np.stack(prefixes))
    sizes = [_log_sizes(own, each) for own, each in zip(squares, spans, strict=True)]
    return {"flow": np.stack(sizes)}


def untrained(run: Run) -> dict[str, np.ndarray]:  # log flow [rotation, n, query, layer, read]
    """The same of random weights in the place of the model's."""
    key = jax.random.fold_in(jax.random.key(run.config.seed), run.number)
    params = _random(key, config=run.model.config, dtype=jnp.float32)
    return shared(run._replace(model=run.model._replace(params=params)))


def single(run: Run) -> dict[str, np.ndarray]:  # gain and same_label [m, B], novelty [m], ...
    """What each of the pool adds to the log-probability of every fresh sentence's label."""
    writer, (_, fresh, pool) = run.writer, run.sets
    questions, words, m = writer.questions(fresh), writer.label_ids, len(pool)
    each = [writer.demonstrations(pool.take([i]))[0] for i in range(m)]
    after = log_probabilities(readouts.scores(run.model, np.stack(each), *questions, words))
    nothing = writer.demonstrations(pool.take([]))[0]
    own, last = (
        np.concatenate(pair) for pair in zip(writer.questions(pool), questions, strict=True)
    )
    before = log_probabilities(readouts.scores(run.model, nothing[None], own, last, words))[0]
    zero_shot = before[np.arange(m + len(fresh)), np.concatenate([pool.labels, fresh.labels])]
    rows = readouts.rows(run.model, nothing, own, last, run.config.middle)
    relevance = [readouts.cosines(of[:m], of[m:]) for of in (rows.embedded, rows.middle)]
    return {
        "gain": after[:, np.arange(len(fresh)), fresh.labels] - zero_shot[m:],
        "zero_shot": zero_shot[m:],
        "novelty": -zero_shot[:m],
        "same_label": pool.labels[:, None] == fresh.labels,
        "relevance": np.stack(relevance),
    }


def places(shots: int) -> np.ndarray:  # [rotation, n]
    """Where each demonstration stands in each rotation."""
    return (np.arange(shots)[:, None] + np.arange(shots)) % shots


def _flows(run: Run, prefixes: np.ndarray) -> np.ndarray:  # [m, query, layer, K, P]
    """Squared flows of the margin, and of the row along K - 1 directions."""
    queries = run.sets.fresh.take(range(run.config.queries))
    model, questions = run.model, run.writer.questions(queries)
    rng = np.random.default_rng([run.config.seed, run.number])
    directions = rng.standard_normal((run.config.directions, model.config.width))
    read = flow.several(
        flow.margin(model.params, model.config, *run.writer.label_ids[:2]),
        flow.along(jnp.asarray(directions, model.params.embedding.dtype)),
    )
    return readouts.flows(model, prefixes, *questions, read, tuple(run.config.layers))


def _log_sizes(squares: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """log |flow| [n, query, layer, read] of spans [n, 2]; a row's is the mean over directions."""
    sums = np.stack([squares[..., first:stop].sum(-1) for first, stop in spans])
    return np.log(np.stack([sums[..., 0], sums[..., 1:].mean(-1)], axis=-1)) / 2
