"""The experiments on training one layer: paths and laws beside plain descent, and risks of drawn
prompts beside those of the simulation."""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

import population
from experiments.one_layer.finite_pretraining import compute as simulation
from experiments.one_layer.training_dynamics import compute

CONFIG = SimpleNamespace(n=4, population_rate=0.05, eigenvalues=(2.0, 0.5))


def case(time=1.0, points=4):
    start = compute.Weights(jnp.asarray(0.6), jnp.diag(jnp.array([0.3, 0.5])))
    return compute.Case("mode", jnp.diag(jnp.array([2.0, 0.5])), start, time, points)


@jax.jit
@partial(jax.grad, argnums=(0, 1))
def slopes(u, diagonal):
    covariance = jnp.diag(jnp.array(CONFIG.eigenvalues))
    return population.one_layer_loss(u * jnp.diag(diagonal), covariance, 4, jnp.array(0.0))


def descend(rate, steps):
    u, diagonal, path = jnp.array(0.6), jnp.array([0.3, 0.5]), []
    for _ in range(steps + 1):
        path.append(u * diagonal)
        of_u, of_diagonal = slopes(u, diagonal)
        u, diagonal = u - rate * of_u, diagonal - rate * of_diagonal
    return np.array(path)


def test_the_population_path_is_descent_read_after_every_stride():
    times, stride = case().times(0.05)
    assert stride == 5
    np.testing.assert_allclose(times, [0, 0.25, 0.5, 0.75, 1], rtol=1e-12)
    path = jax.jit(lambda: compute.population_path(CONFIG, case(), stride))()
    np.testing.assert_allclose(path, descend(0.05, 20)[::5], rtol=1e-10)


def test_the_law_is_descent_with_small_steps():
    law = jax.jit(lambda times: compute.law_path(CONFIG, case(), times))(jnp.array([0.0, 0.5]))
    coarse, fine = descend(1e-3, 500)[-1], descend(5e-4, 1000)[-1]
    np.testing.assert_allclose(law[0], [0.18, 0.3], rtol=1e-9)
    np.testing.assert_allclose(law[1], 2 * fine - coarse, rtol=1e-6)  # Richardson's
    assert np.abs(law[1] - law[0]).min() > 0.05


D, N, NOISE_VAR = 4, 6, 0.3


def prompts_of(rng, w):
    """x_query, (h, s) and y_query of prompts with the tasks w [B, d], from their demonstrations."""
    x = rng.standard_normal((len(w), N + 1, D)) / np.sqrt(D)
    noise = np.sqrt(NOISE_VAR) * rng.standard_normal((len(w), N + 1))
    y = np.einsum("bnd,bd->bn", x, w) + noise
    h = D / N * np.einsum("bn,bnd->bd", y[:, :N], x[:, :N])
    return x[:, N], np.concatenate([h, (y[:, :N] ** 2).mean(1, keepdims=True)], axis=1), y[:, N]


def moments(x_query, read, y_query):
    """Means of the products of all features with each other and of the target with all of them."""
    columns = np.concatenate([read, read**2, y_query[:, None] * x_query * read[:, :-1]], axis=1)
    products = columns[:, :, None] * columns[:, None]
    return products.mean(0), products.std(0) / np.sqrt(len(products))


def test_features_have_the_law_of_those_of_drawn_prompts():
    rng = np.random.default_rng(0)
    tasks = rng.standard_normal((3, D))
    direct = prompts_of(rng, tasks[rng.integers(3, size=50_000)])
    draw = jax.jit(simulation.features, static_argnums=(2, 3, 5))
    features = draw(jax.random.key(0), tasks, N, 3, NOISE_VAR, 50_000)
    (left, left_error), (right, right_error) = moments(*direct), moments(*map(np.asarray, features))
    assert (np.abs(left - right) < 5 * np.hypot(left_error, right_error)).all()


def risks_of(layer, w, rng):
    x_query, read, y = prompts_of(rng, w)
    errors = (y - np.einsum("bi,ij,bj->b", x_query, layer, read)) ** 2
    return errors.mean(), errors.std() / np.sqrt(len(errors))


def test_risks_of_a_layer_are_its_mean_squared_errors():
    rng = np.random.default_rng(1)
    tasks, layer = rng.standard_normal((5, D)), 0.3 * rng.standard_normal((D, D + 1))
    layer += 0.7 * np.eye(D, D + 1)  # as a trained one: the terms with its trace are not small
    exact = jax.jit(simulation.risks_of, static_argnums=3)(
        layer, tasks, np.arange(5) < 3, N, NOISE_VAR
    )
    new = risks_of(layer, rng.standard_normal((400_000, D)), rng)
    old = risks_of(layer, tasks[rng.integers(3, size=400_000)], rng)
    for risk, (mean, error) in zip(exact, (new, old), strict=True):
        assert abs(float(risk) - mean) < 4 * error
        assert error < 0.01 * mean
