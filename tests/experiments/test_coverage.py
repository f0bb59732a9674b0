"""`coverage`: its gradients, subsets, errors and divergences beside loops and a case by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import descend
from experiments.matching import coverage

CONFIG = coverage.Config(
    d=2, m=16, n=8, decline=0.5, depth=3, draws=4, queries=3, runs=2, test_labels=9, seed=5
)
KEYS = jax.random.split(jax.random.key(0), 2)
KINDS = pytest.mark.parametrize("kind", [coverage.TASKS, "3 classes"])


@KINDS
def test_gradients_are_those_of_the_loss_by_example(kind):
    pool, _ = coverage.draw_pools(CONFIG, kind, KEYS)
    x, targets = coverage.add_constant(pool.x[0], 1.0), coverage.find_targets(CONFIG, kind, pool)
    shape = (3, targets.shape[-1], CONFIG.d + 1)
    path = jnp.asarray(np.random.default_rng(1).normal(size=shape))

    def loss(weights, x, target):
        scores = weights @ x
        if kind == coverage.TASKS:
            return (scores[0] - target[0]) ** 2 / 2
        return jax.scipy.special.logsumexp(scores) - scores @ target

    by_weights = jax.vmap(jax.grad(loss), (0, None, None))
    expected = jax.jit(jax.vmap(by_weights, (None, 0, 0)))(path, x, targets[0])
    found = coverage.find_gradients(kind, path, x, targets[0])
    np.testing.assert_allclose(found, np.reshape(expected, (CONFIG.m, -1)), atol=1e-12)
    mean = jax.grad(lambda w: coverage.learner_loss(kind, w, x, targets[0]))(path[0])
    np.testing.assert_allclose(mean.ravel(), found[:, : mean.size].mean(0), atol=1e-12)


@pytest.mark.parametrize(("kind", "counts"), [("one task", [6, 2]), ("3 classes", [4, 3, 1])])
def test_stratified_subsets_have_the_shares_of_the_pool_and_random_ones_have_not(kind, counts):
    pool, _ = coverage.draw_pools(CONFIG, kind, KEYS)
    path, x = coverage.train_learners(CONFIG, kind, pool, KEYS)
    chosen = np.asarray(coverage.choose(CONFIG, kind, path, x, pool, KEYS))
    assert chosen.shape == (2, 2 + 2 * CONFIG.draws, CONFIG.n)
    assert all(len({*rows}) == CONFIG.n for rows in chosen.reshape(-1, CONFIG.n))
    clusters = np.take_along_axis(np.asarray(pool.cluster)[:, None], chosen, 2)
    found = (clusters[..., None] == np.arange(len(counts))).sum(2)
    assert (found[:, -CONFIG.draws :] == counts).all()
    assert not (found[:, 2 : -CONFIG.draws] == counts).all()


@KINDS
def test_errors_are_those_of_descent_by_loops(kind):
    pool, queries = coverage.draw_pools(CONFIG, kind, KEYS)
    chosen = np.stack([np.arange(8), np.arange(4, 12)])[None].repeat(2, 0)
    found = coverage.measure_errors(CONFIG, kind, pool, queries, chosen)
    rows, steps = chosen[1, 1], [CONFIG.step] * CONFIG.depth
    x, asked = np.asarray(pool.x[1])[rows], np.asarray(queries.x[1])
    if kind == "3 classes":
        x, asked = (np.column_stack([part, np.ones(len(part))]) for part in (x, asked))
        targets = np.eye(3)[np.asarray(pool.cluster[1])[rows]]
        answers = [asked @ descend(x, column, steps) for column in targets.T]
        errors = np.argmax(answers, axis=0) != np.asarray(queries.cluster[1])
    else:
        answers = asked @ descend(x, np.asarray(pool.y[1])[rows], steps)
        errors = (answers - np.asarray(queries.y[1])) ** 2
    np.testing.assert_allclose(found[1, 1], errors.reshape(-1, CONFIG.queries).mean(1))
