"""Where the task drifts, E ŵ·w is multiplied by ρ after every step, and nothing else changes.

docs/theory, "Layers that follow a drifting task"; derived here. Sides: recurrent layers, on every
point of a Gauss-Hermite rule and on drawn prompts; the recursions. Hypotheses: Gaussian covariates,
w_{t+1} = ρ w_t + √((1 - ρ²)/d) z_t.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab import prompts
from lsa_lab.models import recurrent
from lsa_lab.tasks.linear import LinearTask, sample_batch
from lsa_lab.theory import drift, learning_curves
from population import constant_layer, gauss_hermite

N, D, NOISE = 3, 2, 0.3


@jit_numpy
def exact_risk(step, gate, scale, rho):  # of an LMS layer after three tokens -> []
    points, masses = gauss_hermite([3] * (N * D))
    params, config = constant_layer("lms", D, step, gate, scale)
    lags = np.abs(np.subtract.outer(np.arange(N + 1.0), np.arange(N + 1.0)))
    root = jnp.linalg.cholesky(rho**lags) / D**0.5  # w_t = Σ_m root_tm z_m

    def answer(x, y):  # [D]: to each unit query
        rows = jnp.concatenate([x, y[:, None]], 1)
        lasts = jnp.eye(D, D + 1)[:, None]
        return jax.vmap(
            lambda last: recurrent.predict(params, jnp.concatenate([rows, last]), config)
        )(lasts)

    def errors(x):
        def of_task(z):  # a unit in one place, for all is linear in it
            tasks = root @ z
            return ((answer(x, (tasks[:-1] * x).sum(1)) - tasks[-1]) ** 2).sum()

        units = jnp.eye((N + 1) * D).reshape(-1, N + 1, D)
        noise = jax.vmap(lambda unit: (answer(x, unit) ** 2).sum())(jnp.eye(N)).sum()
        return jax.vmap(of_task)(units).sum() + NOISE * noise

    return masses @ jax.lax.map(errors, points.reshape(-1, N, D), batch_size=81)


@pytest.mark.parametrize("numbers", [(0.2, 0.7, 0.9, 0.8), (0.4, 1 - 1e-9, 0.6, 0.5)])
def test_least_mean_squares_follows_its_recursion(numbers):
    *free, rho = numbers
    risk = exact_risk(*numbers)
    curve = learning_curves.lms(N, D, NOISE, *free, drift=rho)
    np.testing.assert_allclose(risk, curve[-1], rtol=1e-7)
    same = learning_curves.lms(N, D, NOISE, *free, np.ones(D), drift=rho)
    np.testing.assert_allclose(curve, same, rtol=1e-12)
    other = learning_curves.lms(N, D, NOISE, *free, drift=rho - 0.1)[-1]
    assert abs(other - risk) > 1e-2  # Control


@partial(jit_numpy, static_argnums=(0, 1))
def errors_of(kind, task, step, gate, scale, key):  # [B]
    batch = sample_batch(key, task, 40_000)
    params, config = constant_layer(kind, task.d, step, gate, scale)
    rows = jax.vmap(prompts.tokens)(batch)
    answers = jax.lax.map(lambda one: recurrent.predict(params, one, config), rows, batch_size=4000)
    return (answers - batch.y_query) ** 2


@pytest.mark.parametrize("kind", ["lms", "gated_delta"])
def test_layers_on_drawn_prompts_have_the_predicted_risk(kind):
    d, noise_var, rho, n = 4, 0.25, 0.8, 16
    best = getattr(drift, kind)(d, noise_var, rho)
    task = LinearTask(n, d, noise_std=noise_var**0.5, weight_std=d**-0.5, drift=rho)
    errors = errors_of(kind, task, best.step, best.gate, best.scale, jax.random.key(0))
    curve = getattr(learning_curves, kind)
    stated = curve(n, d, noise_var, best.step, best.gate, best.scale, drift=rho)[-1]
    assert abs(errors.mean() - stated) < 4 * errors.std() / 200
    np.testing.assert_allclose(stated, best.risk, rtol=1e-2)  # 16 are many where ρ is .8
    other = curve(n, d, noise_var, best.step, best.gate, best.scale, drift=0.9)[-1]
    assert abs(errors.mean() - other) > 8 * errors.std() / 200  # Control
