"""`clipping_search`: the shifted tasks are of the size that is said, and searches get their own."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from experiments.clipping.clipping_search import compute
from experiments.clipping.clipping_search.config import (
    ALGORITHM,
    COMPOSED,
    PATIENT,
    SEARCHES,
    TIERS,
    WIDE,
)
from lsa_lab.models.transformer import Params
from lsa_lab.prompts import Prompt

CONFIG = TIERS["smoke"]  # d = 2, n = 4, short 2, sparsity 1, noise 0.5 and 1
SIZE = 4000

# E x², E |w·x_query|² and the noise that least squares of all pairs leaves.
EXPECTED = {
    "as trained": (1, 2, 0.5),
    "no noise": (1, 2, 0),
    "noise 1": (1, 2, 1),
    "2 shots": (1, 2, None),
    "inputs × 0.5": (0.25, 0.5, 0.5),
    "inputs × 2": (4, 8, 0.5),
    "1 of 2 weights": (1, 2, 0.5),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_shifted_task_has_its_moments(name):
    tasks = compute.shifted_tasks(CONFIG)
    assert list(tasks) == list(EXPECTED)
    batch = compute.draw(jax.random.split(jax.random.key(0), 1), tasks[name], SIZE, CONFIG.n)
    x, y, target = (np.asarray(leaf[0], float) for leaf in (batch.x, batch.y, batch.y_query))
    size, answer, noise = EXPECTED[name]
    assert x.shape == (SIZE, 4, 2)
    np.testing.assert_allclose((x**2).mean(), size, rtol=0.08)
    np.testing.assert_allclose((target**2).mean(), answer, rtol=0.15)
    if noise is None:  # each of two demonstrations twice
        np.testing.assert_array_equal(x[:, :2], x[:, 2:])
        np.testing.assert_array_equal(y[:, :2], y[:, 2:])
        assert (x[:, 0] != x[:, 1]).all()
    else:
        left = y - (x @ (np.linalg.pinv(x) @ y[..., None]))[..., 0]
        np.testing.assert_allclose(2 * (left**2).mean(), noise**2, rtol=0.06, atol=1e-6)


def test_every_search_gets_the_prompts_of_its_run_and_tests_on_the_last():
    config = SimpleNamespace(validation=3)
    rows = np.arange(10).reshape(2, 5), np.arange(100, 108).reshape(2, 4)
    prompts, more = (Prompt(each, each, each, each) for each in rows)
    params = Params(w_q=np.array([7, 8]), w_k=None, w_v=None, w_o=None)

    def way(name):
        def run(risk, model, validation, test):
            return name, risk, int(model.w_q), validation.y.tolist(), test.y.tolist()

        return run

    ways = {name: way(name) for name in compute.searches(CONFIG)}
    outcomes = compute.search_runs(ways, "risk", params, prompts, more, config)
    expected = []
    for run in range(2):
        few, test = [5 * run, 5 * run + 1, 5 * run + 2], [5 * run + 3, 5 * run + 4]
        many = [100 + 4 * run + i for i in range(4)]
        for name in SEARCHES:
            patient = name in PATIENT
            used = ALGORITHM[PATIENT.index(name)] if patient else name
            expected.append((used, "risk", 7 + run, many if patient else few, test))
    assert outcomes == expected
    assert list(ways) == [*ALGORITHM, WIDE, COMPOSED]
