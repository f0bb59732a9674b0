"""The experiment on training: its paths and laws beside plain descent on a loss from moments."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

import population
from experiments.one_layer.training_dynamics import paths

CONFIG = SimpleNamespace(n=4, population_rate=0.05, eigenvalues=(2.0, 0.5))


def case(time=1.0, points=4):
    start = paths.Weights(jnp.asarray(0.6), jnp.diag(jnp.array([0.3, 0.5])))
    return paths.Case("mode", jnp.diag(jnp.array([2.0, 0.5])), start, time, points)


def slopes(u, diagonal):  # of ½ [Σ γ λ³ a² - 2 λ² a + λ], a = u diag(U)
    eigenvalues = np.array(CONFIG.eigenvalues)
    gamma = eigenvalues * (1 + 1 / 4) + 2.5 / 4
    slope = gamma * eigenvalues**2 * u * diagonal - eigenvalues**2
    return slope @ diagonal, slope * u


def descend(rate, steps):
    u, diagonal, path = 0.6, np.array([0.3, 0.5]), []
    for _ in range(steps + 1):
        path.append(u * diagonal)
        of_u, of_diagonal = slopes(u, diagonal)
        u, diagonal = u - rate * of_u, diagonal - rate * of_diagonal
    return np.array(path)


def test_slopes_here_are_those_of_the_loss_by_moments():
    def loss(u, diagonal):
        covariance = jnp.diag(jnp.array(CONFIG.eigenvalues))
        return population.one_layer_loss(u * jnp.diag(diagonal), covariance, 4, jnp.array(0.0))

    point = jnp.asarray(0.6), jnp.array([0.3, 0.5])
    for exact, own in zip(
        jax.jit(jax.grad(loss, (0, 1)))(*point), slopes(0.6, point[1]), strict=True
    ):
        np.testing.assert_allclose(exact, own, rtol=1e-10)


def test_the_population_path_is_descent_read_after_every_stride():
    times, stride = case().times(0.05)
    assert stride == 5
    np.testing.assert_allclose(times, [0, 0.25, 0.5, 0.75, 1], rtol=1e-12)
    path = jax.jit(lambda: paths.population_path(CONFIG, case(), stride))()
    np.testing.assert_allclose(path, descend(0.05, 20)[::5], rtol=1e-10)


def test_the_law_is_descent_with_small_steps():
    law = jax.jit(lambda times: paths.law_path(CONFIG, case(), times))(jnp.array([0.0, 0.5]))
    coarse, fine = descend(1e-3, 500)[-1], descend(5e-4, 1000)[-1]
    np.testing.assert_allclose(law[0], [0.18, 0.3], rtol=1e-9)
    np.testing.assert_allclose(law[1], 2 * fine - coarse, rtol=1e-6)  # Richardson's
    assert np.abs(law[1] - law[0]).min() > 0.05
