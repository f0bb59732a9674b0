"""Descent with a step size of its own for each prompt does not feel the scale of the covariates.

docs/theory, "Symmetries of predictions". Sides: descent with steps a/λ_max(H) on demonstrations
(cx, cy); the same on (x, y). With a step that is fixed it does feel it.
"""

import numpy as np

from draws import differ, on_host, regression, seeded
from lsa_lab import estimators

L, D, N = 5, 6, 3
largest_step, descent = on_host(estimators.largest_step), on_host(estimators.gradient_descent)


def difference(seed, factor, share, own_step=True):
    """Largest change of any weight, after any step, over one more than the largest weight."""
    prompt = regression(np.random.default_rng(seed), N, D)
    scaled = prompt.replace(x=factor * prompt.x, y=factor * prompt.y)
    steps = [largest_step(each.x) for each in (prompt, scaled if own_step else prompt)]
    before, after = (
        descent(each, np.full(L, share * step))
        for each, step in zip((prompt, scaled), steps, strict=True)
    )
    return differ(after, before)


@seeded(factor=(0.2, 5.0), share=(0.1, 1.9))
def test_weights_are_the_same_at_every_scale(seed, factor, share):
    assert difference(seed, factor, share) < 1e-10


def test_control_a_fixed_step_feels_the_scale():
    assert min(difference(seed, 1.3, 0.5, own_step=False) for seed in range(9)) > 1e-3
