"""Recursions along a prompt, by which learning curves are computed."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import Real
from lsa_lab.theory.domains import check


@functools.partial(jax.jit, static_argnums=0)
def iterate(rule: Callable, first: Array, along: Array, *numbers: Any) -> Array:  # [n+1, ...]
    """Return the first value and those after each step of the rule."""

    def step(value: Array, entry: Array) -> tuple[Array, Array]:
        value = rule(value, entry, *numbers)
        return value, value

    return jnp.concatenate([first[None], jax.lax.scan(step, first, along)[1]])


def avoid_zero(denominator: Array) -> Array:
    """Replace a denominator of 0 by 1; the numerator, a risk, is then 0 too."""
    return jnp.where(denominator > 0, denominator, 1.0)


def constant_steps(
    n: int, step: Real, gate: Real, drift: Real, keys: tuple, labels: tuple
) -> Array:  # [n+1]
    """Return r of ŵ ← gŵ + β (v - gŵ·k)k.

    E kkᵀ and E |k|²kkᵀ are the multiples ``keys`` of I; E vk, E v|k|²k and E v²|k|² are the
    multiples of w, w and 1 in ``labels``.
    """
    check(gate=gate, drift=drift)
    beta, g, rho = (jnp.asarray(value, float) for value in (step, gate, drift))
    m, q = iterate(_moment_step, jnp.zeros(2), jnp.zeros(n), beta, g, rho, keys, labels).T
    diverged = ~jnp.isfinite(q) & ~jnp.isnan(q[:2][-1])  # NaN from the first step on stays NaN
    return jnp.where(diverged, jnp.inf, q - 2 * m + 1)


def _moment_step(
    moments: Array, _: Array, beta: Array, g: Array, rho: Array, keys: tuple, labels: tuple
) -> Array:
    (moment, fourth), (product, third, square), (m, q) = keys, labels, moments
    kept = (1 - 2 * beta * moment + beta**2 * fourth) * g**2 * q
    crossed = 2 * beta * (product - beta * third) * g * m
    after = rho * ((1 - beta * moment) * g * m + beta * product)
    return jnp.stack([after, kept + crossed + beta**2 * square])
