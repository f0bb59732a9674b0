"""The lines of `sparse_risk` go through the means of the runs."""

import json

import numpy as np
import pytest
import xarray as xr

from experiments.heads.sparse_risk import curves
from experiments.heads.sparse_risk.config import DESCENT, PREPROCESSED, RULES, SIGNALS, TIERS
from lsa_lab.harness.draw import style
from lsa_lab.store import results

N = [8, 16, 32]


@pytest.fixture
def ax():
    return style.figure(2, 2)[1][0]


@pytest.fixture(scope="module")
def dataset():
    """Rule r of RULES loses (r + 1) (signal + 1) / n, a tenth more or less in one of two runs."""
    axes = {"signal": list(SIGNALS), "length": N, "rule": list(RULES), "run": [0, 1]}
    scales = (np.arange(2) + 1, 1 / np.array(N), np.arange(len(RULES)) + 1, np.array([0.9, 1.1]))
    values = np.einsum("i,j,k,l->ijkl", *scales)
    own = xr.DataArray(values[0], dims=("n", "rule", "run"), coords={"rule": list(RULES)})
    arrays = {"long": (tuple(axes), values), "by_n": own, "by_n_bound": ("n", 2 / np.array(N))}
    config = {"config": json.dumps(results.plain(TIERS["smoke"]))}
    return xr.Dataset(arrays, axes | {"n": N}, config)


def test_a_curve_is_the_mean_over_runs_where_a_rule_is_to_be_had(ax, dataset):
    risks = dataset.by_n.copy()
    risks.loc[{"rule": DESCENT, "run": 1, "n": 16}] = np.nan
    x, means = curves.curve(ax, dataset.n, risks, DESCENT)
    losing = RULES.index(DESCENT) + 1
    assert x.tolist() == [8, 32]
    np.testing.assert_allclose(means, losing / np.array([8, 32]), rtol=1e-12)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), means, rtol=1e-12)


def test_rules_are_drawn_over_the_bound(ax, dataset):
    curves.against(ax, dataset, "by_n", "n", "demonstrations n")
    level, *lines = [line.get_ydata() for line in ax.lines if len(line.get_xdata()) > 1]
    assert list(level) == [1, 1]
    exact = [np.full(3, (RULES.index(rule) + 1) / 2) for rule in curves.LINES]
    np.testing.assert_allclose(lines, exact, rtol=1e-12)


def test_a_duel_is_preprocessed_descent_over_the_mean_of_the_lasso(ax, dataset):
    curves.duel(ax, dataset)
    ratio = (RULES.index(PREPROCESSED) + 1) / (RULES.index("Lasso") + 1)
    # Runs are paired: 1 + (a - b) / mean of b.
    for line in ax.lines[:2]:
        np.testing.assert_allclose(line.get_ydata(), np.full(3, ratio), rtol=1e-12)
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() < ratio < band.max()
