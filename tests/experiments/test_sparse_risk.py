"""`sparse_risk` beside loops, and the rules that know the task: exact cases and symmetries."""

import dataclasses
import itertools
from functools import partial

import jax
import numpy as np
import pytest

from experiments.heads import sparse_rules
from experiments.heads.rule_names import EQUIVARIANT, RIDGE, RULES
from experiments.heads.sparse_risk import compute
from experiments.heads.sparse_risk.compute import Place
from experiments.heads.sparse_risk.config import ORACLE, PLAIN, SQUARES, TIERS
from lsa_lab import estimators
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample

NOISE_VAR = 0.4
PLACE = compute.Place(n=9, d=3, s=2, noise_var=NOISE_VAR)


def moments(x, y):
    """Of each prompt: XᵀX/n, Xᵀy/n and their squares, as columns."""
    n = x.shape[1]
    gram, r = np.einsum("bni,bnj->bij", x, x) / n, np.einsum("bni,bn->bi", x, y) / n
    columns = np.concatenate([gram.reshape(len(x), -1), r], axis=1)
    return np.concatenate([columns, columns**2], axis=1)


def moment_errors(n, stands_for):
    """Standard errors between the moments of n demonstrations and of rows for another number."""
    rng, size, place = np.random.default_rng(0), 40_000, PLACE._replace(n=stands_for)
    batch, w = compute.draw(rng, place, size)
    np.testing.assert_allclose((w**2).sum(1), 1)
    assert ((w != 0).sum(1) == PLACE.s).all()
    x = rng.standard_normal((size, n, PLACE.d))
    y = np.einsum("bnd,bd->bn", x, w) + np.sqrt(NOISE_VAR) * rng.standard_normal((size, n))
    left, right = moments(batch.x, batch.y), moments(x, y)
    errors = np.hypot(left.std(0), right.std(0)) / np.sqrt(size)
    return np.abs(left.mean(0) - right.mean(0)) / errors


@pytest.mark.parametrize("n", [2, 9])  # less than e = 4, and more
def test_few_rows_have_the_moments_of_n_demonstrations(n):
    assert moment_errors(n, n).max() < 4.5


@pytest.mark.parametrize("n", [2, 9])
def test_control_rows_for_one_demonstration_more_do_not(n):
    assert moment_errors(n, n + 1).max() > 9


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


predictions = jax.jit(sparse_rules.predictions, static_argnums=0)
PROMPTS = 500  # one shape for all: each rule is compiled once
SPARSE = LinearTask(12, 8, sparsity=2, noise_std=0.3, weight_std=2**-0.5)


@partial(jax.jit, static_argnums=1)
def draw(task, count):
    return jax.vmap(partial(sample, task=task))(jax.random.split(jax.random.key(0), count))


def test_for_dense_gaussian_weights_every_bayes_rule_is_ridge():
    batch = draw(SPARSE, PROMPTS)
    for sparsity in (None, 8):
        task = SPARSE.replace(sparsity=sparsity)
        ridge = predictions("ridge", batch, task)
        for rule in (EQUIVARIANT, "sparse Bayes"):
            found = predictions(rule, batch, task)
            np.testing.assert_allclose(found, ridge, atol=1e-10)
    assert np.max(np.abs(np.asarray(predictions(EQUIVARIANT, batch, SPARSE)) - ridge)) > 1e-3


def a_small_batch(n, d):
    rng = np.random.default_rng(0)
    x, y, x_query = (rng.standard_normal((4, *shape)) for shape in ((n, d), (n,), (d,)))
    return Prompt(x, y, x_query, np.zeros(4))


def test_in_one_dimension_a_flat_weight_is_found_by_its_sign():
    task = LinearTask(3, 1, noise_std=0.7, weight_std=1.3, signal="flat")
    batch = a_small_batch(3, 1)
    pull = np.sum(batch.x[:, :, 0] * batch.y, axis=1) / task.noise_std**2
    exact = task.weight_std * np.tanh(task.weight_std * pull) * batch.x_query[:, 0]
    for rule in (EQUIVARIANT, "sparse Bayes"):
        np.testing.assert_allclose(predictions(rule, batch, task), exact, atol=1e-10)


def over_the_circle(signal, assumed):
    """By how much the equivariant mean for one signal departs from another's, which is d = 2 by
    brute force: the direction on a grid and, where it is random, the length too."""
    task = LinearTask(3, 2, sparsity=1, noise_std=0.6, signal=assumed)
    batch = a_small_batch(3, 2)
    angles = np.arange(720) * np.pi / 360
    # |w| = |z|, z ~ N(0, 1): the trapezoidal rule for it is exact to rounding.
    lengths = np.linspace(-8, 8, 801) if signal == "gaussian" else np.ones(1)
    weights = lengths[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    prior = np.exp(-(lengths**2) / 2)[:, None]
    departures = np.array(predictions(EQUIVARIANT, batch, task))
    for i in range(4):
        residuals = batch.y[i] - weights @ batch.x[i].T
        evidence = prior * np.exp(-(residuals**2).sum(-1) / 2 / task.noise_std**2)
        mean = (evidence[..., None] * weights).sum((0, 1)) / evidence.sum()
        departures[i] -= mean @ batch.x_query[i]
    return np.abs(departures)


@pytest.mark.parametrize("signal", ["gaussian", "flat"])
def test_the_equivariant_mean_is_an_average_over_the_circle(signal):
    assert over_the_circle(signal, signal).max() < 1e-10


@pytest.mark.parametrize(("signal", "assumed"), [("gaussian", "flat"), ("flat", "gaussian")])
def test_control_under_another_law_of_the_length_it_is_another_mean(signal, assumed):
    assert over_the_circle(signal, assumed).min() > 1e-3


def test_only_rules_without_sparsity_commute_with_rotations():
    batch = jax.tree.map(np.asarray, draw(SPARSE, PROMPTS))
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((SPARSE.d, SPARSE.d)))[0]
    turned = batch.replace(x=batch.x @ turn, x_query=batch.x_query @ turn)
    answers = {
        rule: [predictions(rule, each, SPARSE) for each in (turned, batch)] for rule in RULES
    }
    moved = {rule: np.abs(np.subtract(*pair)).max() for rule, pair in answers.items()}
    assert moved["ridge"] < 1e-10
    assert moved[EQUIVARIANT] < 1e-10
    assert moved["Lasso"] > 0.05
    assert moved["sparse Bayes"] > 0.05


def test_sparse_bayes_is_a_sum_over_flat_weights():
    task = LinearTask(3, 3, sparsity=2, noise_std=0.6, weight_std=0.8, signal="flat")
    batch = a_small_batch(3, 3)
    every = np.array(list(itertools.product((-0.8, 0.0, 0.8), repeat=3)))
    flat = every[np.count_nonzero(every, axis=1) == 2]
    residuals = batch.y[:, None] - flat @ batch.x.transpose(0, 2, 1)  # [4, 12, 3]
    evidence = np.exp(-(residuals**2).sum(-1) / 2 / task.noise_std**2)
    means = evidence @ flat / evidence.sum(1, keepdims=True)
    found = predictions("sparse Bayes", batch, task)
    np.testing.assert_allclose(found, (means * batch.x_query).sum(1), atol=1e-10)


def test_a_few_rows_stand_for_all_demonstrations():
    rng, place = np.random.default_rng(0), Place(9, 3, 1, 0.4, "gaussian")
    x, noise = rng.standard_normal((4, 9, 3)), rng.standard_normal((4, 9))
    y = x[:, :, 0] + 0.4**0.5 * noise
    rows = np.linalg.qr(np.concatenate([x, y[:, :, None]], axis=2), mode="r") * (4 / 9) ** 0.5
    few = Prompt(rows[:, :, :3], rows[:, :, 3], np.zeros((4, 3)), np.zeros(4))
    task = place.condensed.replace(n=9, noise_std=0.4**0.5)
    for rule in ("ridge", "sparse Bayes"):
        stated = sparse_rules.weights(rule, few.replace(x=x, y=y), task)
        found = sparse_rules.weights(rule, few, place.condensed)
        np.testing.assert_allclose(found, stated, atol=1e-10)
    assert np.max(np.abs(sparse_rules.weights("ridge", few, task.replace(n=4)) - stated)) > 1e-3


def test_a_signal_that_does_not_exist_and_too_many_signs_are_refused():
    prompt = jax.tree.map(lambda leaf: leaf[0], a_small_batch(3, 2))
    with pytest.raises(ValueError, match="signal = 'flatt': choose one of gaussian, flat"):
        estimators.rotation_equivariant_posterior_mean(prompt, 1, 1.0, 1.0, signal="flatt")
    wide = jax.tree.map(lambda leaf: leaf[0], a_small_batch(3, 40))
    with pytest.raises(ValueError, match="10 signs among 40 weights: more than 100000"):
        sparse_rules.flat_posterior_mean(wide, 10, 1.0, 1.0)
