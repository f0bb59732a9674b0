"""What the truncation of one matrix, W_V, W_K or W_Q of a layer, does to the norms of updates."""

import jax
import jax.numpy as jnp

from lsa_lab.analyses import clipping, implicit_gd
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt, tokens


def random_stack(key, spec, scale):  # -> [3, L, e, e], Prompt
    """Weights as large as those of the Spec with entries of variance scale²/e, demonstrations with
    entries of variance 1."""
    e, n = spec.token_width, max(spec.task.lengths)
    key_weights, key_rows = jax.random.split(key)
    weights = jax.random.normal(key_weights, (3, spec.architecture.depth, e, e))
    return scale * e**-0.5 * weights, _prompt(jax.random.normal(key_rows, (n, e)))


def merge(weights):  # [..., 3, L, e, e]
    """The same layers with W_K = I and W_Kᵀ W_Q in the place of W_Q."""
    w_v, w_k, w_q = (weights[..., i, :, :, :] for i in range(3))
    return stack_merged(w_v, w_k.swapaxes(-1, -2) @ w_q)


def stack_merged(w_pv, w_kq):  # two of [..., L, e, e] -> [..., 3, L, e, e]
    """Merged weights as W_V, W_K = I and W_Q."""
    identity = jnp.broadcast_to(jnp.eye(w_pv.shape[-1]), w_pv.shape)
    return jnp.stack([w_pv, identity, w_kq], axis=-4)


def _prompt(rows):  # [n, e]
    """Demonstrations by their tokens; the query, which no update reads, is the first of them."""
    return Prompt(rows[:, :-1], rows[:, -1], rows[0, :-1], rows[0, -1])


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


def rising_share(log_ratios, rounding):  # [R, B, ...] -> [R, ...]
    """The share of a run's draws in which a norm rises."""
    rises = (log_ratios > rounding).astype(log_ratios.dtype)
    return jnp.where(jnp.isnan(log_ratios), jnp.nan, rises).mean(1)  # NaN is not "never"


def movement(log_ratios):  # [R, B, ...] -> two of [R, ...]
    """How far a norm moves over a run's draws, and how differently: the mean |log ratio| and the
    standard deviation of the log ratio."""
    return jnp.abs(log_ratios).mean(1), log_ratios.std(1)
