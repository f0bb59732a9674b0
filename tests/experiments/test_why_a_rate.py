"""`why_a_rate`: rules on a table by hand, and risks after edits beside models cut one by one."""

import dataclasses
from functools import partial

import jax
import numpy as np
import pytest
import xarray as xr
from scipy.stats import spearmanr

from experiments.clipping import trained_models
from experiments.clipping.clipped_models import spec_of
from experiments.clipping.why_a_rate import rate_rules
from experiments.clipping.why_a_rate.compute import CUTS, batches, measure, noise_of, spectra
from experiments.clipping.why_a_rate.config import TIERS
from experiments.models.model import Model, init
from lsa_lab.analyses import clipping

CONFIG = TIERS["smoke"]
SPEC = spec_of(CONFIG)
RATES = (*CONFIG.rates, clipping.DROP)  # of four directions they keep 4, 2, 1 and 0


def test_each_rule_reads_its_own_rank_from_a_spectrum():
    """s = 3, 2, 2, 1: the largest fall after one; Σs²/s_1² = 2; 18²/114 = 2.8; 17/18 < 0.99."""
    assert rate_rules.predicted_ranks(np.array([3.0, 2, 2, 1]), 0.99).tolist() == [1, 2, 3, 4]
    assert rate_rules.predicted_ranks(np.array([3.0, 2, 2, 1]), 0.9).tolist() == [1, 2, 3, 3]
    assert rate_rules.predicted_ranks(np.array([[2.0, 2, 2, 1]]), 0.5).tolist() == [[3, 4, 4, 2]]


def test_the_best_edit_is_of_the_modules_allowed_and_never_the_drop():
    change = np.zeros((2, 2, 4, 3))  # runs, layers, modules, rates and the drop
    change[0, 1, 2, 1], change[0, 0, 0, 1], change[0, 0, 0, 2] = -5, -2, -9
    change[1, 1, 0, 0], change[1, 0, 3, 1] = -1, -3
    assert rate_rules.best_edits(change, tuple(rate_rules.MODULES)) == [(1, 2, 1), (0, 3, 1)]
    assert rate_rules.best_edits(change, ("w_k",)) == [(0, 0, 1), (1, 0, 0)]
    assert rate_rules.best_edits(change, ("mlp_out",))[0] == (1, 2, 1)


@pytest.fixture(scope="module")
def table():
    """Two runs, three layers, spectra of rank 8; no change at the first rate."""
    rng = np.random.default_rng(0)
    change = rng.normal(size=(1, 2, 2, 3, 4, 5)).round(1)
    change[..., 0] = 0
    predicted = rng.integers(1, 9, size=(1, 2, 3, 3, 4)).astype(float)
    axes = ("condition", "prompts", "run", "layer", "module", "rate")
    kept = ("rate", [8, 5, 2, 1, 0])
    return xr.Dataset(
        {
            "change": (axes, change),
            "predicted": (("condition", "run", "layer", "matrix", "predictor"), predicted),
            "kept": kept,
        },
        {
            "prompts": ["validation", "test"],
            "module": list(rate_rules.MODULES),
            "matrix": list(rate_rules.MATRICES),
        },
    )


def rates_by_loops(table, run, layer, module):  # validation, test
    change = table.change.values[0, :, run, layer, module, :-1]
    return [min(range(4), key=lambda rate: (row[rate], rate)) for row in change]


def test_rates_are_searched_matrix_by_matrix(table):
    searched = rate_rules.best_rates(table)
    for run, layer, module in np.ndindex(2, 3, 3):
        best = rates_by_loops(table, run, layer, module)
        assert searched.isel(condition=0, run=run, layer=layer, module=module) == best[0]


def test_ranks_agree_as_spearman_says(table):
    kept, cells = table.kept.values, list(np.ndindex(3, 3))
    for run in range(2):
        best = [rates_by_loops(table, run, *cell) for cell in cells]
        validation, test = kept[np.array(best)].T
        for rule in range(4):
            ranks = table.predicted.values[0, run].reshape(9, 4)[:, rule]
            measured = rate_rules.rank_correlations(table)[0, run, rule]
            np.testing.assert_allclose(measured, spearmanr(validation, ranks)[0])
        expected = spearmanr(validation, test)[0]
        np.testing.assert_allclose(rate_rules.repeats(table)[0, run], expected)


def test_conditions_differ_in_noise_and_in_the_scale_of_covariates():
    """Least squares of d = 2 weights leaves (n - d)/n = 1/2 of the noise."""
    sizes = dict(prompts=1000, more_prompts=3000, noise=2.0, shift=1.5)
    config = dataclasses.replace(CONFIG, **sizes)
    every = batches(jax.random.key(0), SPEC, 2, config)
    variance, left = {}, {}
    for name, prompts in every.items():
        assert [batch.y.shape for batch in prompts] == [(2, size, 4) for size in (1000, 1000, 3000)]
        x, y = np.asarray(prompts[2].x, float), np.asarray(prompts[2].y, float)
        fit = x @ np.linalg.pinv(x) @ y[..., None]
        variance[name], left[name] = (x**2).mean(), 2 * ((y - fit[..., 0]) ** 2).mean()
    noise = {"matched": 0.5, "under-trained": 0.5, "noisy": 2.0, "shifted": 0.5}
    assert {name: noise_of(name, config) for name in every} == noise
    for name in every:
        scale = 1.5 if name == "shifted" else 1.0
        np.testing.assert_allclose(variance[name], scale**2, rtol=0.04)
        np.testing.assert_allclose(left[name], noise[name] ** 2, rtol=0.06)


@pytest.fixture(scope="module")
def models():
    """Two untrained models, and prompts of their own."""
    params = jax.jit(jax.vmap(partial(init, SPEC)))(jax.random.split(jax.random.key(1), 2))
    return params, batches(jax.random.key(2), SPEC, 2, CONFIG)["matched"]


def cut(params, run, layer, names, rank):
    """The params of one run, some matrices of one layer at a rank: heads side by side."""
    own = {name: np.array(getattr(params, name)[run]) for name in names}
    for name, leaf in own.items():
        wide = (
            np.concatenate(leaf[layer], axis=int(name == "w_o")) if leaf.ndim == 4 else leaf[layer]
        )
        u, s, v = np.linalg.svd(wide)
        wide = u[:, :rank] * s[:rank] @ v[:rank]
        heads = np.split(wide, 2, axis=int(name == "w_o")) if leaf.ndim == 4 else wide
        leaf[layer] = heads
    return jax.tree.map(lambda leaf: leaf[run], params).replace(**own)


def named(edits):
    return [(layer, CUTS[module], RATES[rate]) for layer, module, rate in edits]


def test_gains_and_changes_are_those_of_matrices_cut_one_by_one(models):
    params, (batch, _, _) = models
    edits = [(1, 1, 1), (0, 3, 2)]  # w_v of the second layer to rank 2; a layer to rank 1
    matrices = ["w_v"], ["w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_out"]
    risks = np.zeros((2, 2))
    errors = jax.jit(lambda params, batch: Model(SPEC, params).risk(batch))
    for run, ((layer, _, rate), names) in enumerate(zip(edits, matrices, strict=True)):
        own = jax.tree.map(lambda leaf, run=run: leaf[run], batch)
        risks[run, 0] = errors(jax.tree.map(lambda leaf, run=run: leaf[run], params), own)
        risks[run, 1] = errors(cut(params, run, layer, names, (4, 2, 1)[rate]), own)
    expected = 1 - risks[:, 1] / risks[:, 0]
    gained = trained_models.gains(SPEC, params, batch, (named(edits), named([(0, 0, 0)] * 2)))
    np.testing.assert_allclose(gained, [expected, [0, 0]], atol=2e-6)
    grid = dict(modules=CUTS, rates=RATES)
    before, change = trained_models.relative_curve(SPEC, params, batch, **grid)
    np.testing.assert_allclose(before, risks[:, 0], rtol=1e-5)
    changes = [change[run][edit] for run, edit in enumerate(edits)]
    np.testing.assert_allclose(changes, -expected, atol=2e-6)


def test_a_condition_judges_the_edit_that_its_validation_prompts_chose(models):
    params, prompts = models
    values, searched = measure(SPEC, params, prompts, (), None, CONFIG)
    table, judged = (
        np.array(values["change"][0]),
        trained_models.gains(SPEC, params, prompts[2], (named(searched),)),
    )
    for run in range(2):
        assert table[run][searched[run]] == table[run][..., :-1].min()
    np.testing.assert_allclose(values["gain"][[0, 2]], np.repeat(judged, 2, axis=0))
    np.testing.assert_allclose(
        values["risk"][1], trained_models.own_risks(SPEC)(params, prompts[1])
    )


def test_a_spectrum_is_that_of_heads_side_by_side(models):
    params, _ = models
    values = spectra(params)  # runs, layers, matrices
    for run, layer in np.ndindex(2, 2):
        for place, name in enumerate(("w_k", "w_v")):
            wide = np.concatenate(np.asarray(getattr(params, name)[run, layer], float))
            expected = np.linalg.svd(wide, compute_uv=False)
            np.testing.assert_allclose(values[run, layer, place], expected, rtol=1e-4, atol=1e-6)
        gram = np.asarray(params.mlp_out[run, layer], float)
        squares = np.linalg.eigvalsh(gram @ gram.T)[::-1]
        np.testing.assert_allclose(values[run, layer, 2] ** 2, squares, rtol=1e-3, atol=1e-6)
