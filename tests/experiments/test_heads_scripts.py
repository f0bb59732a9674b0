"""Experiments on heads: risks, masks and splits equal formulas, and rules beside loops."""

from itertools import combinations, permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import descend
from experiments.heads import attention_patterns, head_pruning, heads_per_layer, risks, sparse_risk
from experiments.heads.sparse_risk import RIDGE, Config, Place
from experiments.models.model import Model
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab.estimators import ridge, sparse_posterior_mean
from lsa_lab.models import linear_attention
from lsa_lab.prompts import Prompt

RECIPE = Recipe(steps=1, batch=1, learning_rate=1.0, seeds=2)
TASK = Task(2, (8,), sparsity=1, noise_std=0.5)
SPEC = Spec(TASK, Architecture(2, 3, ((3, 3),), padding_slots=1, normalise_prompt=True), RECIPE)


@pytest.fixture(scope="module")
def model():
    weights = 0.3 * np.random.default_rng(0).standard_normal((2, 2, 3, 4, 4))
    return Model(SPEC, linear_attention.Params(*weights.astype(np.float32)), np.ones((2, 3)))


@pytest.fixture(scope="module")
def batch():
    return jax.device_get(risks.draw_prompts(TASK, 0, 16, 8))


def test_repeated_prompts_give_the_risks_of_short_ones(model, batch):
    n, short = 4, batch.replace(x=batch.x[:, :4], y=batch.y[:, :4])
    measured = heads_per_layer.measure_model(model, batch, n)
    np.testing.assert_allclose(measured, risks.measure_risk(model, short), rtol=1e-5)
    exact = jax.tree.map(lambda leaf: leaf.astype(float), short)
    bayes = jax.jit(jax.vmap(lambda prompt: sparse_posterior_mean(prompt, 1, 1.0, 0.25)))
    weights = jax.vmap(lambda p: ridge(p, 0.25 * 2 / n))(exact), bayes(exact), np.zeros((16, 2))
    most = 2 * np.abs(exact.y).max(1)
    for rule, w in zip(heads_per_layer.measure_rules(batch, n, TASK, 8), weights, strict=True):
        answers = np.clip((np.asarray(w) * exact.x_query).sum(1), -most, most)
        np.testing.assert_allclose(rule, np.mean((answers - exact.y_query) ** 2), rtol=1e-4)


def test_importance_and_masks_are_those_of_a_loop(model, batch):
    importance = head_pruning.measure_importance(model, batch)
    full = float(risks.measure_risk(model, batch))
    for layer, head in np.ndindex(2, 3):
        gates = np.ones((2, 3))
        gates[layer, head] = 0
        without = float(risks.measure_risk(model.replace(gates=gates), batch))
        assert importance[layer, head] == pytest.approx(without - full, rel=1e-3, abs=1e-5)
    masks = head_pruning.choose_masks(importance, jax.random.key(0), 5)
    top = importance[1].argmax()
    np.testing.assert_array_equal(masks[head_pruning.TOP], [[[1, 1, 1], np.eye(3)[top]]])
    others = masks[head_pruning.OTHERS]
    assert (others[:, 0] == 1).all()
    assert (others[:, 1].sum(1) == 1).all()
    assert not others[:, 1, top].any()
    assert (masks[head_pruning.ANY].sum((1, 2)) == 4).all()


def test_mixed_heads_predict_alike_and_have_other_importances(model, batch):
    mixing = np.linalg.qr(np.random.default_rng(4).standard_normal((2, 3, 3)))[0]
    params = jax.tree.map(jnp.asarray, model.params)
    mixed = model.replace(params=head_pruning.mix_heads(params, jnp.asarray(mixing, jnp.float32)))
    np.testing.assert_allclose(mixed.predict(batch), model.predict(batch), rtol=1e-3, atol=1e-4)
    before, after = (head_pruning.measure_importance(x, batch) for x in (model, mixed))
    assert np.abs(before - after).max() > 0.05


def test_splits_are_aligned_as_by_a_loop_over_all_of_them():
    points = np.random.default_rng(1).standard_normal((6, 2))
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    values = {}
    for left in combinations(range(6), 3):
        right = [i for i in range(6) if i not in left]
        values[left] = min(distances[left, order].mean() for order in permutations(right))
    aligned, exchanged = attention_patterns.compare_pair(distances)
    np.testing.assert_allclose(aligned, values[0, 1, 2])
    np.testing.assert_allclose(exchanged, np.exp(np.mean(np.log([*values.values()]))))


def mean_ratio(points):  # [R, H, 2] -> []
    """Return the mean ratio of aligned to exchanged distances of points that stand for heads."""
    distances = np.linalg.norm(points[:, :, None, None] - points[None, None], axis=-1)
    aligned, exchanged = attention_patterns.compare_runs(distances)
    pairs = np.triu_indices(len(points), 1)
    return np.exp(np.log(aligned[pairs] / exchanged[pairs]).mean())


def test_exchangeable_heads_have_ratio_one_and_shared_patterns_less():
    rng = np.random.default_rng(2)
    assert mean_ratio(rng.standard_normal((40, 4, 2))) == pytest.approx(1, abs=0.02)
    noise, kinds = 0.1 * rng.standard_normal((8, 4, 2)), 3 * rng.standard_normal((4, 2))
    assert mean_ratio(np.stack([rng.permutation(kinds) for _ in range(8)]) + noise) < 0.5
    assert mean_ratio(3 * rng.standard_normal((8, 1, 2)) + noise) > 1.2


PLACE = Place(n=9, d=3, s=2, law="flat", noise_var=0.4)


def list_moments(x, y):
    """Return XᵀX/n, Xᵀy/n and their squares of each prompt, as columns."""
    rows = np.concatenate([x, y[..., None]], axis=2)
    columns = (x.swapaxes(1, 2) @ rows).reshape(len(x), -1) / x.shape[1]
    return np.concatenate([columns, columns**2], axis=1)


def moment_errors(n, stands_for):
    """Return standard errors between the moments of n demonstrations and of rows for a number."""
    rng, size = np.random.default_rng(0), 40_000
    batch, w = sparse_risk.draw(rng, PLACE._replace(n=stands_for), size)
    np.testing.assert_allclose((w**2).sum(1), 1)
    assert ((w != 0).sum(1) == PLACE.s).all()
    x = rng.standard_normal((size, n, PLACE.d))
    noise = PLACE.noise_var**0.5 * rng.standard_normal((size, n))
    left, right = (
        list_moments(batch.x, batch.y),
        list_moments(x, (x @ w[..., None])[..., 0] + noise),
    )
    errors = np.hypot(left.std(0), right.std(0)) / np.sqrt(size)
    return np.abs(left.mean(0) - right.mean(0)) / errors


def test_few_rows_have_the_moments_of_n_demonstrations():
    assert moment_errors(2, 2).max() < 4.5  # less than e = 4
    assert moment_errors(9, 9).max() < 4.5
    assert moment_errors(9, 10).max() > 9  # control: rows for one demonstration more


def test_the_path_is_that_of_steps_one_by_one():
    batch, _ = sparse_risk.draw(np.random.default_rng(1), PLACE, 1)
    x, y = np.array(batch.x[0]), np.array(batch.y[0])
    r = x.T @ y / len(y)
    size = (len(y) / np.linalg.norm(x * r, ord=2)) ** 2 / len(y)
    path = [r * descend(x * r, y, [size] * steps) for steps in (1, 2, 4, 8)]
    prompt = Prompt(x, y, np.zeros(3), np.zeros(()))
    measured = jax.jit(sparse_risk.preprocessed_path, static_argnums=1)(prompt, 3)
    np.testing.assert_allclose(measured, path, rtol=1e-9)


def test_ridge_is_least_squares_on_more_rows_and_runs_are_means_over_their_prompts():
    config = Config(prompts=2, tuning=4, runs=3, doublings=2)
    risks = sparse_risk.measure_place(config, [PLACE], 0)
    assert risks.shape == (3, len(sparse_risk.RULES))
    batch, truth = sparse_risk.draw(np.random.default_rng([config.seed, 0]), PLACE, 6)
    root = np.sqrt(4 * PLACE.noise_var * PLACE.d / PLACE.n)  # of e times the penalty
    expected = np.zeros(3)
    for b, w in enumerate(truth):
        rows = np.concatenate([batch.x[b], root * np.eye(3)])
        ridge = np.linalg.lstsq(rows, np.append(batch.y[b], np.zeros(3)), rcond=None)[0]
        expected[b // 2] += ((ridge - w) ** 2).sum() / 2
    np.testing.assert_allclose(risks[:, sparse_risk.RULES.index(RIDGE)], expected, rtol=1e-9)
