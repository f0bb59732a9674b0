"""The experiments on layers as algorithms: their measures beside loops and sums over prompts."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy import stats

from experiments.descent import depth, noisy_descent, norms_and_updates
from experiments.models import model
from experiments.models.specs import dense_spec
from lsa_lab.models import constructions, linear_attention, moments

SMALL = depth.Config(d=2, n=4, runs=1, tuning_prompts=6, test_prompts=500)


def test_coloured_prompts_have_the_moments_of_coloured_covariates():
    rng = np.random.default_rng(0)
    root, x, y = rng.normal(size=(2, 2)), rng.normal(size=(5, 2)), rng.normal(size=5)
    white, coloured = (
        sum(np.outer(row, row) for row in np.column_stack([rows, y])) / 5
        for rows in (x, x @ root.T)
    )
    batch = white[..., None], x[:1].T, y[:1]
    moments, query, target = depth.paint(batch, root)
    np.testing.assert_allclose(moments[..., 0], coloured)
    np.testing.assert_allclose(query[:, 0], root @ x[0])
    assert target == y[0]


def test_one_tuned_step_is_that_of_least_squares():
    """The prediction is ηa with a = x_query·Xᵀy/n: the best η is Σ a y_query / Σ a²."""
    step = depth.tune_plus_plus(SMALL, 1, 0.3)[0, 0]
    key = jax.random.fold_in(jax.random.key(SMALL.seed), 1001)
    moments, queries, targets = depth.draw(key, 0.3, SMALL, SMALL.tuning_prompts)
    a = (moments[:-1, -1] * queries).sum(0)
    np.testing.assert_allclose(step, (a @ targets) / (a @ a), rtol=1e-4)


def test_a_stack_that_diverged_or_explodes_counts_as_the_answer_zero():
    params = constructions.gradient_descent(jnp.array([0.5]), 2)
    stacks = [jax.tree.map(lambda leaf, c=c: np.stack([c * leaf] * 3), params) for c in (1, 30)]
    plus_plus = [depth.build_plus_plus(jnp.array([[0.5], [0.0]]), 2)] * 3
    for stack, diverged, failed in zip(stacks * 2, (0, 0, 1, 1), (0, 1, 1, 1), strict=True):
        kinds = {"free": (stack, np.full(3, bool(diverged)))}
        risks = depth.measure(SMALL, 1, kinds, plus_plus, (0, 0))
        assert risks["plus_plus"] < 1
        assert (risks["free"] == 1) == failed
        if not failed:
            np.testing.assert_allclose(risks["free"], risks["plus_plus"])


def test_the_factor_of_a_run_is_the_best_for_the_others():
    risks = np.array([[1.0, 0.5, 0.9], [1.0, 0.9, 0.8], [2.0, 1.7, 1.4]])  # [R, 1 and two factors]
    axes, shrunk = ("run", "factor"), norms_and_updates.SHRUNK
    data = np.stack([risks, np.ones((3, 3))], axis=1)[None]
    result = xr.Dataset(
        {"shrunk": (("norm", axes[0], "shrunk_part", axes[1]), data)},
        {"norm": ["without norms"], "shrunk_part": list(shrunk)},
    )
    # The others of run 0 do best with the second factor, those of runs 1 and 2 with the first.
    expected = [0.9, 0.9, 0.85]
    np.testing.assert_allclose(norms_and_updates.best_shrunk(result, "writes"), expected)
    np.testing.assert_allclose(norms_and_updates.writes_over_answers(result), expected)


def test_shrinking_the_writes_of_one_layer_shrinks_its_answer():
    training = dict(steps=1, batch=1, learning_rate=1.0, seeds=2)
    spec = dense_spec("softmax", 2, 4, 1, heads=2, key_width=3, training=training)
    params = jax.vmap(partial(model.init, spec))(jax.random.split(jax.random.key(0), 2))
    params = jax.tree.map(lambda leaf: leaf.astype(float), params)
    config = norms_and_updates.Config(pairs=2, test_prompts=5)
    batch = norms_and_updates.draw_prompts(jax.random.key(1), spec.task, 0.3, config)
    factors = jnp.array([1.0, 0.7, 0.0])
    risks = norms_and_updates.measure_shrunk(spec, params, batch, factors)
    np.testing.assert_allclose(risks[:, 0], risks[:, 1])
    np.testing.assert_allclose(risks[:, 0, 2], (batch.y_query**2).mean(1))


def test_descent_with_one_moment_is_the_stack():
    params = linear_attention.init(jax.random.key(0), 3, 1, 2, scale=0.3)
    moment = np.cov(np.random.default_rng(1).normal(size=(3, 9)))
    maps = jax.jit(noisy_descent.descend)(params, np.stack([moment] * 3))
    np.testing.assert_allclose(maps, moments.layer_maps(params, moment), rtol=1e-9, atol=1e-12)


def test_both_kinds_of_moments_have_one_mean_and_one_covariance():
    draw = jax.jit(noisy_descent.draw_moments, static_argnums=(1, 2, 3, 4))
    for gaussian in (False, True):
        rows = np.asarray(draw(jax.random.key(2), 5, 2, 50_000, gaussian)).reshape(-1, 4)
        error = rows.std(0) / np.sqrt(len(rows))
        assert (np.abs(rows.mean(0) - [1, 0, 0, 1]) < 5 * error).all()
        np.testing.assert_allclose(rows.var(0), np.array([2, 1, 1, 2]) / 5, rtol=0.05)


def test_noise_of_one_step_is_measured_as_by_scipy():
    """A stack of one step of descent has the excess kurtosis of one step of descent."""
    config = noisy_descent.Config(d=2, n=4, depth=1, prompts=40)
    params = constructions.gradient_descent(jnp.array([0.7]), 2)
    added, step, share = noisy_descent.measure_noise(config, 4, params, jax.random.key(3))
    np.testing.assert_allclose(added[0], step)
    assert 0 < share[0] < 1
    values = np.random.default_rng(4).normal(size=(30, 2)) ** 3
    expected = stats.kurtosis(values)
    np.testing.assert_allclose(noisy_descent.excess_kurtosis(values), expected)
