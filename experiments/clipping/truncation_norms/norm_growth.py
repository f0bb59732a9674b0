"""What the truncation of one matrix does to the norms of a stack's implicit updates."""

import jax
import jax.numpy as jnp

from lsa_lab.analyses import clipping, implicit_gd
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt, tokens

NORMS = ("own", "bound", "later", "sum")  # |G_t|, UB_t, the worst |G| after t, Σ|G|²
MODULES = ("W_V", "W_K", "W_Q", "merged")  # merged: W_K = I, W_Q = W_Kᵀ W_Q
READINGS = {  # of an MLP behind attention
    "W_MLP ΔW": implicit_gd.relaxed_mlp_update,
    "ΔW + W_MLP + W_MLP ΔW": implicit_gd.block_mlp_update,
}


def walk(weights, prompt):  # W_V, W_K, W_Q [3, L, e, e] -> [L], [L]
    """|G_t| and UB_t = (1/n) Σ_i |W_V h_i| |W_K h_i| |W_Q|, h_i before layer t (A2, Example 1)."""
    w_v, w_k, w_q = weights
    merged = w_k.swapaxes(1, 2) @ w_q
    found = implicit_gd.trajectory(Params(merged[:, None], w_v[:, None]), prompt)
    rows = tokens(prompt)[:-1] @ found.maps[:-1].swapaxes(1, 2)  # [L, n, e]
    values, keys = jnp.linalg.norm(rows @ weights[:2].swapaxes(2, 3), axis=3)
    upper = (values * keys).mean(1) * jnp.linalg.norm(w_q, axis=(1, 2))
    return implicit_gd.norms(found), upper


def growth(weights, prompt, rates):  # -> [4 norms, 3, L, Q]
    """log(after / before) for every matrix and layer that is truncated, and every rate."""
    exact, upper = walk(weights, prompt)
    layers = jnp.arange(len(exact))
    cut = jax.vmap(clipping.truncate, (None, 0))(weights, rates)  # [Q, 3, L, e, e]

    def edit(matrix, t, cut):
        here = (jnp.arange(3) == matrix)[:, None] & (layers == t)[None]
        after, bound = walk(jnp.where(here[..., None, None], cut, weights), prompt)
        each = jnp.log(after / exact)
        later = jnp.where(layers > t, each, -jnp.inf).max()
        total = jnp.log((after**2).sum() / (exact**2).sum())
        return jnp.stack([each[t], jnp.log(bound / upper)[t], later, total])

    at_rates = jax.vmap(edit, (None, None, 0))
    everywhere = jax.vmap(jax.vmap(at_rates, (None, 0, None)), (0, None, None))
    return jnp.moveaxis(everywhere(jnp.arange(3), layers, cut), 3, 0)


def merge(weights):  # [..., 3, L, e, e]
    """The same layers with W_K = I and W_Kᵀ W_Q in the place of W_Q."""
    w_v, w_k, w_q = (weights[..., i, :, :, :] for i in range(3))
    return as_weights(w_v, w_k.swapaxes(-1, -2) @ w_q)


def as_weights(w_pv, w_kq):  # two of [..., L, e, e] -> [..., 3, L, e, e]
    """Merged weights as W_V, W_K = I and W_Q."""
    identity = jnp.broadcast_to(jnp.eye(w_pv.shape[-1]), w_pv.shape)
    return jnp.stack([w_pv, identity, w_kq], axis=-4)


def random_stack(key, config):  # -> [3, L, e, e], Prompt
    """Weights with entries of variance scale²/e, demonstrations with entries of variance 1."""
    e = config.d + 1
    key_weights, key_rows = jax.random.split(key)
    weights = jax.random.normal(key_weights, (3, config.depth, e, e))
    rows = jax.random.normal(key_rows, (config.n, e))
    prompt = Prompt(rows[:, :-1], rows[:, -1], rows[0, :-1], rows[0, -1])
    return config.scale * e**-0.5 * weights, prompt


def mlp_growth(key, weights, prompt, rates, config):  # -> [2, Q]
    """log(after / before) of the first update behind a random MLP that is truncated."""
    e = config.d + 1
    update = implicit_gd.implicit_update(*weights[:, 0], tokens(prompt)[:-1]) / config.n  # G_1
    mlp = config.scale * e**-0.5 * jax.random.normal(key, (e, e))
    cut = jax.vmap(clipping.truncate, (None, 0))(mlp, rates)
    matrices = jnp.concatenate([mlp[None], cut])
    behind = [jax.vmap(read, (0, None))(matrices, update) for read in READINGS.values()]
    sizes = jnp.linalg.norm(jnp.stack(behind), axis=(2, 3))  # [2, 1 + Q]
    return jnp.log(sizes[:, 1:] / sizes[:, :1])


def counterexample():  # -> [2]
    """|G| with W_K whole and at rank 1, S = I (derived here; THEORY I.2.7)."""
    w_v, w_k = jnp.array([[1.0, 1.0], [0.0, 0.0]]), jnp.diag(jnp.array([1.0, 0.9]))
    w_q = jnp.array([[1.0, 0.0], [-1.0, 0.0]])
    rows = 2**0.5 * jnp.eye(2)  # S, their mean, is I
    prompt = Prompt(rows[:, :1], rows[:, 1], rows[0, :1], rows[0, 1])
    both = [jnp.stack([w_v, k, w_q])[:, None] for k in (w_k, clipping.truncate(w_k, 0.5))]
    return jnp.stack([walk(weights, prompt)[0][0] for weights in both])


def summarise(log_ratios, rounding):  # [R, B, ...] -> three of [R, ...]
    """By run: the share of draws in which a norm rises, the median and the largest log ratio."""
    rises = (log_ratios > rounding).astype(log_ratios.dtype)
    rises = jnp.where(jnp.isnan(log_ratios), jnp.nan, rises).mean(1)  # NaN is not "never"
    return rises, jnp.median(log_ratios, axis=1), log_ratios.max(1)
