"""Second moments sampled without tokens (Bartlett) are distributed as those of tokens.

Means and second moments agree to 5 standard errors of their difference; distributions agree by the
tests of Kolmogorov and Smirnov. docs/theory, "Moments without tokens".
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ks_2samp

from lsa_lab import prompts
from lsa_lab.tasks.linear import LinearTask, sample, sample_batch, sample_moments_batch

DRAWS = 60_000
COVARIANCE = np.array([[1.0, 0.3, -0.2], [0.3, 0.7, 0.1], [-0.2, 0.1, 1.5]])
TASKS = {
    "many": LinearTask(9, 3, noise_std=0.5, covariance=COVARIANCE, prior_mean=np.arange(3.0)),
    "few": LinearTask(3, 4, sparsity=2, noise_std=0.3, signal="flat"),
}


@functools.partial(jax.jit, static_argnames="way")
def sample_draws(key, task, way):  # [draws, e, e], [draws, d], [draws]
    if way == "moments":
        moment, x_query, y_query = sample_moments_batch(key, task, DRAWS)
        return jnp.moveaxis(moment, -1, 0), x_query.T, y_query
    if way == "batch":
        batch = sample_batch(key, task, DRAWS)
    else:
        batch = jax.vmap(lambda key: sample(key, task))(jax.random.split(key, DRAWS))
    return jax.vmap(prompts.second_moment)(batch), batch.x_query, batch.y_query


@functools.cache
def draw(name, way):
    return jax.device_get(sample_draws(jax.random.key(len(way)), TASKS[name], way))


def entries(moment, x_query, y_query):  # [draws, statistics]
    """All entries of S_0, the query and its label, and the trace in units of the covariance."""
    d = x_query.shape[1]
    shape = COVARIANCE if d == 3 else np.eye(d)
    trace = np.einsum("bij,ji->b", moment[:, :d, :d], np.linalg.inv(shape))
    return np.column_stack([moment[:, *np.triu_indices(d + 1)], x_query, y_query, trace])


def worst_error(first, second):
    """The largest difference of first or second moments, in standard errors."""
    differences, variances = 0, 0
    for rows, sign in ((first, 1), (second, -1)):
        rows = np.column_stack([np.ones(DRAWS), rows])  # the first moments are products with 1
        means = rows.T @ rows / DRAWS
        differences += sign * means
        variances += ((rows**2).T @ rows**2 / DRAWS - means**2) / DRAWS
    return (np.abs(differences) / np.sqrt(np.maximum(variances, 1e-20))).max()


def least_p_value(*draws):
    """Of the eigenvalues of S_0, the entries of its label row, and the query's label."""
    statistics = []
    for moment, _, y_query in draws:
        eigenvalues = np.linalg.eigvalsh(moment)
        eigenvalues[eigenvalues < 1e-12] = 0  # where the rank is below e, they are rounding errors
        statistics.append([*eigenvalues.T, *moment[:, -1].T, y_query])
    pairs = zip(*statistics, strict=True)
    return min(ks_2samp(*pair, method="asymp").pvalue for pair in pairs) * len(statistics[0])


@pytest.mark.parametrize("name", TASKS)
def test_means_second_moments_and_distributions_agree(name):
    tokens, *others = (draw(name, way) for way in ("tokens", "batch", "moments"))
    for other in others:
        assert worst_error(entries(*other), entries(*tokens)) < 5
        assert least_p_value(other, tokens) > 1e-6


def test_control_one_percent_of_variance_and_a_label_of_two_sizes_are_noticed():
    moment, x_query, y_query = draw("many", "moments")
    scaled = 1.01 * moment, np.sqrt(1.01) * x_query, y_query
    assert worst_error(entries(*scaled), entries(*draw("many", "tokens"))) > 5
    sizes = np.random.default_rng(0).choice([0.25, 1.75], DRAWS) ** 0.5  # of the same variance
    assert least_p_value((moment, x_query, sizes * y_query), draw("many", "tokens")) < 1e-6
