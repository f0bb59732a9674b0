"""The experiments on clipping: edits one by one, the library's search, bounds beside loops."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.clipping import (
    bound_and_gap,
    clipped,
    clipping_curves,
    clipping_search,
    output_scaling,
)
from experiments.clipping.output_scaling import fit_map
from experiments.models.model import Model, init
from experiments.models.named import tiny
from experiments.models.specs import dense_spec
from experiments.models.tasks import draw_runs
from lsa_lab.analyses import clipping
from lsa_lab.analyses.clipping import Edit
from lsa_lab.models import linear_attention
from lsa_lab.prompts import Prompt

SPEC = tiny("small transformer")  # two layers of width 4, prompts of four demonstrations
EDITS = (Edit(1, "attention", 0.5), Edit(0, ("attention", "mlp"), clipping.DROP))


@pytest.fixture(scope="module")
def params():
    return jax.jit(jax.vmap(partial(init, SPEC)))(jax.random.split(jax.random.key(1), 2))


@pytest.fixture(scope="module")
def batch():
    law = clipped.shift_task(SPEC.task, "as trained", 0.5, 2.0)
    return draw_runs(jax.random.key(2), law, 2, 40)


@pytest.fixture(scope="module")
def edited(params):
    return clipped.edit_all(params, EDITS)


def take(tree, *place):
    return jax.tree.map(lambda leaf: leaf[place], tree)


def test_a_random_edit_has_the_norm_of_the_truncation_in_its_layer_alone(params, edited):
    disturbed = clipped.disturb_all(jax.random.key(3), params, edited)
    for name in ("w_q", "w_k", "w_v", "w_o", "mlp_in"):
        whole, cut, noisy = (
            np.asarray(getattr(p, name), float) for p in (params, edited, disturbed)
        )
        removed, added = (
            np.linalg.norm((values[:, 0] - whole).reshape(2, 2, -1), axis=2)
            for values in (cut, noisy)
        )
        np.testing.assert_allclose(added, removed, rtol=1e-4)
        np.testing.assert_array_equal(added[:, 0], 0)
        assert (added[:, 1] > 0).all() == (name != "mlp_in")
        assert name == "mlp_in" or not np.allclose(cut, noisy)


def test_repeated_demonstrations_are_a_short_prompt(params, batch, edited):
    models = clipped.join_edits(params, edited)
    short = batch.replace(x=batch.x[:, :, :2], y=batch.y[:, :, :2])
    expected, answers, long = (
        clipped.predict_all(SPEC, models, prompts)
        for prompts in (short, clipped.shorten(batch, 2), batch)
    )
    np.testing.assert_allclose(answers, expected, atol=1e-5)
    assert not np.allclose(answers, long, atol=1e-3)


def test_algorithm_1_is_that_of_the_library(params, batch):
    config = clipping_search.TIERS["smoke"]
    edits = clipping_search.list_edits(2, config.rates, clipped.PARTS.values())
    truncated = clipped.edit_all(params, edits)
    groups = clipping_search.build_candidates(jax.random.key(4), config, params, truncated)
    validation, test = (
        jax.tree.map(lambda leaf, half=half: leaf[:, half], batch)
        for half in (slice(20), slice(20, None))
    )
    models = clipped.join_edits(params, *groups.values())
    sizes = [group.w_k.shape[1] for group in groups.values()]
    row = clipping_search.search_shift(SPEC, models, sizes, validation, test)
    risk = jax.jit(lambda params, batch: Model(SPEC, params).clipped_errors(batch))
    second = [take(tree, 1) for tree in (params, validation, test)]
    options = dict(rates=config.rates, top_k=config.top_k)
    searches = [
        clipping.search(risk, *second, modules=p, **options) for p in clipped.PARTS.values()
    ]
    best = max(searches, key=lambda search: search.validation_gain)
    factor = 1 - best.test_gain / best.test_risk
    np.testing.assert_allclose(row["tested"][1, 0], factor, rtol=1e-3)
    np.testing.assert_allclose(row["unedited"][1], best.test_risk, rtol=1e-4)


def test_predictions_are_bounded_and_models_enter_that_are_better_than_zero(params, batch):
    loud = params.replace(w_o=1e6 * params.w_o, mlp_out=1e6 * params.mlp_out)
    models = clipped.join_edits(jax.tree.map(lambda leaf: jnp.stack([leaf] * 3, 1), loud))
    predictions = np.abs(clipped.predict_all(SPEC, models, batch))
    largest = 2 * np.abs(np.asarray(batch.y)).max(-1)
    np.testing.assert_allclose(predictions.max((1, 2)), largest.max(1), rtol=1e-5)
    zero = clipped.compute_risks(0 * predictions[:, 0], batch)
    assert clipped.find_able(zero * [0.9, 1.1], batch, 1.0).tolist() == [True, False]


def test_thresholds_are_chosen_on_other_prompts(batch):
    """Answers are right after a shift by -1 alone, in both halves of the prompts."""
    labels = np.tile([1.0, -1.0], 20)[None]
    answers = labels + 1.5
    batch = batch.replace(y_query=jnp.asarray(labels))
    assert clipped.compute_accuracies(answers, batch) == [0.5]
    assert clipping_curves.find_threshold_accuracies(answers, batch) == [1.0]


@pytest.mark.parametrize(("affine", "shift"), [(False, 0.0), (True, 0.3)])
def test_a_map_that_is_true_is_found(affine, shift):
    answers = np.random.default_rng(0).normal(size=(2, 32))
    targets = 0.5 * answers + shift
    mapped = fit_map(output_scaling.REGRESSION, affine, answers, targets[0])
    np.testing.assert_allclose(mapped, targets[1])
    if affine:  # control: a factor alone does not find it
        factor = fit_map(output_scaling.REGRESSION, False, answers, targets[0])
        assert np.abs(factor - targets[1]).max() > 0.1
    else:  # in two classes the one number is a threshold
        answers, targets = np.array([[3.0, 5.0, 1.0, -1.0]] * 2), np.array([1.0, 1.0, -1.0, -1.0])
        mapped = fit_map(output_scaling.CLASSES, False, answers, targets)
        np.testing.assert_allclose(mapped, answers[1] - 2.0)


class Answers:
    """Edits of which the second is best on validation for run 0, and none for run 1."""

    places = np.array([[1, 2], [1, 2]])

    def predict(self, edit, places, batch):
        return np.take_along_axis(np.asarray(batch.x[:, :, 0, 0]), np.asarray(places), 1)[..., None]


def test_the_best_edit_is_chosen_on_validation_and_none_if_none_gains():
    def write_prompts(answers):  # the answers after no edit, the first and the second
        x = jnp.asarray(answers)[:, :, None, None]
        return Prompt(x, jnp.ones((2, 1, 1)), x[:, :, 0], jnp.array([[1.0], [0.0]]))

    validation = write_prompts([[0.0, 0.5, 0.9], [0.1, 0.5, -0.2]])
    test = write_prompts([[4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    kind, edit = output_scaling.REGRESSION, output_scaling.EDITS[0]
    before, after = output_scaling.search(Answers(), kind, edit, validation, test)
    np.testing.assert_allclose(before, [[0.9], [0.1]])
    np.testing.assert_allclose(after, [[6.0], [7.0]])


D, N, E = 2, 4, 3
BOUNDS = bound_and_gap.Config(
    d=D, depths=(1, 2), shots=(2, 4), update_noises=(0.01, 0.5), largest_loss=2.0, population=5
)  # fmt: skip


def test_risks_and_updates_of_descent_are_those_of_loops():
    rng, step = np.random.default_rng(2), 0.4
    rows, normal = rng.normal(size=(9, E)), rng.normal(size=(2, E, E))
    steps = jnp.array([step, 0.0])  # the second layer is idle
    measure = jax.jit(bound_and_gap.measure_prompt, static_argnums=4)
    risks, updates = measure(jnp.asarray(rows), jnp.asarray(normal), 2.0, steps, BOUNDS)
    moment = rows[:2].T @ rows[:2] / 2
    w_kq, w_pv = np.diag([step, step, 0]), np.diag([0, 0, -1.0])
    for i, c in enumerate((0.0, 0.01, 0.5)):
        update = w_pv @ moment @ w_kq
        w = np.eye(E) + update + c**0.5 * normal[0]
        losses = [min((row[-1] + w[-1, :D] @ row[:D]) ** 2, 2.0) for row in rows]
        np.testing.assert_allclose(risks[i], [np.mean(losses[4:]), np.mean(losses[:2])])
        np.testing.assert_allclose(updates[i], [update, np.zeros((E, E))], atol=1e-12)


def test_the_measure_of_a_stack_is_that_of_loops():
    params = linear_attention.init(jax.random.key(0), 2, 1, D, scale=0.6)
    training = dict(steps=1, batch=1, learning_rate=1.0, seeds=1)
    spec = dense_spec("linear", D, N, 2, normalise_prompt=True, training=training)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, N + 4, D)), rng.normal(size=(2, N + 4))
    sizes, losses = np.zeros((2, 2)), np.zeros((2, 4))
    w_pv, w_kq = (np.asarray(leaf[:, 0]) for leaf in (params.w_pv, params.w_kq))
    for b in range(2):
        a, c = ((v[b, :N] ** 2).mean() ** 0.5 for v in (x, y))
        rows, w = [np.append(x[b, i] / a, y[b, i] / c) for i in range(N)], np.eye(E)
        for t in range(2):
            now = [w @ row for row in rows]
            update = w_pv[t] @ (sum(np.outer(h, h) for h in now) / N) @ w_kq[t] @ w
            sizes[b, t] = (update**2).sum()
            w = w + update
        # The query's label slot holds minus the prediction.
        errors = [y[b, i] + c * w[-1, :D] @ x[b, i] / a for i in range(N, N + 4)]
        losses[b] = np.minimum(np.square(errors), 2.0)
    pairs = Prompt(jnp.asarray(x), jnp.asarray(y), jnp.asarray(x[:, 0]), jnp.asarray(y[:, 0]))
    measure = jax.jit(bound_and_gap.measure_stack, static_argnums=(0, 3))
    bound, risk, sums = measure(spec, params, pairs, BOUNDS)
    terms = [E**2 * np.log(1 + sizes.mean(0) / (E**2 * c)).sum() for c in (0.01, 0.5)]
    np.testing.assert_allclose(bound, np.sqrt(np.divide(terms, N)))
    np.testing.assert_allclose(risk, losses.mean())
    np.testing.assert_allclose(sums, sizes.sum(1))


def test_rises_are_counted_beyond_rounding_and_none_of_numbers_that_are_not():
    np.testing.assert_allclose(bound_and_gap.rises(np.array([1 + 1e-12, 1.1]), 1.0), [0.0, 1.0])
    with pytest.raises(ArithmeticError):
        bound_and_gap.rises(np.array([np.nan]), np.array([1.0]))
