"""Weights of linear attention from theorems; all read out with the minus sign.

The label slot of token i holds the residual y_i - w_l·x_i after l layers and the query's slot
-w_l·x_query, so that ``trace.layer_predictions`` is the path of an algorithm. Two differ:
slots of ``prior_attention`` do not contain w_0, and ``preprocess_then_optimise`` starts a layer
later.
"""

import chex
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import as_floats, check_at_least, check_range, check_symmetric
from lsa_lab.models import transformer_weights
from lsa_lab.models.linear_attention import Params
from lsa_lab.models.sparse_constructions import preprocess_then_optimise as preprocess_then_optimise


def gradient_descent(step_sizes: Array, d: int) -> Params:
    """Return L layers that make L steps w ← w + η_l Xᵀ(y - Xw)/n of descent from w = 0.

    W_pv = diag(0, -1), W_kq = η_l diag(I, 0) (von Oswald et al. 2212.07677; docs/theory, "One layer
    is one step").
    """
    step_sizes = _vector(step_sizes, "step_sizes")
    return preconditioned(_scaled_identities(step_sizes, d))


def preconditioned(preconditioners: Array) -> Params:
    """Return L layers that make L steps w ← w + A_lᵀ Xᵀ(y - Xw)/n, for any A_l [L, d, d].

    W_pv = diag(0, -1), W_kq = diag(A_l, 0) (Ahn et al. 2306.00297, A transposed;
    docs/theory, "Layers are preconditioned steps").
    """
    chex.assert_rank(preconditioners, 3, custom_message="preconditioners are [L, d, d]")
    num_layers, d, _ = preconditioners.shape
    chex.assert_shape(preconditioners, (num_layers, d, d))
    last = jnp.zeros((d + 1, d + 1), jnp.result_type(preconditioners)).at[d, d].set(-1.0)
    w_pv = jnp.broadcast_to(last, (num_layers, 1, d + 1, d + 1))
    return Params(w_kq=_embed(preconditioners), w_pv=w_pv)


def gradient_descent_plus_plus(step_sizes: Array, gammas: Array, d: int) -> Params:
    """Return layers that make steps of GD++: each also maps x to (I - γ_l H)x, H its moment of x.

    W_pv = diag(-γ_l I, -η_l), W_kq = diag(I, 0). In the first coordinates T_{l+1} = (I - γ_l T_l H
    T_l) T_l and w_{l+1} = w_l + η_l T_l² Xᵀ(y - Xw_l)/n (von Oswald et al.; docs/theory, "GD++").
    """
    step_sizes, gammas = _vector(step_sizes, "step_sizes"), _vector(gammas, "gammas")
    chex.assert_equal_shape([step_sizes, gammas], custom_message="one γ for each step")
    w_pv = _embed(_scaled_identities(-gammas, d)).at[:, 0, d, d].set(-step_sizes)
    return Params(w_kq=_embed(_scaled_identities(jnp.ones_like(gammas), d)), w_pv=w_pv)


def prior_attention(step_sizes: Array, prior_mean: Array) -> Params:
    """Return L layers that make L steps w ← w + η_l Xᵀ(y - Xw)/n from w_0 = prior_mean.

    The weights hold w_0: W_pv = [0 0; w_0ᵀ -1], W_kq = η_l diag(I, 0). The query's slot holds
    -(w_l - w_0)·x_query, so that ŷ_l = prior_mean @ x_query + layer_predictions, or
    layer_predictions alone if the slot starts at -w_0·x_query. Slot i holds y_i - (w_l - w_0)·x_i.
    A pair with y = w_0·x writes nothing in layer 1 (derived here; docs/theory, "Attention with a
    prior"). Read with the plus sign, layer 2 would increase the loss.
    """
    step_sizes, prior_mean = _vector(step_sizes, "step_sizes"), jnp.asarray(prior_mean)
    chex.assert_rank(prior_mean, 1, custom_message="prior_mean is [d]")
    params = gradient_descent(step_sizes, len(prior_mean))
    return params.replace(w_pv=params.w_pv.at[:, 0, -1, :-1].set(prior_mean[None]))


def one_step_optimum(covariance: Array, n: int, noise_var: float) -> Params:
    """Return the best layer for x ~ N(0, Λ), w ~ N(0, I): W_kq = A/c, W_pv = -c in the label slot.

    A = Γ^{-1}, Γ = (1 + 1/n) Λ + ((tr Λ + σ²)/n) I, c = |A|_F^{1/2} (Zhang et al. 2306.09927,
    adapted to the minus sign; noise as in docs/theory, "Published optima").
    """
    chex.assert_rank(covariance, 2)
    check_symmetric(covariance, "covariance")
    n = check_at_least(n, "n")
    check_range(noise_var, "noise_var")
    d = covariance.shape[0]
    identity = jnp.eye(d, dtype=jnp.result_type(covariance))
    gamma = (1 + 1 / n) * covariance + ((jnp.trace(covariance) + noise_var) / n) * identity
    step = jnp.linalg.inv(gamma)
    balance = jnp.sqrt(jnp.linalg.norm(step))
    params = preconditioned(step[None] / balance)
    return Params(w_kq=params.w_kq, w_pv=params.w_pv * balance)


def scale_skip(
    params: Params | transformer_weights.Params, weight: float
) -> Params | transformer_weights.Params:
    """Return the stack h_{t+1} = c h_t + attention(h_t), c = ``weight``, with the stream h_t / cᵗ.

    Linear attention is cubic: W_pv of layer t = 0, 1, ... times c^{2t-1}. Factored heads, softmax
    or linear: W_Q times c^{2t}, W_O over c. Predictions and flows after l layers lack the factor
    cˡ, which cancels in ratios (derived here; docs/theory, "The weighted skip"). Raises ValueError
    for weight 0, and for models with a norm, a bias or an MLP, which are not homogeneous.
    """
    weight = float(weight)
    if weight == 0:
        raise ValueError("weight is 0: the stream cannot be divided by it; choose another")
    if isinstance(params, Params):
        return params.replace(w_pv=_scale_layers(params.w_pv, weight, 2, -1))
    others = (params.attention_norm_scale, params.mlp_in, params.b_q, params.final_norm_scale)
    if any(leaf is not None for leaf in others):
        raise ValueError(
            "a norm, a bias or an MLP is not homogeneous: only attention alone can be scaled"
        )
    w_q, w_o = _scale_layers(params.w_q, weight, 2, 0), _scale_layers(params.w_o, weight, 0, -1)
    return params.replace(w_q=w_q, w_o=w_o)


def _scale_layers(leaf: Array, weight: float, power: int, offset: int) -> Array:  # [L, ...]
    """Multiply layer t = 0, 1, ... by weight^(power t + offset)."""
    limits = jnp.finfo(leaf.dtype)
    with np.errstate(over="ignore"):
        factors = weight ** (power * np.arange(len(leaf)) + offset)
    if not np.all((np.abs(factors) <= limits.max) & (np.abs(factors) >= limits.tiny)):
        raise ValueError(
            f"weight = {weight} over {len(leaf)} layers: its powers leave {leaf.dtype}; take fewer "
            "layers, float64, or a weight nearer to 1"
        )
    return leaf * jnp.asarray(factors, leaf.dtype).reshape(-1, *(1,) * (leaf.ndim - 1))


def _embed(blocks: Array) -> Array:  # [L, d, d] -> [L, 1, e, e]
    """Pad the covariate block of a single head with a row and a column of zeros for the label."""
    return jnp.pad(blocks, ((0, 0), (0, 1), (0, 1)))[:, None]


def _scaled_identities(factors: Array, d: int) -> Array:  # [L, d, d]
    identity = jnp.eye(check_at_least(d, "d"), dtype=factors.dtype)
    return jnp.einsum("l,de->lde", factors, identity)


def _vector(values: Array, name: str) -> Array:  # [L]
    values = as_floats(values)
    chex.assert_rank(values, 1, custom_message=f"{name} has one entry for each layer")
    return values
