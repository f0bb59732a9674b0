"""Second moments sampled without tokens (Bartlett) are distributed as those of tokens.

Means and second moments agree to 5 standard errors of their difference; distributions agree in
simultaneous Dvoretzky-Kiefer-Wolfowitz bands. docs/theory, "Moments without tokens".
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import prompts
from lsa_lab.tasks.linear import LinearTask, sample, sample_batch, sample_moments_batch

DRAWS = 100_000
COVARIANCE = np.array([[1.0, 0.3, -0.2], [0.3, 0.7, 0.1], [-0.2, 0.1, 1.5]])
TASKS = {
    "many": LinearTask(9, 3, noise_std=0.5, covariance=COVARIANCE, prior_mean=np.arange(3.0)),
    "few": LinearTask(3, 4, sparsity=2, noise_std=0.3),
    "square": LinearTask(4, 3, signal="flat"),
}
names = pytest.mark.parametrize("name", TASKS)
ways = pytest.mark.parametrize("way", ["moments", "batch"])


@functools.partial(jax.jit, static_argnames="way")
def draw(key, task, way):  # [draws, e, e], [draws, d], [draws]
    if way == "moments":
        moment, x_query, y_query = sample_moments_batch(key, task, DRAWS)
        return jnp.moveaxis(moment, -1, 0), x_query.T, y_query
    if way == "batch":
        batch = sample_batch(key, task, DRAWS)
    else:
        batch = jax.vmap(lambda key: sample(key, task))(jax.random.split(key, DRAWS))
    return jax.vmap(prompts.second_moment)(batch), batch.x_query, batch.y_query


@functools.cache
def batch(name, way):
    return jax.device_get(draw(jax.random.key(len(way)), TASKS[name], way))


def entries(draws):  # [draws, statistics]
    """All entries of S_0, the query and its label, and the trace in units of the covariance."""
    moment, x_query, y_query = draws
    d = x_query.shape[1]
    shape = COVARIANCE if d == 3 else np.eye(d)
    trace = np.einsum("bij,ji->b", moment[:, :d, :d], np.linalg.inv(shape))
    return np.column_stack([moment[:, *np.triu_indices(d + 1)], x_query, y_query, trace])


def marginals_of(moment, _, y_query):  # [statistics, draws], each in order
    """The eigenvalues of S_0, the entries of its label row, and the query's label."""
    eigenvalues = np.linalg.eigvalsh(moment)
    eigenvalues[eigenvalues < 1e-12] = 0  # where the rank is below e, they are rounding errors
    return np.sort([*eigenvalues.T, *moment[:, -1].T, y_query])


marginals = functools.cache(lambda name, way: marginals_of(*batch(name, way)))


def worst_error(first, second):
    """The largest difference of first or second moments, in standard errors."""
    differences, variances = 0, 0
    for rows, sign in ((first, 1), (second, -1)):
        rows = np.column_stack([np.ones(DRAWS), rows])  # the first moments are products with 1
        means = rows.T @ rows / DRAWS
        differences += sign * means
        variances += ((rows**2).T @ rows**2 / DRAWS - means**2) / DRAWS
    return (np.abs(differences) / np.sqrt(np.maximum(variances, 1e-20))).max()


def leaves_a_band(first, second, probability=1e-6):
    """Is any distribution function further off than equal distributions are with probability?"""
    band = 2 * np.sqrt(np.log(4 * len(first) / probability) / (2 * DRAWS))
    for a, b in zip(first, second, strict=True):
        at = np.concatenate([a, b])
        below = [np.searchsorted(values, at, side="right") for values in (a, b)]
        if np.abs(below[0] - below[1]).max() / DRAWS > band:
            return True
    return False


@ways
@names
def test_means_second_moments_and_distributions_agree(name, way):
    assert worst_error(entries(batch(name, way)), entries(batch(name, "tokens"))) < 5
    assert not leaves_a_band(marginals(name, way), marginals(name, "tokens"))


def test_control_one_percent_of_variance_is_caught():
    moment, x_query, y_query = batch("many", "moments")
    scaled = 1.01 * moment, np.sqrt(1.01) * x_query, y_query
    assert worst_error(entries(scaled), entries(batch("many", "tokens"))) > 5


def test_control_signs_in_place_of_normals_leave_the_bands():
    rng = np.random.default_rng(0)
    x, w = (rng.choice([-1.0, 1.0], (DRAWS, rows, 3)) for rows in (5, 1))
    rows, query = np.split(np.concatenate([x, x @ w.swapaxes(1, 2)], 2), [4], axis=1)
    signs = marginals_of(rows.swapaxes(1, 2) @ rows / 4, None, query[:, 0, 3])
    assert leaves_a_band(marginals("square", "moments"), signs)
