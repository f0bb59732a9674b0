"""Long prompts by moments, gradients of several classes, and the gaps that are ranked."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.matching.many_shots import long_prompts
from experiments.matching.matching_transfer import choices
from experiments.matching.matching_transfer import config as transfer
from experiments.matching.several_classes import compute as several
from experiments.matching.several_classes.config import Config, shares
from experiments.models.model import Model
from experiments.models.named import named
from lsa_lab import prompts
from lsa_lab.models import linear_attention
from lsa_lab.selection import gradient_matching
from lsa_lab.tasks import linear, pools


@pytest.mark.parametrize("own_units", [False, True])
def test_predictions_from_moments_are_those_of_the_model(own_units):
    ((_, spec),) = named("smoke", ["linear attention"])
    assert spec.architecture.own_units
    params = linear_attention.init(jax.random.key(0), spec.architecture.depth, 1, 2, scale=0.5)
    task = linear.LinearTask(6, 2, noise_std=0.5)
    batch = linear.sample_batch(jax.random.key(1), task, 5)
    batch = batch.replace(x=3 * batch.x, x_query=3 * batch.x_query)
    moments = prompts.second_moments(batch)
    ours = long_prompts.predictions(params, own_units, moments, batch.x_query.T, 1.0)
    in_own_units = Model(spec, params).predict(batch)
    np.testing.assert_equal(np.allclose(ours, in_own_units, rtol=1e-10), own_units)


def test_gradients_of_several_classes_are_those_of_the_loss():
    keys = jax.random.split(jax.random.key(2), 2)
    weights, x = jax.random.normal(keys[0], (4, 3, 5)), jax.random.normal(keys[1], (6, 5))
    labels = jnp.array([0, 1, 2, 0, 1, 2])

    def loss(weights, x, label):
        return -jax.nn.log_softmax(weights @ x)[label]

    by_weights = jax.vmap(jax.grad(loss), (0, None, None))
    by_autodiff = jax.vmap(by_weights, (None, 0, 0))(weights, x, labels)
    ours = several.gradients(weights, x, labels)
    np.testing.assert_allclose(ours, by_autodiff.reshape(6, -1), atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_shares_decline_and_chance_misses_them_by_k_less_one_over_2n(classes):
    config = Config(n=400)
    share = np.array(shares(config, classes))
    np.testing.assert_allclose(share.sum(), 1, rtol=1e-12)
    assert (np.diff(share) < 0).all()
    counts = np.random.default_rng(0).multinomial(config.n, share, 20_000)
    mean = several.divergence(counts, share).mean()
    np.testing.assert_allclose(mean, (classes - 1) / (2 * config.n), rtol=0.05)


def test_gaps_of_random_subsets_are_those_that_certify_gives():
    config = transfer.TIERS["smoke"]
    task = pools.PoolTask(config.m, config.d, noise_std=config.noise_std)
    keys = jax.random.split(jax.random.key(3), 3)
    pool = jax.vmap(lambda key: pools.sample(key, task))(keys[:1]).replace(population=None)
    learners = {
        rule: jax.random.normal(keys[1], (1, config.checkpoints, config.prefix_length, 3))
        for rule in choices.stacks(config)
    }
    indices, gaps = choices.choose(config, pool, learners, keys[2:])
    rows = choices.features(config, *jax.tree.map(lambda leaf: leaf[0], (pool, learners)))
    assert gaps.shape == (1, len(transfer.GRADIENTS), config.random_subsets)
    for subset, gap in zip(indices[0, len(transfer.GRADIENTS) + 1 :], gaps[0].T, strict=True):
        certified = [gradient_matching.certify(row, subset).objective for row in rows]
        np.testing.assert_allclose(gap, certified, rtol=1e-10)
