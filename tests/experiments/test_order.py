"""`order`: predictions of orders of a prompt, beside sums that know no order and some that do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.descent.order.compute import compute, draw, predictions
from experiments.descent.order.config import MASKS, TIERS

CONFIG = TIERS["smoke"]
PARAMS, ORDERED, FRESH = jax.jit(draw, static_argnums=1)(jax.random.key(0), CONFIG)


def test_orders_are_of_one_prompt_and_other_prompts_are_of_one_task_and_query():
    for run, prompt in np.ndindex(CONFIG.runs, CONFIG.prompts):
        first, other = np.asarray(ORDERED[run, prompt])
        assert sorted(map(tuple, first)) == sorted(map(tuple, other))
        np.testing.assert_array_equal(first, FRESH[run, prompt, 0])
        np.testing.assert_array_equal(FRESH[run, prompt, 0, -1], FRESH[run, prompt, 1, -1])
        assert (FRESH[run, prompt, 0, :-1] != FRESH[run, prompt, 1, :-1]).all()


@pytest.mark.parametrize("mask", MASKS)
def test_descent_is_that_of_loops(mask):
    """Causal: demonstration i descends on those up to its own, the query on all; step n = 4,
    d = 2, σ = 1/2, η = 1/(1 + 3.25/4)."""
    step, tokens = 16 / 29, np.asarray(ORDERED[0, 0, 0])
    x, labels = tokens[:, :2], tokens[:, 2].copy()
    expected = []
    for _ in range(CONFIG.depth):
        reads = [range(i + 1 if mask == "causal" else 4) for i in range(4)] + [range(4)]
        sums = [sum(labels[j] * x[j] @ x[i] for j in each) for i, each in enumerate(reads)]
        labels = labels - step * np.array(sums) / 4
        expected.append(-labels[-1])
    predicted = predictions(PARAMS, ORDERED[0, 0, 0], CONFIG, "descent", MASKS[mask])
    np.testing.assert_allclose(predicted, expected)


@pytest.fixture(scope="module")
def dataset():
    return compute(CONFIG)


def test_the_effect_of_order_on_descent_is_that_of_two_orders(dataset):
    batch = jax.jit(draw, static_argnums=1)(jax.random.key(CONFIG.seed), CONFIG)
    _, ordered, fresh = batch
    both = jnp.concatenate([ordered, fresh], axis=2)
    of_descent = jax.jit(
        jax.vmap(lambda tokens: predictions(None, tokens, CONFIG, "descent", "causal"))
    )
    y = np.asarray(of_descent(both.reshape(-1, 5, 3))).reshape(2, 2, 4, 2)  # [R, B, 2 + 2, L]
    effect, share = np.zeros((2, 2)), np.zeros((2, 2))
    for r, t in np.ndindex(2, 2):
        size = np.sqrt(np.mean([y[r, b, 0, t] ** 2 for b in range(2)]))
        effect[r, t] = max(abs(y[r, b, 1, t] - y[r, b, 0, t]) for b in range(2)) / size
        apart = [abs(y[r, b, 1, t] - y[r, b, 0, t]) for b in range(2)]
        redrawn = [abs(y[r, b, 3, t] - y[r, b, 2, t]) for b in range(2)]
        share[r, t] = np.median(np.divide(apart, redrawn))  # of two numbers each
    causal = dataset.sel(kind="descent", mask="causal")
    np.testing.assert_allclose(causal.effect, effect)
    np.testing.assert_allclose(causal.share, share)
    assert dataset.effect.sel(mask="non-causal").max() < 1e-12
