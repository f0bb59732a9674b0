"""`many_shots`: its descent, its softmax errors, and what its panels draw of known errors."""

import jax
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from experiments.matching.many_shots import compute, figure
from experiments.matching.many_shots.config import TIERS
from experiments.models.model import Model
from experiments.models.named import named
from lsa_lab import prompts
from lsa_lab.models import linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.store import results
from lsa_lab.tasks import linear

TINY = TIERS["smoke"]


def test_descent_takes_the_best_single_step_in_every_layer_of_every_run():
    params = compute.descent(TINY)
    assert params.w_kq.shape[:2] == (TINY.runs, TINY.depth) == (2, 2)
    rng = np.random.default_rng(0)
    x, y, query, w = rng.normal(size=(4, 2)), rng.normal(size=4), rng.normal(size=2), np.zeros(2)
    for _ in range(2):
        w = w + x.T @ (y - x @ w) / 4 / (1 + 3.25 / 4)
    rows = np.column_stack([np.concatenate([x, query[None]]), np.append(y, 0.0)])
    last = jax.tree.map(lambda leaf: leaf[1], params)
    np.testing.assert_allclose(predict(linear_attention.forward(last, rows)), w @ query)


def test_softmax_errors_are_medians_of_runs_and_shares_of_wrong_signs(monkeypatch):
    answers = {
        "real": (np.array([[1.0, 4, 2], [0, 0, 9]]), np.array([[2.0, 1, 4], [0, 3, 3]])),
        "signs": (np.array([[0.2, -0.3, 0.0], [1, 1, -1]]), np.array([[1.0, 1, 1], [1, 1, -1]])),
    }
    monkeypatch.setattr(compute, "softmax_answers", lambda c, m, n, labels, keys: answers[labels])
    medians, wrong = compute.softmax_errors(TINY, None, 3, None)
    np.testing.assert_allclose(medians, [4, 9])  # of 1, 9, 4 and of 0, 9, 36
    np.testing.assert_allclose(wrong, [2 / 3, 0])  # an answer of 0 is wrong


@pytest.fixture(scope="module")
def dataset():
    rng = np.random.default_rng(1)
    axes = ("noise", "shots", "run")
    largest = np.array([[0.5, 1.0, 1.0], [1.0, 4.0, 1.0], [8.0, 8.0, 1.0]])  # passes 2 in two runs
    config = dict(results.plain(TINY), noise_std=0.5, shots=[4, 8, 64])
    return xr.Dataset(
        {
            "error": ((*axes, "model", "scaling"), rng.uniform(1, 2, (2, 3, 3, 2, 2))),
            "bayes": (axes, rng.uniform(size=(2, 3, 3))),
            "largest": (axes[1:], largest),
            "softmax": (("few", "run"), rng.uniform(size=(2, 3))),
            "wrong": (("run", "shots", "model"), rng.uniform(size=(3, 3, 2))),
            "softmax_wrong": (("few", "run"), rng.uniform(size=(2, 3))),
        },
        {
            "noise": [0.0, 0.5],
            "shots": [4, 8, 64],
            "few": [4, 8],
            "model": ["descent", "linear"],
            "scaling": ["by n", "fixed"],
        },
        {"config": results.json.dumps(config)},
    )


def points_of(ax):
    return [container.lines[0].get_ydata() for container in ax.containers]


def test_normalised_errors_are_medians_over_runs_beside_the_bayes_rules(dataset):
    ax = Figure().subplots()
    figure.plot_normalised(ax, dataset, 0.5)
    error, softmax = dataset.error.values[1], dataset.softmax.values
    descent, linear, few = points_of(ax)
    np.testing.assert_allclose(descent, np.median(error[:, :, 0, 0], axis=1))
    np.testing.assert_allclose(linear, np.median(error[:, :, 1, 0], axis=1))
    np.testing.assert_allclose(few, np.median(softmax, axis=1))
    bayes = np.median(dataset.bayes.values[1], axis=1)
    assert any(np.array_equal(line.get_ydata(), bayes) for line in ax.lines)


def test_a_fixed_divisor_is_unsafe_where_the_median_run_passes_2(dataset):
    ax = Figure().subplots()
    figure.plot_fixed(ax, dataset, 0.0)
    np.testing.assert_allclose(
        points_of(ax), np.median(dataset.error.values[0, :, :, :, 1], axis=1).T
    )
    # 1 at 8 and 8 at 64 demonstrations: 2 at 16; 1 at 4 and 4 at 8: 2 at 4 √2; never: 64
    places = [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "-."]
    np.testing.assert_allclose(places, [16])
    (zero,) = (line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == ":")
    w, x = np.random.default_rng(2).normal(size=(2, 200_000, TINY.d))
    np.testing.assert_allclose(zero, np.median((w * x).sum(1) ** 2), rtol=0.05)


@pytest.mark.parametrize("own_units", [False, True])
def test_predictions_from_moments_are_those_of_the_model(own_units):
    ((_, spec),) = named("smoke", ["linear attention"])
    assert spec.architecture.own_units
    params = linear_attention.init(jax.random.key(0), spec.architecture.depth, 1, 2, scale=0.5)
    task = linear.LinearTask(6, 2, noise_std=0.5)
    batch = linear.sample_batch(jax.random.key(1), task, 5)
    batch = batch.replace(x=3 * batch.x, x_query=3 * batch.x_query)
    moments = prompts.second_moments(batch)
    ours = compute.predictions(params, own_units, moments, batch.x_query.T, 1.0)
    in_own_units = Model(spec, params).predict(batch)
    np.testing.assert_equal(np.allclose(ours, in_own_units, rtol=1e-10), own_units)
