"""What the truncation of one matrix does to the norms of a stack's implicit updates."""

import jax
import jax.numpy as jnp

from experiments.clipping.truncation_norms.factored_weights import counterexample
from lsa_lab.analyses import clipping, implicit_gd
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import tokens


def norms_and_bounds(weights, prompt):  # W_V, W_K, W_Q [3, L, e, e] -> [L], [L]
    """|G_t| and UB_t of every layer (A2, Theorem 1 and Example 1)."""
    w_v, w_k, w_q = weights
    merged = w_k.swapaxes(1, 2) @ w_q
    path = implicit_gd.trajectory(Params(merged[:, None], w_v[:, None]), prompt)
    upper = implicit_gd.upper_bounds(path, w_v, w_k, w_q, tokens(prompt)[:-1])
    return implicit_gd.norms(path), upper


def touched_shares(weights, prompt):  # -> [L]
    """The share of Σ|G|² that a layer and those after it make up: what its truncation touches."""
    squares = norms_and_bounds(weights, prompt)[0] ** 2
    return squares[::-1].cumsum()[::-1] / squares.sum()


def growth(weights, prompt, rates):  # -> [5 norms, 3, L, Q]
    """log(after / before) for every matrix and layer that is truncated, and every rate."""
    exact, upper = norms_and_bounds(weights, prompt)
    layers = jnp.arange(len(exact))
    cut = jax.vmap(clipping.truncate, (None, 0))(weights, rates)  # [Q, 3, L, e, e]

    def edit(matrix, t, cut):
        here = (jnp.arange(3) == matrix)[:, None] & (layers == t)[None]
        after, bound = norms_and_bounds(jnp.where(here[..., None, None], cut, weights), prompt)
        each = jnp.log(after / exact)
        later = jnp.where(layers > t, each, -jnp.inf).max()
        total = jnp.log((after**2).sum() / (exact**2).sum())
        late = (layers >= t).astype(after.dtype)
        touched = jnp.log((late * after**2).sum() / (late * exact**2).sum())
        return jnp.stack([each[t], jnp.log(bound / upper)[t], later, total, touched])

    at_rates = jax.vmap(edit, (None, None, 0))
    everywhere = jax.vmap(jax.vmap(at_rates, (None, 0, None)), (0, None, None))
    return jnp.moveaxis(everywhere(jnp.arange(3), layers, cut), 3, 0)


def mlp_growth(key, weights, prompt, rates, scale):  # -> [2, Q]
    """log(after / before) of the first update, read after a random MLP that is truncated; the rows
    are those of READINGS."""
    e = weights.shape[-1]
    update = implicit_gd.implicit_update(*weights[:, 0], tokens(prompt)[:-1])
    update = update / len(prompt.y)  # G_1
    mlp = scale * e**-0.5 * jax.random.normal(key, (e, e))
    cut = jax.vmap(clipping.truncate, (None, 0))(mlp, rates)
    matrices = jnp.concatenate([mlp[None], cut])
    readings = (implicit_gd.relaxed_mlp_update, implicit_gd.block_mlp_update)
    updates = [jax.vmap(read, (0, None))(matrices, update) for read in readings]
    sizes = jnp.linalg.norm(jnp.stack(updates), axis=(2, 3))  # [2, 1 + Q]
    return jnp.log(sizes[:, 1:] / sizes[:, :1])


def counterexample_norms():  # -> [2]
    """|G| of the counterexample with W_K whole and at rank 1."""
    weights, prompt = counterexample()
    cut = weights.at[1].set(clipping.truncate(weights[1], 0.5))
    return jnp.stack([norms_and_bounds(each, prompt)[0][0] for each in (weights, cut)])


def summarise(log_ratios, rounding):  # [R, B, ...] -> three of [R, ...]
    """The share of a run's draws in which a norm rises, the median and the largest log ratio."""
    rises = (log_ratios > rounding).astype(log_ratios.dtype)
    rises = jnp.where(jnp.isnan(log_ratios), jnp.nan, rises).mean(1)  # NaN is not "never"
    return rises, jnp.median(log_ratios, axis=1), log_ratios.max(1)


def movement(log_ratios):  # [R, B, ...] -> two of [R, ...]
    """How far a norm moves over a run's draws, and how differently: the mean |log ratio| and the
    standard deviation of the log ratio."""
    return jnp.abs(log_ratios).mean(1), log_ratios.std(1)
