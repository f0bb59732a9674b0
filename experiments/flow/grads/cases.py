"""Queries, each with a pool and with what the weights know of it; and means over them."""

import dataclasses
import itertools
from functools import partial

import flax.struct
import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh, PartitionSpec

from experiments.flow.grads.config import SWEEP, TASKS, Config
from lsa_lab.selection import scores

_CHUNK = 100  # queries in memory at a time


class Case(flax.struct.PyTreeNode):
    """A query, the pool that may help it, and what the weights know."""

    pool: Array  # [m, e]
    x_query: Array  # [d]
    y_query: Array  # []
    prior: Array  # [d]

    @property
    def x(self) -> Array:  # [m, d]
        return self.pool[:, :-1]


def prior_cases(rng, config, duplicates: bool) -> Case:  # leaves [Q, ...]
    """Every query has a task of its own, of which w_0 is a part, and a pool of sparse covariates.

    Duplicates have the support of their original and nearly its values.
    """
    count, m, d = config.queries, config.rows, config.d
    x, original = rng.standard_normal((2, count, m, d))
    support = rng.random((count, m, d)) < config.density
    if duplicates:
        source = np.arange(count)[:, None], rng.integers(0, config.distinct, (count, m)) % m
        x = config.closeness * original[source] + np.sqrt(1 - config.closeness**2) * x
        support = support[source]
    x = x * support / np.sqrt(config.density * d)
    support = rng.random((count, d)) < config.query_density
    x_query = rng.standard_normal((count, d)) * support / np.sqrt(config.query_density * d)
    w = rng.standard_normal((count, d))
    in_weights = np.argsort(rng.random((count, d))) < config.known
    y = np.einsum("qmd,qd->qm", x, w) + config.noise * rng.standard_normal((count, m))
    pool = np.concatenate([x, y[..., None]], axis=2)
    return Case(pool, x_query, (w * x_query).sum(1), np.where(in_weights, w, 0))


def table_cases(rng, config, table) -> Case:  # leaves [Q, ...]
    """w_0 is least squares on one half of the rows in one half of the covariates, both at random.

    Every query and its pool are different rows of the other half.
    """
    x, y = np.asarray(table.x), np.asarray(table.y)
    first, second = np.array_split(rng.permutation(len(x)), 2)
    half = rng.permutation(x.shape[1])[: x.shape[1] // 2]
    prior = np.zeros((config.queries, x.shape[1]))
    prior[:, half] = np.linalg.lstsq(x[np.ix_(first, half)], y[first], rcond=None)[0]
    order = np.argsort(rng.random((config.queries, len(second))))[:, : config.rows + 1]
    rows = np.concatenate([x, y[:, None]], axis=1)[second[order]]
    return Case(rows[:, 1:], rows[:, 0, :-1], rows[:, 0, -1], prior)


def draw(config, task, table):  # -> Case [R, Q]
    """Every run is a seed of its own; those that choose the strongest rival come last.

    Drawn cases get the table's width, by zeros that change nothing: one program serves all."""
    runs, unused = [], ((0, 0), (table.x.shape[1] - config.d, 0))
    for run in range(config.runs + config.validation):
        rng = np.random.default_rng([config.seed, TASKS.index(task), run])
        if task == "table":
            runs.append(table_cases(rng, config, table))
            continue
        case = prior_cases(rng, config, task == "duplicates")
        x_query, prior = np.pad(case.x_query, unused), np.pad(case.prior, unused)
        pool = np.pad(case.pool, ((0, 0), *unused))
        runs.append(case.replace(pool=pool, x_query=x_query, prior=prior))
    return jax.tree.map(lambda *leaves: np.stack(leaves), *runs)


def cells(config: Config) -> list[Config]:
    """One configuration for each place of the grid, the noise changing fastest."""
    grid = itertools.product(config.densities, config.knowns, config.noises)
    return [dataclasses.replace(config, **dict(zip(SWEEP, place, strict=True))) for place in grid]


def measure_all(measure, config, cases, keys):  # -> {name: means over the queries [R, ...]}
    """``measure`` of every query, whose pool is cut to its first demonstrations.

    A score that is not finite is an error."""
    cut = cases.replace(pool=cases.pool[:, :, : config.pool])
    means = jax.tree.map(np.asarray, _map_runs(measure, config, cut, keys))
    refused = means.pop("refused")
    if refused.any():
        raise ValueError(
            f"scores are NaN or infinite for {refused.mean():.1%} of the queries: what has no rank "
            "is not selected"
        )
    return means


@partial(jax.jit, static_argnums=(0, 1))
def _map_runs(measure, config, cases, keys):  # [R, Q] -> {name: means over the queries [R, ...]}
    """The devices share the runs."""

    def run(each):
        values = scores.score_queries(lambda query: measure(*query, config), each, _CHUNK)
        return jax.tree.map(lambda of_queries: of_queries.mean(0), values)

    devices = jax.local_devices()
    count = max(k for k in range(1, len(devices) + 1) if len(keys) % k == 0)
    return jax.shard_map(
        partial(jax.lax.map, run),
        mesh=Mesh(np.array(devices[:count]), ("runs",)),
        in_specs=PartitionSpec("runs"),
        out_specs=PartitionSpec("runs"),
        check_vma=False,
    )((cases, keys))
