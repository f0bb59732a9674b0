"""`bound_and_gap`: gaps, bounds and updates beside loops over layers, prompts and pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.clipping import bound_and_gap
from experiments.models.specs import dense_spec
from lsa_lab.models import linear_attention
from lsa_lab.prompts import Prompt

D, N, E = 2, 4, 3
CONFIG = bound_and_gap.Config(
    d=D, depths=(1, 2), shots=(2, 4), update_noises=(0.01, 0.5), largest_loss=2.0, population=5
)  # fmt: skip


def test_risks_and_updates_of_descent_are_those_of_loops():
    rng, step = np.random.default_rng(2), 0.4
    rows, normal = rng.normal(size=(9, E)), rng.normal(size=(2, E, E))
    steps = jnp.array([step, 0.0])  # the second layer is idle
    measure = jax.jit(bound_and_gap.measure_prompt, static_argnums=4)
    risks, updates = measure(jnp.asarray(rows), jnp.asarray(normal), 2.0, steps, CONFIG)
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
    bound, risk, sums = measure(spec, params, pairs, CONFIG)
    terms = [E**2 * np.log(1 + sizes.mean(0) / (E**2 * c)).sum() for c in (0.01, 0.5)]
    np.testing.assert_allclose(bound, np.sqrt(np.divide(terms, N)))
    np.testing.assert_allclose(risk, losses.mean())
    np.testing.assert_allclose(sums, sizes.sum(1))


def test_rises_are_counted_beyond_rounding_and_none_of_numbers_that_are_not():
    np.testing.assert_allclose(bound_and_gap.rises(np.array([1 + 1e-12, 1.1]), 1.0), [0.0, 1.0])
    with pytest.raises(ArithmeticError):
        bound_and_gap.rises(np.array([np.nan]), np.array([1.0]))
