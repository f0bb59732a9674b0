"""Diverse subsets: baselines that see the pool and not the query.

Points [m, p] are covariates, whole tokens, flows or gradients, one row for each demonstration. To
weigh diversity by quality, hand ``determinantal`` the points times a score [m, 1] (Kulesza and
Taskar 1207.6083). Indices are best first; of equal candidates the lower index. A NaN or an infinity
is an error; under jit, where nothing can be raised, it makes all indices m, outside the pool, and
all other numbers NaN. No choice depends on the unit of the points.
"""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_finite, check_range, check_size, is_concrete
from lsa_lab.prompts import to_native_order
from lsa_lab.scaling import scale_near_one

_RESTARTS = 4  # of k-means, from random seeds; the best is kept
_ROUNDS = 100  # of Lloyd's algorithm at most


def determinantal(points: Array, size: int, ridge: float = 0.0) -> Array:  # [m, p] -> [size]
    """Choose, in turn, the point that raises log det L_SS most, L = B Bᵀ + ridge I, B the points.

    This is the greedy maximum of a determinantal point process, with a Cholesky row for each pick,
    in O(m size (p + size)) operations (Chen et al. 1709.05135). With a ridge it is the D-optimal
    design with a prior, and ``size`` may exceed p. Without, L has rank p, and of points that add
    nothing the lowest index is taken.
    """
    points, size = _check(points, size)
    p = points.shape[1]
    check_range(ridge, "ridge")
    if is_concrete(ridge) and np.asarray(ridge).astype(points.dtype) == 0 and size > p:
        raise ValueError(
            f"size = {size} of points of width {p}: their determinant is 0; give a ridge > 0"
        )
    prior = jnp.sqrt(jnp.maximum(jnp.asarray(ridge, points.dtype), 0))
    rows = scale_near_one(jnp.append(points, jnp.full((1, p), prior), axis=0))[0]  # of one unit
    return _mark_unknown(points, _determinantal(rows[:-1], rows[-1, 0] ** 2, size))


@partial(jax.jit, static_argnames="size")
def _determinantal(points: Array, ridge: Array, size: int) -> Array:
    m, p = points.shape
    start = _squares(points) + ridge
    noise = 10 * p * jnp.finfo(points.dtype).eps * start.max()

    def pick(state: tuple[Array, Array, Array], t: Array) -> tuple[tuple, Array]:
        factor, left, chosen = state  # [size, m], [m], [m]
        left = jnp.where(left > noise, left, 0)
        best = jnp.argmax(jnp.where(chosen, -1, left))
        pivot = jnp.sqrt(jnp.where(left[best] > 0, left[best], 1))
        row = (points @ points[best] - factor[:, best] @ factor) / pivot
        row = jnp.where(left[best] > 0, row, 0)  # its entry at ``best`` is never read
        return (factor.at[t].set(row), left - row**2, chosen.at[best].set(True)), best

    state = (jnp.zeros((size, m), points.dtype), start, jnp.zeros(m, bool))
    return jax.lax.scan(pick, state, jnp.arange(size))[1]


def medoids(points: Array, size: int, key: Array) -> Array:  # [m, p] -> [size]
    """Choose the demonstration nearest to the centre of each cluster of k-means, largest first.

    k-means is Lloyd's algorithm from k-means++ seeds (Arthur and Vassilvitskii 2007), the best of
    four starts. All choices are different: a cluster without points takes the nearest one left.
    """
    points, size = _check(points, size)
    return _mark_unknown(points, _medoids(scale_near_one(points)[0], size, key))


@partial(jax.jit, static_argnames="size")
def _medoids(points: Array, size: int, key: Array) -> Array:
    points = points - points.mean(0)[None]
    starts = jax.lax.map(partial(_cluster, points, size), jax.random.split(key, _RESTARTS))
    centres, clusters, inertia = starts
    centres, clusters = centres[jnp.argmin(inertia)], clusters[jnp.argmin(inertia)]
    counts = (clusters[:, None] == jnp.arange(size)[None]).sum(0)

    def pick(chosen: Array, k: Array) -> tuple[Array, Array]:  # [m], []
        squares = _squares(points - centres[k][None])
        member = (clusters == k) | (counts[k] == 0)
        best = jnp.argmin(jnp.where(chosen | ~member, jnp.inf, squares))
        return chosen.at[best].set(True), best

    order = jnp.argsort(-counts, stable=True)
    return jax.lax.scan(pick, jnp.zeros(points.shape[0], bool), order)[1]


def _cluster(points: Array, size: int, key: Array) -> tuple[Array, Array, Array]:
    """Return centres [size, p], the cluster of each point [m], and Σ_i |x_i - its centre|²."""

    def move(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        centres, clusters, _, count = state
        member = (clusters[:, None] == jnp.arange(size)[None]).astype(points.dtype)  # [m, size]
        total = member.sum(0)[:, None]
        means = member.T @ points / jnp.maximum(total, 1)
        centres = jnp.where(total > 0, means, centres)  # without points it stays where it is
        nearest = _nearest(points, centres)
        return centres, nearest, (nearest == clusters).all(), count + 1

    def unfinished(state: tuple[Array, Array, Array, Array]) -> Array:
        return ~state[2] & (state[3] < _ROUNDS)

    seeds = _draw_seeds(points, size, key)
    state = (seeds, _nearest(points, seeds), jnp.array(False), jnp.array(0))
    centres, clusters, _, _ = jax.lax.while_loop(unfinished, move, state)
    return centres, clusters, _squares(points - centres[clusters]).sum()


def _draw_seeds(points: Array, size: int, key: Array) -> Array:  # [size, p]
    """Draw the seeds of k-means++: a point's chance is its squared distance to the seeds so far."""

    def draw(gaps: Array, key: Array) -> tuple[Array, Array]:  # gaps [m]
        seed = points[jax.random.categorical(key, jnp.log(gaps))]
        return jnp.minimum(gaps, _squares(points - seed[None])), seed

    equal = jnp.ones_like(points[:, 0])
    first = points[jax.random.categorical(key, jnp.zeros_like(equal))]
    start = _squares(points - first[None])
    seeds = jax.lax.scan(draw, start, jax.random.split(key, size)[1:])[1]
    return jnp.concatenate([first[None], seeds])


def _nearest(points: Array, centres: Array) -> Array:  # [m]
    return jnp.argmin(_squares(centres)[None] - 2 * points @ centres.T, axis=1)


def _mark_unknown(points: Array, indices: Array) -> Array:  # [size]
    """Return m, an index outside the pool, in all places if a point is not finite."""
    return jnp.where(jnp.isfinite(points).all(), indices, points.shape[0])


def _squares(rows: Array) -> Array:  # [m, p] -> [m]
    return (rows**2).sum(-1)


def _check(points: ArrayLike, size: int) -> tuple[Array, int]:  # [m, p]
    chex.assert_rank(points, 2, custom_message="points are [m, p], one row per demonstration")
    chex.assert_type(points, float)
    array = jnp.asarray(to_native_order(points))
    check_finite(array, "points")
    return array, check_size(size, len(array))
