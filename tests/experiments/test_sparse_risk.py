"""`sparse_risk` judges every place of its duel, and its rates count steps and slopes right."""

import dataclasses
import json

import numpy as np
import pytest
import xarray as xr

from experiments.heads import sparse_rules
from experiments.heads.rule_names import RIDGE
from experiments.heads.sparse_risk import claims, compute
from experiments.heads.sparse_risk.config import (
    ORACLE,
    PLAIN,
    PREPROCESSED,
    SQUARES,
    TIERS,
    Rates,
)
from lsa_lab.judging.statements import samples_of
from lsa_lab.store import parts, results

NOISE_VAR = 0.4
PLACE = compute.Place(n=9, d=3, s=2, noise_var=NOISE_VAR)


def test_a_duel_is_judged_at_every_ratio_of_both_laws():
    config = TIERS["laptop"]
    axes = {"law": ["gaussian", "flat"], "width": [16, 64], "per_d": list(config.duel.per_d)}
    axes |= {"rule": list(PLAIN), "run": [0, 1]}
    risk = np.ones([len(values) for values in axes.values()])
    risk[1, 1, :, PLAIN.index(PREPROCESSED)] = np.arange(1, 7)[:, None] / 4
    part = xr.Dataset({"risk": (tuple(axes), risk)}, axes)
    whole = parts.join(xr.Dataset(attrs={"config": json.dumps(results.plain(config))}), duel=part)
    samples = samples_of(claims._about_the_lasso(config.duel), whole)
    assert len(samples) == 25
    assert [samples[f"flat_64_{ratio}"][0] for ratio in (1, 4, 32)] == [0.25, 0.75, 1.5]
    assert samples["gaussian_16_1"].tolist() == [1, 1]
    assert samples["flat"].tolist() == [1, 1], "at the smaller d"


def moments(x, y):
    """Of each prompt: XᵀX/n, Xᵀy/n and their squares, as columns."""
    n = x.shape[1]
    gram, r = np.einsum("bni,bnj->bij", x, x) / n, np.einsum("bni,bn->bi", x, y) / n
    columns = np.concatenate([gram.reshape(len(x), -1), r], axis=1)
    return np.concatenate([columns, columns**2], axis=1)


@pytest.mark.parametrize("n", [2, 9])  # less than e = 4, and more
def test_few_rows_have_the_moments_of_n_demonstrations(n):
    rng, size, place = np.random.default_rng(0), 40_000, PLACE._replace(n=n)
    batch, w = compute.draw(rng, place, size)
    x = rng.standard_normal((size, n, PLACE.d))
    y = np.einsum("bnd,bd->bn", x, w) + np.sqrt(NOISE_VAR) * rng.standard_normal((size, n))
    left, right = moments(batch.x, batch.y), moments(x, y)
    errors = np.hypot(left.std(0), right.std(0)) / np.sqrt(size)
    assert (np.abs(left.mean(0) - right.mean(0)) < 4.5 * errors).all()
    np.testing.assert_allclose((w**2).sum(1), 1)
    assert ((w != 0).sum(1) == PLACE.s).all()


def test_doubled_steps_are_steps_of_preprocessed_descent():
    batch, _ = compute.draw(np.random.default_rng(1), PLACE, 1)
    x, y = np.array(batch.x[0]), np.array(batch.y[0])
    r = x.T @ y / len(y)
    features, theta, path = x * r, np.zeros(PLACE.d), []
    size = len(y) / np.linalg.norm(features, ord=2) ** 2
    for _ in range(8):
        theta = theta + size * features.T @ (y - features @ theta) / len(y)
        path.append(r * theta)
    prompt = batch.replace(x=x, y=y)
    doubled = sparse_rules.preprocessed_path(prompt, 3)
    np.testing.assert_allclose(doubled, np.array(path)[[0, 1, 3, 7]], rtol=1e-3)


def test_the_slope_of_a_power_is_its_exponent():
    n, scales = np.array([10.0, 20, 40]), np.array([1.0, 2, 3, 4])
    risks = xr.DataArray(scales[:, None] * n**-1.5, dims=("run", "n"), coords={"n": n})
    np.testing.assert_allclose(claims.slopes(risks), -1.5)


def test_only_one_number_grows_along_a_panel():
    config = Rates(
        d=5,
        s=2,
        lengths=(16, 32, 64),
        long=32,
        short=32,
        middle=32,
        sparsities=(1, 3),
        widths=(4, 6),
    )
    panels = compute.rate_orders(config)
    places = {name: [place[:3] for place in row] for name, (_, row) in panels.items()}
    assert places["by_n"] == [(16, 5, 2), (32, 5, 2), (64, 5, 2)]
    assert places["by_s"] == [(64, 5, 1), (64, 5, 3)]
    assert places["by_d"] == [(64, 4, 2), (64, 6, 2)]
    assert places["short_by_s"] == [(32, 5, 1), (32, 5, 3)]
    assert places["short_by_d"] == [(32, 4, 2), (32, 6, 2)]


def test_rules_in_closed_form_lose_what_loops_say_in_every_run():
    config = dataclasses.replace(
        TIERS["smoke"].rates, runs=3, prompts=2, tuning=4, noise_var=NOISE_VAR
    )
    risks = compute.mean_losses(config, PLACE, np.random.default_rng(3), ())
    batch, truth = compute.draw(np.random.default_rng(3), PLACE, 6)
    exact = np.zeros((3, 3))  # least squares, ridge, least squares on the support
    for b, w in enumerate(truth):
        x, y, inside = batch.x[b], batch.y[b], w != 0
        squares = np.linalg.lstsq(x, y, rcond=None)[0]
        penalty = np.sqrt(len(y) * NOISE_VAR * PLACE.d / PLACE.n)
        rows, zeros = np.concatenate([x, penalty * np.eye(3)]), np.zeros(3)
        ridge = np.linalg.lstsq(rows, np.append(y, zeros), rcond=None)[0]
        known = np.zeros(3)
        known[inside] = np.linalg.lstsq(x[:, inside], y, rcond=None)[0]
        for i, estimate in enumerate((squares, ridge, known)):
            exact[i, b // 2] += ((estimate - w) ** 2).sum() / 2
    rows = [PLAIN.index(rule) for rule in (SQUARES, RIDGE, ORACLE)]
    np.testing.assert_allclose(risks[rows], exact, rtol=1e-8)
