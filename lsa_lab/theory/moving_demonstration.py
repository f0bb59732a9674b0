"""Closed forms of A1 for one demonstration that moves: its flow through layers that write it along
itself.

``amplification.frozen_demonstration`` holds the demonstration still. Here it reads itself as the
query reads it, and stays on its ray because w_pv d is a multiple of d, always so for w_pv = λI. The
layers are equal, masked, and not normalised. With the self-coupling κ = d·K P d,

    d_l = ρ_l d,    ρ_{l+1} = ρ_l + κ ρ_l³,    ρ_0 = 1,

so that the geometric gain of the frozen demonstration becomes a cubic one (derived here;
docs/theory, "The moving demonstration", "Depth amplifies what is longer and better aligned").
"""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import as_floats, check_at_least, is_concrete
from lsa_lab.theory.amplification import (
    contribution,
    one_shot_jacobian,
    relevance,
    self_coupling,
)

_ROUNDING = 1e-5  # of P d beside d, in the size of P and d


def cubic_gains(coupling: Array, num_layers: int) -> tuple[Array, Array]:  # [L+1], [L+1]
    """A_l = (ρ_l - 1)/κ = Σ_{j<l} ρ_j³, which is l at κ = 0, and B_l = κ ∂A_l/∂κ.

    A_l is the gain of the contribution. For κ_1 > κ_2 > -1 the ratio of two grows with every layer,
    as that of two geometric gains does.
    """
    chex.assert_shape(coupling, (), custom_message="κ is a number; use jax.vmap")
    num_layers = check_at_least(num_layers, "num_layers", 0)
    coupling = as_floats(coupling)

    gain, bend = _gains(coupling, num_layers)
    return gain, coupling * bend


def moving_demonstration(
    w_kq: Array, w_pv: Array, demonstration: Array, query: Array, num_layers: int
) -> Array:  # [L+1, e]
    """The query's token after each of L equal layers: q_l = q + A_l s P d, where P d is along d.

    Raises ValueError where it is seen not to be: such a demonstration leaves its ray.
    """
    _check_along(w_pv, demonstration)
    gain, _ = cubic_gains(self_coupling(w_kq, w_pv, demonstration), num_layers)
    return query[None] + gain[:, None] * contribution(w_kq, w_pv, demonstration, query)[None]


def moving_flow(
    w_kq: Array, scale: Array, demonstration: Array, query: Array, num_layers: int
) -> Array:  # [L+1, e, e], the output's axis first
    """J_l = ∂q_l/∂d = λ (A_l M_0 + B_l M_1) for P = λI, λ = ``scale``.

    M_0 = sI + d (Kq)ᵀ, which is Eq. 2, and M_1 = (s/d·Kd) d ((K + Kᵀ)d)ᵀ, what the demonstration
    gains by moving. B_l M_1 is computed without the division, so that d·Kd may be 0.
    """
    num_layers = check_at_least(num_layers, "num_layers", 0)
    coupling = as_floats(scale * (demonstration @ w_kq @ demonstration))
    gain, bend = (each[:, None, None] for each in _gains(coupling, num_layers))
    still, moved = _flow_parts(w_kq, demonstration, query)
    return scale * (gain * still[None] + scale * bend * moved[None])


def flow_terms(w_kq: Array, demonstration: Array, query: Array) -> Array:  # [3]
    """a = |M_0|², b = M_0·M_1 and c = |M_1|²: |J_l|² = λ² (a A_l² + 2b A_l B_l + c B_l²).

    Raises ValueError where d·Kd is seen to be 0: there is no M_1 then.

    The ratio of two flows grows with every layer if κ_1 > κ_2 ≥ 0, b_1, b_2 ≥ 0, b_1 a_2 ≥ b_2 a_1
    and c_1 b_2 ≥ c_2 b_1. For K = kI: a = k²|d|²|q|² ((e+2) cos² + 1) and b = c =
    4 k²|d|²|q|² cos².
    """
    own = demonstration @ w_kq @ demonstration
    if is_concrete(own) and own == 0:
        raise ValueError("d·Kd = 0: M_1 is divided by it; moving_flow is not")
    still, moved = _flow_parts(w_kq, demonstration, query)
    moved = moved / own
    return jnp.stack([(still**2).sum(), (still * moved).sum(), (moved**2).sum()])


@functools.partial(jax.jit, static_argnames="num_layers")
def _gains(coupling: Array, num_layers: int) -> tuple[Array, Array]:  # [L+1], [L+1]
    """A_l and ∂A_l/∂κ."""

    def layer(state: tuple[Array, Array, Array], _: None) -> tuple[tuple, tuple[Array, Array]]:
        size, gain, bend = state  # ρ, A, ∂A/∂κ
        cube, slope = size**3, gain + coupling * bend  # slope: ∂ρ/∂κ
        gain, bend = gain + cube, bend + 3 * size**2 * slope
        return (size + coupling * cube, gain, bend), (gain, bend)

    start = (jnp.ones_like(coupling), jnp.zeros_like(coupling), jnp.zeros_like(coupling))
    _, gains = jax.lax.scan(layer, start, length=num_layers)
    first, second = (jnp.pad(gain, (1, 0)) for gain in gains)
    return first, second


def _flow_parts(w_kq: Array, demonstration: Array, query: Array) -> tuple[Array, Array]:
    """M_0 and d·Kd times M_1."""
    identity = jnp.eye(len(query), dtype=jnp.result_type(query))
    still = one_shot_jacobian(w_kq, identity, demonstration, query)
    coupled = demonstration @ (w_kq + w_kq.T)
    return still, relevance(w_kq, demonstration, query) * jnp.outer(demonstration, coupled)


def _check_along(w_pv: Array, demonstration: Array) -> None:
    if not (is_concrete(w_pv) and is_concrete(demonstration)):
        return
    weights, d = np.asarray(w_pv, float), np.asarray(demonstration, float)
    written, length = weights @ d, np.linalg.norm(d)
    across = written - (d @ written) * d / (length**2 or 1)
    if np.linalg.norm(across) > _ROUNDING * np.linalg.norm(weights) * length:
        raise ValueError("P d is not along d: the demonstration leaves its ray; take P = λI")
