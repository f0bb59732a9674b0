"""Estimators on every prefix of a prompt."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import Real, admit, number
from lsa_lab.prompts import Prompt


def prefixes(rule: Callable[[Prompt], Array], prompt: Prompt) -> Array:  # [n+1, d]
    """``rule`` on the first 0, 1, ..., n demonstrations; weights 0 before the first.

    A program for each length is compiled: for ridge take ``recursive_ridge``.
    """
    prompt = admit(prompt)
    n, d = prompt.x.shape
    rows = [jnp.zeros(d, prompt.x.dtype)]
    rows += [rule(prompt.replace(x=prompt.x[:t], y=prompt.y[:t])) for t in range(1, n + 1)]
    return jnp.stack(rows)


def recursive_ridge(prompt: Prompt, penalty: Real) -> Array:  # [n+1, d]
    """The minimiser of |y - Xw|² + penalty |w|² over the first 0, 1, ..., n demonstrations.

    With penalty dσ² the Bayes rule for w ~ N(0, I/d) at every length, by recursive least squares:
    K = Px/(1 + xᵀPx), w ← w + K(y - w·x), P ← P - K(Px)ᵀ from P = I/penalty (classical).
    """
    prompt = admit(prompt)
    advice = "without one the first steps have no minimiser"
    penalty = number(penalty, "penalty", prompt, advice)

    def step(carried: tuple[Array, Array], row: tuple[Array, Array]) -> tuple[tuple, Array]:
        (inverse, weights), (x, y) = carried, row
        moved = inverse @ x
        gain = moved / (1 + x @ moved)
        weights = weights + gain * (y - weights @ x)
        return (inverse - gain[:, None] * moved[None], weights), weights

    d, dtype = prompt.x.shape[1], prompt.x.dtype
    first = jnp.eye(d, dtype=dtype) / penalty, jnp.zeros(d, dtype)
    later = jax.lax.scan(step, first, (prompt.x, prompt.y))[1]
    return jnp.concatenate([first[1][None], later])
