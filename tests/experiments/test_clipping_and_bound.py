"""`clipping_and_bound`: its numbers beside loops over demonstrations, layers and cells."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from experiments.clipping.clipping_and_bound import rank_maps
from experiments.clipping.clipping_and_bound.compute import descent, draw, edits, measure
from experiments.clipping.clipping_and_bound.config import TIERS, Config
from experiments.clipping.transformers import spec_of
from lsa_lab.analyses import clipping
from lsa_lab.models import linear_attention

MODELS = TIERS["smoke"].models
D, N, E = 2, 4, 3
PARAMS = linear_attention.init(jax.random.key(0), 2, 1, D, scale=0.6)


def test_the_measure_of_a_stack_is_that_of_loops():
    config = Config(MODELS, prompts=2, update_noises=(0.1, 2.0), largest_loss=1.5)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, N + 4, D)), rng.normal(size=(2, N + 4))
    sizes, uppers, losses = np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, N + 4))
    w_pv, w_kq = (np.asarray(leaf[:, 0]) for leaf in (PARAMS.w_pv, PARAMS.w_kq))
    for b in range(2):
        rows, w = [np.append(x[b, i], y[b, i]) for i in range(N)], np.eye(E)
        for t in range(2):
            now = [w @ row for row in rows]
            update = w_pv[t] @ (sum(np.outer(h, h) for h in now) / N) @ w_kq[t] @ w
            lengths = [np.linalg.norm(w_pv[t] @ h) * np.linalg.norm(h) for h in now]
            uppers[b, t] = np.mean(lengths) * np.linalg.norm(w_kq[t])
            sizes[b, t] = (update**2).sum()
            w = w + update
        # The query's label slot holds minus the prediction.
        losses[b] = [min((y[b, i] + w[-1, :D] @ x[b, i]) ** 2, 1.5) for i in range(N + 4)]
    terms = [E**2 * np.log(1 + sizes.mean(0) / (E**2 * c)).sum() for c in (0.1, 2.0)]
    measured = jax.jit(measure, static_argnums=3)(PARAMS, jnp.asarray(x), jnp.asarray(y), config)
    risk, demonstrations = losses[:, N:].mean(), losses[:, :N].mean()
    np.testing.assert_allclose(measured["bound"], 0.75 * np.sqrt(np.divide(terms, N)))
    np.testing.assert_allclose(measured["sum"], np.median(sizes.sum(1)))
    np.testing.assert_allclose(measured["upper"], np.median(uppers.sum(1)))
    np.testing.assert_allclose([measured["risk"], measured["gap"]], [risk, risk - demonstrations])


def test_an_edit_stands_at_its_matrix_layer_and_rank():
    masks = edits(PARAMS, (*clipping.every_rate(E), clipping.DROP))
    kept = {name: np.sum(masks[name], -1).reshape(2, 2, E + 1, 2) for name in masks}
    for row, name in enumerate(("w_kq", "w_pv")):
        for t in range(2):
            ranks = kept[name][row, t]
            assert ranks[:, t].tolist() == [3, 2, 1, 0]
            assert (ranks[:, 1 - t] == E).all()
        assert (kept[name][1 - row] == E).all()


def test_descent_takes_the_step_that_is_best_on_average():
    """E|w - η(Hw + Xᵀε/n)|²/d = 1 - 2η + η²(1 + (d + 1)/n + σ²/n), d = 2, n = 4, σ = 1/2."""
    params = descent(spec_of(TIERS["smoke"]))
    np.testing.assert_allclose(params.w_kq[:, 0], [np.diag([16 / 29, 16 / 29, 0])] * 2)
    np.testing.assert_allclose(params.w_pv[:, 0], [np.diag([0, 0, -1.0])] * 2)


def test_each_prompt_has_a_task_of_its_own_and_noise_as_large_as_said():
    config = Config(MODELS, prompts=3, population=4000)
    x, y = draw(jax.random.key(1), config)
    assert x.shape == (3, N + 4000, D)
    fits = [np.linalg.lstsq(x[b], y[b], rcond=None) for b in range(3)]
    np.testing.assert_allclose([fit[1][0] / 4000 for fit in fits], 0.25, rtol=0.1)
    weights = np.stack([fit[0] for fit in fits])
    assert min(np.linalg.norm(weights[i] - weights[i - 1]) for i in range(3)) > 0.1


@pytest.mark.parametrize(
    ("ratio", "text"), [(9.96, "10"), (9.94, "9.9"), (0.25, "0.2"), (-0.5, "\u22120.5")]
)
def test_a_cell_has_two_digits(ratio, text):
    assert rank_maps.two_digits(ratio) == text


def test_a_map_shows_the_share_that_rises_and_the_median_ratio():
    from matplotlib import pyplot

    table = np.array([[[4, 4, 8], [1, 3, 1]], [[1, 4, 1], [2, 6, 1]], [[1, 4, 0.5], [1, 3, 0.9]]])
    values = xr.DataArray(table[:, None], dims=("run", "module", "layer", "rank"))
    values = values.assign_coords(module=["w_kq"], layer=[1, 2], rank=[2, 1, 0])
    figure, ax = pyplot.subplots()
    image = rank_maps.rank_map(ax, values, names=True)
    np.testing.assert_allclose(image.get_array(), [[2 / 3, 1 / 3], [1, 0]])
    cells = {(int(text.get_position()[1]), int(text.get_position()[0])): text for text in ax.texts}
    assert {place: text.get_text() for place, text in cells.items()} == {
        (0, 0): "4.0",
        (1, 0): "3.0",
        (1, 1): "0.9",
    }
    pyplot.close(figure)
