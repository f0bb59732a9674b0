"""Descent on W by the weights of a linear stack, from I, with moments drawn in one way or other."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from experiments.descent.noisy_descent.config import PATHS
from lsa_lab import random


def token_root(w: Array, noise_std: float) -> Array:  # [d] -> [e, e]
    """C with C Cᵀ = E e_i e_iᵀ given the task, for x ~ N(0, I)."""
    d = len(w)
    rows = jnp.concatenate([jnp.eye(d), w[None]])
    return jnp.concatenate([rows, noise_std * jnp.eye(d + 1)[:, d:]], axis=1)


def white_moments(key, n: int, e: int, size: int, gaussian: bool) -> Array:  # [B, e, e]
    """Z Zᵀ/n, Z being n columns of N(0, I), or a Gaussian matrix of the same two moments: I + N/√n,
    the entries of the symmetric N of variance 2 on the diagonal and 1 beside it."""
    if not gaussian:
        factor = jnp.moveaxis(random.wishart_factor(key, n, e, size), -1, 0)
        return factor @ factor.mT / n
    normal = jax.random.normal(key, (size, e, e))
    return jnp.eye(e)[None] + (normal + normal.mT) / (2 * n) ** 0.5


def update(params, layer: int, w: Array, second_moment: Array) -> Array:  # [e, e]
    """G_t = Σ_h P W S Wᵀ K W."""
    read = w @ second_moment @ w.T
    return (params.w_pv[layer] @ read @ params.w_kq[layer]).sum(0) @ w


def walk(params, moments: Array) -> tuple[Array, Array]:  # -> W_L, [L, e, e]
    """W_L and the G_t for one moment a layer [L, e, e]."""
    w, updates = jnp.eye(moments.shape[-1]), []
    for layer in range(len(params.w_pv)):
        step = update(params, layer, w, moments[layer])
        w = w + step
        updates.append(step)
    return w, jnp.stack(updates)


def weights_of(w_last: Array) -> Array:  # [e, e] -> [d]
    """The regression weights that a map implies."""
    return -w_last[-1, :-1]


def ends(key, params, root: Array, n: int, size: int) -> Array:  # -> [paths, B, d]
    """The implied weights of every path of PATHS, for B prompts of the task of ``root``."""
    depth, e = len(params.w_pv), len(root)
    key_wishart, key_gaussian = jax.random.split(key)
    wishart, gaussian = (
        white_moments(key, n, e, size * (depth + 1), kind).reshape(size, depth + 1, e, e)
        for key, kind in ((key_wishart, False), (key_gaussian, True))
    )
    fresh, mean = gaussian[:, 1:], jnp.broadcast_to(jnp.eye(e), (size, depth, e, e))
    moments = {
        "model": jnp.repeat(wishart[:, :1], depth, axis=1),
        "Gaussian, same": jnp.repeat(gaussian[:, :1], depth, axis=1),
        "fresh demonstrations": wishart[:, 1:],
        "Eq. 4": fresh,
        "half the noise": mean + (fresh - mean) / 2,
        "twice the noise": mean + (fresh - mean) * 2,
        "no noise": mean,
    }
    rows = root @ jnp.stack([*moments.values()]) @ root.T  # [paths, B, L, e, e]
    weights = jax.vmap(jax.vmap(lambda rows: weights_of(walk(params, rows)[0])))(rows)
    by_path = dict(zip(moments, weights, strict=True))
    return jnp.stack([by_path[name] for name in PATHS])


def updates_of(key, params, root: Array, n: int, size: int) -> Array:  # -> [B, L, e, e]
    """The G_t of the model on B prompts of one task."""
    white = white_moments(key, n, len(root), size, gaussian=False)
    moments = root @ white @ root.T
    repeated = partial(jnp.repeat, repeats=len(params.w_pv), axis=0)
    return jax.vmap(lambda moment: walk(params, repeated(moment[None]))[1])(moments)
