"""`bound_and_gap`: its gaps and bounds beside loops over layers, prompts and truncations."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping.bound_and_gap.clipped import measure_stack
from experiments.clipping.bound_and_gap.compute import (
    best_step,
    draw,
    measure,
    spread_bound,
)
from experiments.clipping.bound_and_gap.config import TIERS, Config
from lsa_lab.models import linear_attention

D, N, E = 2, 4, 3
CONFIG = Config(
    d=D,
    depths=(1, 2),
    shots=(2, 4),
    update_noises=(0.01, 0.5),
    largest_loss=2.0,
    groups=2,
    prompts=3,
    tuning_prompts=2,
    population=5,
    step_sizes=4,
)
STACKS = TIERS["smoke"].models
PARAMS = linear_attention.init(jax.random.key(0), 2, 1, D, scale=0.6)


def test_groups_have_one_task_each_and_noise_of_variance_one_is_left_to_add():
    x, y, noise = jax.jit(draw, static_argnums=(1, 2))(jax.random.key(0), CONFIG, 3)
    assert x.shape == (2, 3, 9, D)
    weights = [np.linalg.lstsq(x[g].reshape(-1, D), y[g].ravel(), rcond=None)[0] for g in range(2)]
    np.testing.assert_allclose(y, [x[g] @ weights[g] for g in range(2)], atol=1e-10)
    assert np.linalg.norm(weights[0] - weights[1]) > 0.1
    assert 0.6 < np.std(noise) < 1.4


def noisy_by_loops(w_kq, w_pv, second_moment, noise):
    w, updates = np.eye(E), []
    for t in range(len(noise)):
        updates.append(w_pv[t] @ (w @ second_moment @ w.T) @ w_kq[t] @ w)
        w = w + updates[t] + noise[t]
    return w, np.stack(updates)


def test_the_spread_of_updates_is_their_variance_over_prompts():
    """Two prompts, e = 1: E|G|² = (1 + 9)/2, the variance 2, and an idle layer."""
    updates = jnp.array([[1.0, 0.0], [3.0, 0.0]])[:, :, None, None]
    expected = 0.5 * np.sqrt(np.log(1 + 5 / 2) / 4)
    np.testing.assert_allclose(spread_bound(updates, 0.5, 4), expected)


def test_gaps_and_bounds_are_those_of_loops():
    rng = np.random.default_rng(2)
    x, y, eps = (
        rng.normal(size=(2, 3, 9, D)),
        rng.normal(size=(2, 3, 9)),
        rng.normal(size=(2, 3, 9)),
    )
    normal = rng.normal(size=(2, 3, 2, E, E))
    tuning = draw(jax.random.key(3), CONFIG, 2)
    n, depth, noise = 2.0, 1.0, 0.5
    step = float(best_step(noise, jnp.array(n), jnp.array([1.0, 0.0]), tuning, CONFIG))
    data = tuple(map(jnp.asarray, (x, y, eps)))
    y = y + noise * eps
    w_kq = [np.diag([step, step, 0]), np.zeros((E, E))]  # the second layer is idle
    w_pv = [np.diag([0, 0, -1.0])] * 2
    sizes, gaps, costs = np.zeros((3, 2, 3)), np.zeros((3, 2)), np.zeros((2, 2))
    for g in range(2):
        risks = np.zeros((3, 3, 2))
        for (i, c), b in ((pair, b) for pair in enumerate((0.0, 0.01, 0.5)) for b in range(3)):
            rows = np.column_stack([x[g, b, :2], y[g, b, :2]])
            added = c**0.5 * normal[g, b] * np.array([1.0, 0.0])[:, None, None]
            w, updates = noisy_by_loops(w_kq, w_pv, rows.T @ rows / 2, added)
            losses = np.minimum((y[g, b] + x[g, b] @ w[-1, :D]) ** 2, 2.0)
            risks[i, b] = losses[4:].mean(), losses[:2].mean()
            sizes[i, g, b] = (updates**2).sum()
        gaps[:, g] = (risks[..., 0] - risks[..., 1]).mean(1)
        costs[:, g] = np.abs(risks.mean(1)[1:] - risks.mean(1)[:1]).sum(1)
    run = partial(measure, tuning=tuning, data=data, normal=jnp.asarray(normal), config=CONFIG)
    values = jax.jit(run)(noise, jnp.array(n), jnp.array(depth))
    np.testing.assert_allclose(values["gap"], gaps[0])
    np.testing.assert_allclose(values["noisy_gap"], gaps[1:])
    np.testing.assert_allclose(values["noise_cost"], costs)
    for name, size in (("bound", sizes[:1]), ("noisy_bound", sizes[1:])):
        c = np.array([[0.01], [0.5]])
        expected = np.sqrt(E**2 * np.log(1 + size.mean(-1) / (E**2 * c)) / n)
        np.testing.assert_allclose(values[name], expected, err_msg=name)


def test_the_measure_of_a_stack_is_that_of_loops():
    config = Config(models=STACKS, update_noises=(0.1, 2.0), largest_loss=1.5)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, N + 4, D)), rng.normal(size=(2, N + 4))
    sizes, losses = np.zeros((2, 2)), np.zeros((2, N + 4))
    w_pv, w_kq = (np.asarray(leaf[:, 0]) for leaf in (PARAMS.w_pv, PARAMS.w_kq))
    for b in range(2):
        rows, w = [np.append(x[b, i], y[b, i]) for i in range(N)], np.eye(E)
        for t in range(2):
            now = [w @ row for row in rows]
            update = w_pv[t] @ (sum(np.outer(h, h) for h in now) / N) @ w_kq[t] @ w
            sizes[b, t] = (update**2).sum()
            w = w + update
        # The query's label slot holds minus the prediction.
        losses[b] = [min((y[b, i] + w[-1, :D] @ x[b, i]) ** 2, 1.5) for i in range(N + 4)]
    terms = [E**2 * np.log(1 + sizes.mean(0) / (E**2 * c)).sum() for c in (0.1, 2.0)]
    measure = jax.jit(measure_stack, static_argnums=3)
    measured = measure(PARAMS, jnp.asarray(x), jnp.asarray(y), config)
    risk, demonstrations = losses[:, N:].mean(), losses[:, :N].mean()
    np.testing.assert_allclose(measured["bound"], 0.75 * np.sqrt(np.divide(terms, N)))
    np.testing.assert_allclose([measured["risk"], measured["gap"]], [risk, risk - demonstrations])
