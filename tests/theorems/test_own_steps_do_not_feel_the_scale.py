"""Descent with a step size of its own for each prompt does not feel the scale of the covariates.

docs/theory, "Symmetries of predictions". Sides: descent with steps a/λ_max(H) on demonstrations
(cx, cy); the same on (x, y). With a step that is fixed it does feel it.
"""

from functools import partial

import jax
import jax.numpy as jnp

from draws import seeded
from lsa_lab import estimators
from lsa_lab.tasks.linear import LinearTask, sample

SHAPE = (5, 6, 3)  # L, d, n


@partial(jax.jit, static_argnames=("shape", "own_step"))
def difference(seed, shape, factor, share, own_step=True):
    """Largest change of any weight, after any step, relative to the largest weight or 1."""
    num_steps, d, n = shape
    prompt = sample(jax.random.key(seed), LinearTask(n, d, noise_std=0.3))
    scaled = prompt.replace(x=factor * prompt.x, y=factor * prompt.y)
    step = estimators.largest_step(prompt.x)
    own = estimators.largest_step(scaled.x) if own_step else step
    before, after = (
        estimators.gradient_descent(demonstrations, jnp.full(num_steps, share * size))
        for demonstrations, size in ((prompt, step), (scaled, own))
    )
    return jnp.max(jnp.abs(after - before)) / (1 + jnp.max(jnp.abs(before)))


@seeded(factor=(0.2, 5.0), share=(0.1, 1.9))
def test_weights_are_the_same_at_every_scale(seed, factor, share):
    assert difference(seed, SHAPE, factor, share) < 1e-10


def test_control_a_fixed_step_feels_the_scale():
    assert min(difference(seed, SHAPE, 1.3, 0.5, own_step=False) for seed in range(9)) > 1e-3
