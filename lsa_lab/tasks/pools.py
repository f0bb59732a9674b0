"""Pools of demonstrations to select from: clusters, copies, heavy tails, wrong labels, tasks."""

from typing import Literal

import chex
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from lsa_lab import random
from lsa_lab.arguments import Real, check_at_least, check_indices, check_symmetric, is_readable
from lsa_lab.prompts import Prompt, in_native_order


class Population(flax.struct.PyTreeNode):
    """The clusters and the tasks that one pool and its queries are drawn from."""

    centres: Array  # [K, d]
    weights: Array  # [W, d]


class Pool(flax.struct.PyTreeNode):
    """m demonstrations and where they come from; a pool of one's own needs x and y alone."""

    x: Array  # [m, d]
    y: Array  # [m]
    clean: Array | None = None  # [m]  the label before noise and flips
    cluster: Array | None = None  # [m]
    weights: Array | None = None  # [m]  which of the population's weights gave the label
    source: Array | None = None  # [m]  the demonstration that this is a copy of, or itself
    population: Population | None = None


class PoolTask(flax.struct.PyTreeNode):
    """x_i = μ_c + Σ_c^{1/2} z_i in cluster c, and a label; every pool draws its own μ and w.

    ``shares`` of the clusters hold exactly, (0.9, 0.1) say; |μ_c| = ``separation`` in a random
    direction. z is Gaussian or, with ``tail`` ν > 2, a multivariate Student t of ν degrees of
    freedom and covariance I. There are ``num_weights`` w ~ N(0, I), one of them at random for each
    demonstration (several tasks in one pool), or one for each cluster ("cluster"). Labels: w·x + ε
    ("linear"), its sign ("sign"), or the cluster itself, 2c/(K-1) - 1 + ε ("cluster"), with
    ε ~ N(0, noise_std²). Then each label changes its sign with probability ``flips``. A share
    ``copies`` of the pool repeats others, drawn uniformly: z and ε are correlated by ``closeness``
    with the source's, the rest is the same, so that at 1 they are exact copies.
    """

    m: int = flax.struct.field(pytree_node=False)
    d: int = flax.struct.field(pytree_node=False)
    shares: tuple[float, ...] = flax.struct.field(default=(1.0,), pytree_node=False)
    separation: Real = 0.0
    covariances: Array | None = None  # [K, d, d]  Σ; None is the identity
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
    """One pool, in random order."""
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
    """Cluster centres, uniform on the sphere of radius ``separation``, and regression weights."""
    key_centres, key_weights = jax.random.split(key)
    num_clusters = len(task.shares)
    ways = jax.random.normal(key_centres, (num_clusters, task.d), task.dtype)
    ways = ways / jnp.linalg.norm(ways, axis=1, keepdims=True)
    count = num_clusters if task.num_weights == "cluster" else task.num_weights
    weights = jax.random.normal(key_weights, (count, task.d), task.dtype)
    return Population(jnp.asarray(task.separation, ways.dtype) * ways, weights)


def queries(key: Array, task: PoolTask, population: Population, count: int) -> Pool:  # m = K·count
    """``count`` queries of every cluster, cluster after cluster, with targets free of noise.

    Clusters are weighted by whoever averages: Σ_c share_c error_c is the error on the population.
    """
    cluster = jnp.repeat(jnp.arange(len(task.shares)), check_at_least(count, "count"))
    source = jnp.arange(len(cluster))
    pool = _draw(key, task, population, cluster[:0], cluster, source)
    return pool.replace(y=pool.clean, source=source, population=population)


def tokens(pool: Pool) -> Array:  # [m, e]
    """e_i = [x_i, y_i]."""
    _check_labels(pool)
    return jnp.concatenate([pool.x, pool.y[:, None]], axis=1)


def prompt(pool: Pool, indices: Array, x_query: Array, y_query: Array) -> Prompt:
    """The chosen demonstrations in their order, before one query."""
    indices = _checked_indices(pool, indices)
    return Prompt(pool.x[indices], pool.y[indices], x_query, y_query)


def take(pool: Pool, indices: Array) -> Pool:
    """The chosen demonstrations as a pool; their sources still count in the whole pool."""
    indices = _checked_indices(pool, indices)
    rows = jax.tree.map(lambda leaf: leaf[indices], pool.replace(population=None))
    return rows.replace(population=pool.population)


def _checked_indices(pool: Pool, indices: Array) -> Array:
    _check_labels(pool)
    indices = jnp.asarray(in_native_order(indices))
    check_indices(indices, len(pool.x))
    return indices


def _check_labels(pool: Pool) -> None:
    chex.assert_shape(pool.y, pool.x.shape[:1], custom_message="y has one label for each row of x")


def counts(shares: tuple[float, ...], m: int) -> np.ndarray:  # [K]
    """Whole numbers that add up to m, nearest to the shares: the largest remainders round up."""
    exact = np.asarray(shares) * m
    whole = np.floor(exact + 1e-9).astype(int)
    whole[np.argsort(whole - exact, kind="stable")[: m - whole.sum()]] += 1
    return whole


def _draw(
    key: Array, task: PoolTask, population: Population, copied: Array, cluster: Array, source: Array
) -> Pool:
    """Originals of the given clusters and, after them, copies in the ``copied`` clusters."""
    key_normal, key_chi, key_weights, key_flips = jax.random.split(key, 4)
    m, d, cluster = len(source), task.d, jnp.concatenate([cluster, copied])
    normal = jax.random.normal(key_normal, (m * (d + 1),), task.dtype)
    dtype = normal.dtype
    z, noise = normal[: m * d].reshape(m, d), normal[m * d :]
    if task.tail is not None:
        tail = jnp.asarray(task.tail, dtype)
        halves = jax.random.gamma(key_chi, tail / 2, (m,), dtype)  # χ²_ν / 2
        z = z * jnp.sqrt((tail - 2) / (2 * halves))[:, None]
    z, noise = _correlated(z, source, task), _correlated(noise[:, None], source, task)[:, 0]
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


def _correlated(rows: Array, source: Array, task: PoolTask) -> Array:  # [m, d]
    """A copy's ρ z_source + √(1 - ρ²) z; an original's own z."""
    close = jnp.asarray(task.closeness, rows.dtype)
    copies = close * rows[source] + jnp.sqrt(1 - close**2) * rows
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
    if task.labels not in ("linear", "sign", "cluster"):
        raise ValueError(f"labels = {task.labels!r}: choose 'linear', 'sign' or 'cluster'")
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
    bounds = {"separation": (0, np.inf), "noise_std": (0, np.inf), "flips": (0, 1)}
    for name, (low, high) in (bounds | {"closeness": (0, 1), "tail": (2, np.inf)}).items():
        value = getattr(task, name)
        if is_readable(value) and not np.all((low <= value) & (value <= high) & (value < np.inf)):
            raise ValueError(f"{name} = {value}: it is a number from {low} to {high}")
    if is_readable(task.tail) and np.any(task.tail == 2):
        raise ValueError("tail = 2: the covariance is infinite; choose more than 2")
