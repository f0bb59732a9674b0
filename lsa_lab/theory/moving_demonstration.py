"""Closed forms of A1 for one demonstration that moves: its flow through layers that write it along
itself.

``amplification.frozen_demonstration`` holds the demonstration still. Here it reads itself as the
query reads it, and stays on its ray because w_pv d is a multiple of d, always so for w_pv = λI. The
layers are equal, masked, and not normalised. With the self-coupling κ = d·K P d,

    d_l = ρ_l d,    ρ_{l+1} = ρ_l + κ ρ_l³,    ρ_0 = 1,

so that the geometric gain of the frozen demonstration becomes a cubic one (derived here;
docs/theory, "The moving demonstration", "Depth amplifies what is longer and better aligned").
"""

import chex
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import as_floats, check_at_least
from lsa_lab.theory.amplification import contribution, one_shot_jacobian, self_coupling


def cubic_gains(coupling: Array, num_layers: int) -> tuple[Array, Array]:  # [L+1], [L+1]
    """A_l = (ρ_l - 1)/κ = Σ_{j<l} ρ_j³, which is l at κ = 0, and B_l = κ ∂A_l/∂κ.

    A_l is the gain of the contribution. For κ_1 > κ_2 > -1 the ratio of two grows with every layer,
    as that of two geometric gains does.
    """
    chex.assert_shape(coupling, (), custom_message="κ is a number; use jax.vmap")
    check_at_least(num_layers, "num_layers", 0)
    coupling = as_floats(coupling)

    def layer(state: tuple[Array, Array, Array], _: None) -> tuple[tuple, tuple[Array, Array]]:
        size, gain, slope = state  # ρ, A, ∂ρ/∂κ
        cube = size**3
        gain, slope = gain + cube, slope * (1 + 3 * coupling * size**2) + cube
        return (size + coupling * cube, gain, slope), (gain, slope - gain)

    start = (jnp.ones_like(coupling), jnp.zeros_like(coupling), jnp.zeros_like(coupling))
    _, gains = jax.lax.scan(layer, start, length=num_layers)
    first, second = (jnp.pad(gain, (1, 0)) for gain in gains)
    return first, second


def moving_demonstration(
    w_kq: Array, w_pv: Array, demonstration: Array, query: Array, num_layers: int
) -> Array:  # [L+1, e]
    """The query's token after each of L equal layers: q_l = q + A_l s P d, where P d is along d."""
    gain, _ = cubic_gains(self_coupling(w_kq, w_pv, demonstration), num_layers)
    return query[None] + gain[:, None] * contribution(w_kq, w_pv, demonstration, query)[None]


def moving_flow(
    w_kq: Array, scale: Array, demonstration: Array, query: Array, num_layers: int
) -> Array:  # [L+1, e, e], the output's axis first
    """J_l = ∂q_l/∂d = λ (A_l M_0 + B_l M_1) for P = λI, λ = ``scale``, where d·Kd is not 0.

    M_0 = sI + d (Kq)ᵀ, which is Eq. 2, and M_1 = (s/d·Kd) d ((K + Kᵀ)d)ᵀ, what the demonstration
    gains by moving.
    """
    coupling = scale * (demonstration @ w_kq @ demonstration)
    gains = [gain[:, None, None] for gain in cubic_gains(coupling, num_layers)]
    still, moved = _flow_parts(w_kq, demonstration, query)
    return scale * (gains[0] * still[None] + gains[1] * moved[None])


def flow_terms(w_kq: Array, demonstration: Array, query: Array) -> Array:  # [3]
    """a = |M_0|², b = M_0·M_1 and c = |M_1|²: |J_l|² = λ² (a A_l² + 2b A_l B_l + c B_l²).

    The ratio of two flows grows with every layer if κ_1 > κ_2 ≥ 0, b_1, b_2 ≥ 0, b_1 a_2 ≥ b_2 a_1
    and c_1 b_2 ≥ c_2 b_1. For K = kI: a = k²|d|²|q|² ((e+2) cos² + 1) and b = c =
    4 k²|d|²|q|² cos².
    """
    still, moved = _flow_parts(w_kq, demonstration, query)
    return jnp.stack([(still**2).sum(), (still * moved).sum(), (moved**2).sum()])


def _flow_parts(w_kq: Array, demonstration: Array, query: Array) -> tuple[Array, Array]:
    identity = jnp.eye(len(query), dtype=jnp.result_type(query))
    still = one_shot_jacobian(w_kq, identity, demonstration, query)
    coupled = demonstration @ (w_kq + w_kq.T)
    per_reading = 2 * (demonstration @ w_kq @ query) / (coupled @ demonstration)
    return still, per_reading * jnp.outer(demonstration, coupled)
