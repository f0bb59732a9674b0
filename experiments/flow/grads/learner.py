"""The learner that answers a query with the demonstrations it is given, and its errors."""

import jax
import jax.numpy as jnp
from jax import Array

from experiments.flow.grads.cases import Case
from lsa_lab import estimators
from lsa_lab.prompts import Prompt


def learn(case: Case, rows: Array, kept: Array, steps: int) -> Array:  # [n, e], [n] -> [d]
    """Steps of 1/λ_max from w_0 on the rows that are kept: ``prior_attention`` with step sizes of
    the prompt's own. A mean over n and one over those kept have the same path."""
    x = kept[:, None] * rows[:, :-1]
    missing = kept * (rows[:, -1] - rows[:, :-1] @ case.prior)
    prompt = Prompt(x, missing, case.x_query, case.y_query)
    return case.prior + estimators.gradient_descent(prompt, jnp.full(steps, fair_step(x)))[-1]


def squared_error(case: Case, rows: Array, kept: Array, steps: int) -> Array:  # []
    return (learn(case, rows, kept, steps) @ case.x_query - case.y_query) ** 2


def errors_after(case: Case, orders: Array, shots: tuple[int, ...], steps: int) -> Array:
    """Squared errors [N, K] after the first k demonstrations of every order [N, size]."""
    first = jnp.arange(orders.shape[1])[None] < jnp.array(shots)[:, None]

    def error(order: Array, kept: Array) -> Array:  # []
        return squared_error(case, case.pool[order], kept.astype(case.pool.dtype), steps)

    return jax.vmap(jax.vmap(error, (None, 0)), (0, None))(orders, first)


def fair_step(x: Array) -> Array:  # []
    """1/λ_max(XᵀX/n), 0 where x is, to a percent: λ_max is tr HP with P = H^128 / tr H^128, for
    batched LAPACK calls are slower than seven products."""

    def scaled(matrix: Array) -> Array:
        trace = jnp.trace(matrix)
        return matrix / jnp.where(trace > 0, trace, 1)

    gram = x.T @ x / len(x)
    power = jax.lax.fori_loop(0, 7, lambda _, power: scaled(power @ power), scaled(gram))
    largest = (gram * power).sum()
    return jnp.where(largest > 0, 1 / jnp.where(largest > 0, largest, 1), 0)
