"""The stacks whose matrices are truncated: W_V, W_K and W_Q of each layer as one array."""

import jax
import jax.numpy as jnp

from lsa_lab.prompts import Prompt


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


def counterexample():  # -> [3, 1, 2, 2], Prompt
    """One layer, S = I, whose |G| grows tenfold when W_K keeps rank 1 (derived here;
    docs/theory, "Norms under truncation")."""
    w_v, w_k = jnp.array([[1.0, 1.0], [0.0, 0.0]]), jnp.diag(jnp.array([1.0, 0.9]))
    w_q = jnp.array([[1.0, 0.0], [-1.0, 0.0]])
    rows = 2**0.5 * jnp.eye(2)  # S, their mean, is I
    return jnp.stack([w_v, w_k, w_q])[:, None], _prompt(rows)


def _prompt(rows):  # [n, e]
    """Demonstrations by their tokens; the query, which no update reads, is the first of them."""
    return Prompt(rows[:, :-1], rows[:, -1], rows[0, :-1], rows[0, -1])
