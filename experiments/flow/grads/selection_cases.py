"""What `grads` selects from: queries, each with a pool and with what the weights know of it."""

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

SETTINGS = ("prior", "duplicates", "table")


@flax.struct.dataclass
class Case:
    """A query, the pool that may help it, and what the weights know."""

    pool: Array  # [m, e]
    x_query: Array  # [d]
    y_query: Array  # []
    prior: Array  # [d]

    @property
    def x(self) -> Array:  # [m, d]
        return self.pool[:, :-1]

    @property
    def token(self) -> Array:  # [e]
        return jnp.pad(self.x_query, (0, 1))


def prior_cases(rng, config, duplicates: bool) -> Case:  # leaves [Q, ...]
    """Every query has a task of its own, of which w_0 is a part, and a pool of sparse covariates.

    Duplicates have the support of their original and nearly its values.
    """
    count, m, d = config.queries, max(config.pools), config.d
    x, original = rng.standard_normal((2, count, m, d))
    there = rng.random((count, m, d)) < config.density
    if duplicates:
        source = np.arange(count)[:, None], rng.integers(0, config.distinct, (count, m)) % m
        x = config.closeness * original[source] + np.sqrt(1 - config.closeness**2) * x
        there = there[source]
    x = x * there / np.sqrt(config.density * d)
    asked = rng.random((count, d)) < config.query_density
    x_query = rng.standard_normal((count, d)) * asked / np.sqrt(config.query_density * d)
    w = rng.standard_normal((count, d))
    known = np.argsort(rng.random((count, d))) < config.known
    pool = np.concatenate([x, np.einsum("qmd,qd->qm", x, w)[..., None]], axis=2)
    return Case(pool, x_query, (w * x_query).sum(1), np.where(known, w, 0))


def table_cases(rng, config, table) -> Case:  # leaves [Q, ...]
    """w_0 is least squares on one half of the rows in one half of the covariates, both at random.

    Every query and its pool are different rows of the other half.
    """
    x, y = np.asarray(table.x), np.asarray(table.y)
    first, second = np.array_split(rng.permutation(len(x)), 2)
    known = rng.permutation(x.shape[1])[: x.shape[1] // 2]
    prior = np.zeros((config.queries, x.shape[1]))
    prior[:, known] = np.linalg.lstsq(x[np.ix_(first, known)], y[first], rcond=None)[0]
    order = np.argsort(rng.random((config.queries, len(second))))[:, : max(config.pools) + 1]
    rows = np.concatenate([x, y[:, None]], axis=1)[second[order]]
    return Case(rows[:, 1:], rows[:, 0, :-1], rows[:, 0, -1], prior)


def draw(config, setting, table):  # -> Case [R, Q]
    """Every run is a seed of its own; those that choose the strongest rival come last.

    Drawn cases get the table's width: a coordinate that is 0 everywhere changes nothing, and one
    program serves all.
    """
    runs, unused = [], ((0, 0), (table.x.shape[1] - config.d, 0))
    for run in range(config.runs + config.validation):
        rng = np.random.default_rng([config.seed, SETTINGS.index(setting), run])
        if setting == "table":
            runs.append(table_cases(rng, config, table))
            continue
        case = prior_cases(rng, config, setting == "duplicates")
        x_query, prior = np.pad(case.x_query, unused), np.pad(case.prior, unused)
        pool = np.pad(case.pool, ((0, 0), *unused))
        runs.append(case.replace(pool=pool, x_query=x_query, prior=prior))
    return jax.tree.map(lambda *leaves: np.stack(leaves), *runs)
