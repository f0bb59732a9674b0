"""Pools of demonstrations to select from: clusters, copies, heavy tails, wrong labels, tasks."""

from collections.abc import Sequence
from typing import Literal

import chex
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from lsa_lab import random
from lsa_lab.arguments import (
    Real,
    check_at_least,
    check_choice,
    check_indices,
    check_range,
    check_symmetric,
    is_readable,
)
from lsa_lab.prompts import Prompt, to_native_order


class Population(flax.struct.PyTreeNode):
    """The clusters and the tasks from which a pool and its queries are drawn."""

    centres: Array  # [K, d]
    weights: Array  # [W, d]


class Pool(flax.struct.PyTreeNode):
    """m demonstrations and their origin; x and y suffice for a pool from other data."""

    x: Array  # [m, d]
    y: Array  # [m]
    clean: Array | None = None  # [m]  the label before noise and flips
    cluster: Array | None = None  # [m]
    weights: Array | None = None  # [m]  the index of the population's weights in the label
    source: Array | None = None  # [m]  the index of the copied demonstration, or of itself
    population: Population | None = None


class PoolTask(flax.struct.PyTreeNode):
    """x_i = μ_c + Σ_c^{1/2} z_i in cluster c, and a label; every pool draws its own μ and w.

    Args:
        shares: of the clusters, exact up to rounding, such as (0.9, 0.1).
        separation: |μ_c|; the direction is random.
        covariances: Σ [K, d, d], None for the identity.
        tail: ν > 2; z is a multivariate Student t of covariance I in place of a Gaussian.
        num_weights: the number of w ~ N(0, I), one at random for each demonstration, or "cluster"
            for one in each cluster.
        labels: w·x + ε ("linear"), its sign ("sign"), or the cluster, 2c/(K-1) - 1 + ε ("cluster").
        noise_std: of ε.
        flips: the probability with which a label then changes its sign.
        copies: the share of the pool that copies others, drawn uniformly.
        closeness: the correlation of a copy's z and ε with its source's; 1 for exact copies.
    """

    m: int = flax.struct.field(pytree_node=False)
    d: int = flax.struct.field(pytree_node=False)
    shares: tuple[float, ...] = flax.struct.field(default=(1.0,), pytree_node=False)
    separation: Real = 0.0
    covariances: Array | None = None  # [K, d, d]
    tail: Real | None = None
    num_weights: int | Literal["cluster"] = flax.struct.field(default=1, pytree_node=False)
    labels: Literal["linear", "sign", "cluster"] = flax.struct.field(
        default="linear", pytree_node=False
    )
    noise_std: Real = 0.0
    flips: Real = 0.0
    copies: float = flax.struct.field(default=0.0, pytree_node=False)
    closeness: Real = 1.0
    dtype: DTypeLike | None = flax.struct.field(default=None, pytree_node=False)

    def __post_init__(self):
        _check(self)


def sample(key: Array, task: PoolTask) -> Pool:
    """Draw one pool, in random order."""
    key_population, key_rows, key_copies, key_order = jax.random.split(key, 4)
    num_copies = min(round(task.copies * task.m), task.m - 1)
    originals = task.m - num_copies
    source = jnp.arange(task.m)
    copied = jax.random.randint(key_copies, (num_copies,), 0, originals)
    source = source.at[originals:].set(copied)
    cluster = jnp.asarray(np.repeat(np.arange(len(task.shares)), counts(task.shares, originals)))
    population = sample_population(key_population, task)
    pool = _draw(key_rows, task, population, cluster[copied], cluster, source)
    order = jax.random.permutation(key_order, task.m)
    places = jnp.zeros_like(order).at[order].set(jnp.arange(task.m))
    return take(pool, order).replace(source=places[source[order]], population=population)


def sample_population(key: Array, task: PoolTask) -> Population:
    """Draw cluster centres on the sphere of radius ``separation``, and regression weights."""
    key_centres, key_weights = jax.random.split(key)
    num_clusters = len(task.shares)
    ways = jax.random.normal(key_centres, (num_clusters, task.d), task.dtype)
    ways = ways / jnp.linalg.norm(ways, axis=1, keepdims=True)
    count = num_clusters if task.num_weights == "cluster" else task.num_weights
    weights = jax.random.normal(key_weights, (count, task.d), task.dtype)
    return Population(jnp.asarray(task.separation, ways.dtype) * ways, weights)


def queries(key: Array, task: PoolTask, population: Population, count: int) -> Pool:  # m = K·count
    """Draw ``count`` queries of every cluster, in the order of clusters, with noise-free targets.

    The error on the population is Σ_c share_c error_c.
    """
    cluster = jnp.repeat(jnp.arange(len(task.shares)), check_at_least(count, "count"))
    source = jnp.arange(len(cluster))
    pool = _draw(key, task, population, cluster[:0], cluster, source)
    return pool.replace(y=pool.clean, source=source, population=population)


def tokens(pool: Pool) -> Array:  # [m, e]
    """Return e_i = [x_i, y_i]."""
    _check_labels(pool)
    return jnp.concatenate([pool.x, pool.y[:, None]], axis=1)


def prompt(pool: Pool, indices: Array, x_query: Array, y_query: Array) -> Prompt:
    """Return the demonstrations at ``indices``, in this order, with one query."""
    indices = _check_indices(pool, indices)
    return Prompt(pool.x[indices], pool.y[indices], x_query, y_query)


def take(pool: Pool, indices: Array) -> Pool:
    """Return the demonstrations at ``indices`` as a pool; sources stay indices of the full pool."""
    indices = _check_indices(pool, indices)
    rows = jax.tree.map(lambda leaf: leaf[indices], pool.replace(population=None))
    return rows.replace(population=pool.population)


def _check_indices(pool: Pool, indices: Array) -> Array:
    _check_labels(pool)
    indices = jnp.asarray(to_native_order(indices))
    check_indices(indices, len(pool.x))
    return indices


def _check_labels(pool: Pool) -> None:
    chex.assert_shape(pool.y, pool.x.shape[:1], custom_message="y has one label for each row of x")


def counts(shares: Sequence[float] | np.ndarray, m: int) -> np.ndarray:  # [K]
    """Return counts that add up to m, nearest to the shares: the largest remainders round up."""
    exact = np.asarray(shares) * m
    rounded = np.floor(exact + 1e-9).astype(int)
    rounded[np.argsort(rounded - exact, kind="stable")[: m - rounded.sum()]] += 1
    return rounded


def _draw(
    key: Array, task: PoolTask, population: Population, copied: Array, cluster: Array, source: Array
) -> Pool:
    """Draw originals in the clusters ``cluster`` and, after them, copies in ``copied``."""
    key_normal, key_chi, key_weights, key_flips = jax.random.split(key, 4)
    m, d, cluster = len(source), task.d, jnp.concatenate([cluster, copied])
    normal = jax.random.normal(key_normal, (m * (d + 1),), task.dtype)
    dtype = normal.dtype
    z, noise = normal[: m * d].reshape(m, d), normal[m * d :]
    if task.tail is not None:
        tail = jnp.asarray(task.tail, dtype)
        halves = jax.random.gamma(key_chi, tail / 2, (m,), dtype)  # χ²_ν / 2
        z = z * jnp.sqrt((tail - 2) / (2 * halves))[:, None]
    z, noise = _correlate(z, source, task), _correlate(noise[:, None], source, task)[:, 0]
    if task.covariances is not None:
        roots = random.covariance_root(task.covariances).astype(dtype)
        z = jnp.einsum("mij,mj->mi", roots[cluster], z)
    x = population.centres[cluster] + z
    which = cluster
    if task.num_weights != "cluster":
        which = jax.random.randint(key_weights, (m,), 0, task.num_weights)[source]
    clean = jnp.einsum("md,md->m", population.weights[which], x)
    if task.labels == "cluster":
        clean = 2 * cluster.astype(dtype) / (len(task.shares) - 1) - 1
    y = clean + jnp.asarray(task.noise_std, dtype) * noise
    if task.labels == "sign":
        clean, y = (jnp.where(label < 0, -1, 1).astype(dtype) for label in (clean, y))
    wrong = jax.random.uniform(key_flips, (m,), dtype)[source] < jnp.asarray(task.flips, dtype)
    return Pool(x, jnp.where(wrong, -y, y), clean, cluster, which, source)


def _correlate(rows: Array, source: Array, task: PoolTask) -> Array:  # [m, d]
    """Return ρ z_source + √(1 - ρ²) z for copies, and z for originals."""
    rho = jnp.asarray(task.closeness, rows.dtype)
    copies = rho * rows[source] + jnp.sqrt(1 - rho**2) * rows
    return jnp.where((source == jnp.arange(len(source)))[:, None], rows, copies)


def _check(task: PoolTask) -> None:
    num_clusters, d = len(task.shares), task.d
    for name in ("m", "d"):
        check_at_least(getattr(task, name), name)
    least = min(task.shares, default=-1)
    if not (least >= 0 and abs(sum(task.shares) - 1) <= 1e-6):  # NaN is neither
        raise ValueError(f"shares = {task.shares}: they are not negative and add up to 1")
    if task.num_weights != "cluster":
        check_at_least(task.num_weights, "num_weights")
    check_choice(task.labels, "labels", ("linear", "sign", "cluster"))
    if task.labels == "cluster" and num_clusters < 2:
        raise ValueError("labels = 'cluster' with one cluster: give at least two shares")
    if not 0 <= task.copies < 1:
        raise ValueError(f"copies = {task.copies}: a share of the pool, from 0 to below 1")
    shape = getattr(task.covariances, "shape", None)
    if shape is not None and shape[-3:] != (num_clusters, d, d):
        raise ValueError(f"covariances has shape {shape}: it is {(num_clusters, d, d)}")
    if shape is not None and len(shape) == 3 and is_readable(task.covariances):
        for k, covariance in enumerate(np.asarray(task.covariances)):
            check_symmetric(covariance, f"covariances[{k}]")
    for name, high in dict(separation=np.inf, noise_std=np.inf, flips=1, closeness=1).items():
        check_range(getattr(task, name), name, high)
    tail = np.asarray(task.tail) if is_readable(task.tail) else np.array(3.0)
    if not np.all((tail > 2) & (tail < np.inf)):
        raise ValueError(f"tail = {tail}: up to 2 the covariance is infinite; choose more")
