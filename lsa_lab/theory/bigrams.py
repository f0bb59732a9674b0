"""Risks E |p̂ - p|² of rules for the next symbol, by the visits m of the current one of K symbols.

Its row p is Dirichlet(c, ..., c), of variance v = (1 - 1/K)/(Kc + 1), and e_1, ..., e_m are draws
from p, one-hot (derived here; docs/theory, "Bigram tables").
"""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import Real, check_positive
from lsa_lab.theory.domains import UNIT_STEP, check_domain


def counting(visits: ArrayLike, num_symbols: int, concentration: Real, weight: ArrayLike) -> Array:
    """Return v(1 - ωm)² + Kcv ω²m of p̂ = 1/K + ω Σ (e_i - 1/K): ω is one number for linear
    attention, 1/(m + Kc) for the Dirichlet-Bayes table."""
    m, weight = jnp.asarray(visits, float), jnp.asarray(weight, float)
    return _add_noise(num_symbols, concentration, weight * m, weight**2 * m)


def delta_rule(
    visits: ArrayLike, num_symbols: int, concentration: Real, step: Real, scale: Real = 1.0
) -> Array:
    """Return v(1 - a(1 - g))² + Kcv a²(1 - g²)β/(2 - β), g = (1 - β)^m, of p̂ = 1/K + as with
    s ← s + β (e - 1/K - s), s = 0 at first, β = ``step`` and a = ``scale``."""
    check_domain("step", step, UNIT_STEP)
    beta, scale = jnp.asarray(step, float), jnp.asarray(scale, float)
    gate = (1 - beta) ** jnp.asarray(visits, float)
    squares = scale**2 * (1 - gate**2) * beta / (2 - beta)
    return _add_noise(num_symbols, concentration, scale * (1 - gate), squares)


def _add_noise(num_symbols: int, concentration: Real, total: Array, squares: Array) -> Array:
    check_positive(concentration, "concentration")
    prior = num_symbols * jnp.asarray(concentration, float)
    return (1 - 1 / num_symbols) / (prior + 1) * ((1 - total) ** 2 + prior * squares)
