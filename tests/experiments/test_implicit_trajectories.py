"""`implicit_trajectories`: paths of algorithms and distances from them, beside loops; `common_map`:
what one matrix for all tokens misses, beside least squares."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.descent.common_map.compute import measure
from experiments.descent.implicit_trajectories.compute import PATHS, compare
from experiments.descent.implicit_trajectories.config import ALGORITHMS
from lsa_lab.prompts import Prompt

D, N, P = 2, 4, 3
rng = np.random.default_rng(0)
PROMPTS = Prompt(*(rng.normal(size=(P, *shape)) for shape in ((N, D), (N,), (D,), ())))
STEPS, GAMMAS, LOGS = np.array([0.4, 0.7]), np.array([0.2, 0.1]), np.array([0.5, -1.0])
MATRICES = rng.normal(size=(2, D, D))
PARAMETERS = dict(zip(ALGORITHMS, (STEPS, (STEPS, GAMMAS), MATRICES, LOGS, LOGS), strict=True))


def paths_by_loops(x, y):  # -> [A, 3, d]
    h, r, eye = x.T @ x / N, x.T @ y / N, np.eye(D)
    paths = {name: [np.zeros(D)] for name in ALGORITHMS}
    turn, inverse = eye, np.exp(LOGS[0]) * h / np.trace(h @ h)
    for t in range(2):
        w = {name: path[-1] for name, path in paths.items()}
        paths["GD"].append(w["GD"] - STEPS[t] * (h @ w["GD"] - r))
        plus_plus = w["GD++"] - STEPS[t] * turn @ turn @ (h @ w["GD++"] - r)
        paths["GD++"].append(plus_plus)
        turn = (eye - GAMMAS[t] * turn @ h @ turn) @ turn
        name = "preconditioned GD"
        paths[name].append(w[name] - MATRICES[t] @ (h @ w[name] - r))
        paths["Newton"].append(inverse @ r)
        inverse = 2 * inverse - inverse @ h @ inverse
        paths["ridge"].append(np.linalg.solve(h + np.exp(LOGS[t]) * eye, r))
    return np.stack([paths[name] for name in ALGORITHMS])


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_path_is_its_loop(name):
    prompt = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), PROMPTS)
    path = jax.jit(PATHS[name])(prompt, jax.tree.map(jnp.asarray, PARAMETERS[name]))
    expected = paths_by_loops(PROMPTS.x[0], PROMPTS.y[0])[ALGORITHMS.index(name)]
    np.testing.assert_allclose(path, expected, atol=1e-12)


def test_distances_are_means_over_prompts_of_every_layer_from_every_step():
    predictions, weights = rng.normal(size=(P, 3)), rng.normal(size=(P, 3, D))
    paths = np.stack([paths_by_loops(*pair) for pair in zip(PROMPTS.x, PROMPTS.y, strict=True)])
    answers = jax.tree.map(jnp.asarray, (PROMPTS, predictions, weights))
    apart, size, risk, rival = jax.jit(compare)(jax.tree.map(jnp.asarray, PARAMETERS), answers)
    prediction, sensitivity, cosine = np.zeros((3, 5, 3, 3))
    for p, a, t, s in np.ndindex(P, 5, 3, 3):
        own, step = weights[p, t], paths[p, a, s]
        prediction[a, t, s] += abs(predictions[p, t] - step @ PROMPTS.x_query[p]) / P
        sensitivity[a, t, s] += np.linalg.norm(own - step) / P
        if s:  # no angle with the zero at which paths begin
            cosine[a, t, s] += own @ step / np.linalg.norm(own) / np.linalg.norm(step) / P
    np.testing.assert_allclose(apart.prediction, prediction)
    np.testing.assert_allclose(apart.sensitivity, sensitivity)
    np.testing.assert_allclose(apart.cosine, cosine)
    np.testing.assert_allclose(
        size, [np.linalg.norm(weights[:, t], axis=1).mean() for t in (0, 1, 2)]
    )
    np.testing.assert_allclose(risk, ((predictions[:, -1] - PROMPTS.y_query) ** 2).mean())
    ridge = np.array([paths[p, -1, -1] @ PROMPTS.x_query[p] for p in range(P)])
    np.testing.assert_allclose(rival, ((ridge - PROMPTS.y_query) ** 2).mean())


def missed(before, after):
    """The norm of what no matrix explains of the rows after a layer."""
    return np.linalg.norm(after - before @ np.linalg.lstsq(before, after, rcond=None)[0])


def test_what_a_common_map_misses_is_the_residual_of_least_squares():
    stream = np.random.default_rng(0).normal(size=(1 + 4, 3, 5, 3))  # 1 + m, L + 1, T, e
    values = jax.jit(measure)(jnp.asarray(stream))
    for t in (1, 2):
        of_tokens = missed(stream[0, 0], stream[0, t])
        of_queries = missed(stream[1:, 0, -1], stream[1:, t, -1])
        expected = (
            of_tokens / np.linalg.norm(stream[0, t]),
            of_queries / np.linalg.norm(stream[1:, t, -1]),
            of_tokens / np.linalg.norm(stream[0, t] - stream[0, 0]),
        )
        np.testing.assert_allclose(values[:, t - 1], expected)
