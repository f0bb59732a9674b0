"""What is measured in one run: sizes of flows to demonstrations, and what single ones are worth."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.language import singles
from experiments.language.lm_flow.config import Config
from experiments.language.sentences import Sets
from experiments.language.written import Writer
from lsa_lab import lm
from lsa_lab.lm import weights

_random = jax.jit(weights.init, static_argnames=("config", "dtype"))


class Run(NamedTuple):
    """One run's sentences, and the model that reads them."""

    model: lm.Decoder
    writer: Writer
    sets: Sets
    config: Config
    number: int


def alone(run: Run) -> dict[str, np.ndarray]:  # log flow [n, query, layer, read], tokens [n]
    """Each demonstration before the queries by itself."""
    demonstrations = run.sets.demonstrations
    _, spans = run.writer.demonstrations(demonstrations)
    each = [demonstrations.take([i]) for i in range(len(demonstrations))]
    return {"flow": _flows(run, each)[:, 0], "length": np.diff(spans)[:, 0]}


def shared(run: Run) -> dict[str, np.ndarray]:  # log flow [rotation, n, query, layer, read]
    """All demonstrations in one prompt, for every rotation of them."""
    at = places(run.config.shots)
    prompts = [run.sets.demonstrations.take(np.argsort(place)) for place in at]
    flows = _flows(run, prompts)
    return {"flow": np.stack([own[place] for own, place in zip(flows, at, strict=True)])}


def untrained(run: Run) -> dict[str, np.ndarray]:  # log flow [rotation, n, query, layer, read]
    """The same of random weights in the place of the model's."""
    key = jax.random.fold_in(jax.random.key(run.config.seed), run.number)
    params = _random(key, config=run.model.config, dtype=jnp.float32)
    return shared(run._replace(model=run.model._replace(params=params)))


def single(run: Run) -> dict[str, np.ndarray]:  # worth and same_label [m, B], novelty [m], ...
    """What each of the pool is worth before every fresh sentence."""
    _, fresh, pool = run.sets
    of = singles.measure(run.model, run.writer, pool, fresh, run.config.middle)
    return {
        "worth": singles.worth(of, fresh),
        "zero_shot": of.before[np.arange(len(fresh)), fresh.labels],
        "novelty": -of.own[np.arange(len(pool)), pool.labels],
        "same_label": pool.labels[:, None] == fresh.labels,
        "relevance": of.relevance,
    }


def places(shots: int) -> np.ndarray:  # [rotation, n]
    """Where each demonstration stands in each rotation."""
    return (np.arange(shots)[:, None] + np.arange(shots)) % shots


def _flows(run: Run, prompts: list) -> np.ndarray:  # [m, n, query, layer, read]
    queries = run.sets.fresh.take(range(run.config.queries))
    return singles.log_flows(run.model, run.writer, prompts, queries, run.config, run.number)
