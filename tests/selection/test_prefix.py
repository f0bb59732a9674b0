"""The latent learner: its tokens, its training, and its gradients."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.models import transformer
from lsa_lab.models.trace import predict
from lsa_lab.selection import prefix
from lsa_lab.tasks import pools

D, M = 3, 40
SOFTMAX = transformer.Config(D + 1, 2, 2, 3, mlp_width=5)
TASK = pools.PoolTask(M, D, noise_std=0.1)


@jax.jit
def draw(key):
    """A pool, checkpoints [3, k, e], and a softmax transformer."""
    keys = jax.random.split(key, 3)
    checkpoints = jax.vmap(lambda key: prefix.init(key, 4, D + 1))(jax.random.split(keys[1], 3))
    return pools.sample(keys[0], TASK), checkpoints, transformer.init(keys[2], SOFTMAX)


POOL, CHECKPOINTS, PARAMS = draw(jax.random.key(0))
FORWARD = partial(transformer.forward, config=SOFTMAX)
prefix_gradients = jax.jit(partial(prefix.prefix_gradients, FORWARD))


def test_a_prefix_stands_where_demonstrations_would():
    shown = prefix.tokens(CHECKPOINTS[0], POOL.x[0])
    np.testing.assert_array_equal(shown[:4], CHECKPOINTS[0])
    np.testing.assert_array_equal(shown[4], [*POOL.x[0], 0])


def test_the_loss_of_a_batch_is_the_mean_of_half_the_squared_errors():
    answer = jax.jit(lambda x: predict(FORWARD(PARAMS, prefix.tokens(CHECKPOINTS[1], x))))
    expected = [(answer(x) - y) ** 2 / 2 for x, y in zip(POOL.x, POOL.y, strict=True)]
    one = prefix.example_loss(FORWARD, PARAMS, CHECKPOINTS[1], POOL.x[7], POOL.y[7])
    np.testing.assert_allclose(one, expected[7], rtol=1e-10)
    whole = jax.jit(partial(prefix.batch_loss, FORWARD, PARAMS))(CHECKPOINTS[1], POOL)
    np.testing.assert_allclose(whole, np.mean(expected), rtol=1e-10)


def test_linear_gradients_are_slopes_of_the_linear_loss():
    weights = np.random.default_rng(1).normal(size=(2, D))
    gradients = prefix.linear_gradients(weights, POOL)
    assert gradients.shape == (M, 2 * D)
    whole = jax.vmap(jax.grad(prefix.linear_loss), (0, None))(jnp.asarray(weights), POOL)
    np.testing.assert_allclose(gradients.mean(0), whole.ravel(), rtol=1e-9)


def test_a_recipe_counts_steps_as_fit_does():
    recipe = prefix.Recipe()
    assert recipe.steps(256) == 40
    assert recipe.chunk(256) == 4  # ten saves
    assert recipe.steps(50_000) == 7810
    assert recipe.steps(3) == 10  # never less than a step between two saves
    optimizer = recipe.optimizer(256)
    ones, state, moves = jnp.ones(2), optimizer.init(jnp.ones(2)), []
    for _ in range(6):
        with jax.numpy_dtype_promotion("standard"):
            update, state = optimizer.update(ones, state, ones)
        moves.append(-float(update[0]))
    expected = 1e-3 * np.minimum(np.arange(6) / 4, 1)
    np.testing.assert_allclose(moves, expected, rtol=1e-6, atol=1e-12)


def test_a_batch_is_drawn_from_the_whole_pool():
    many = prefix.sample_batch(jax.random.key(0), POOL, 50 * M)
    assert {*np.asarray(many.y)} == {*np.asarray(POOL.y)}  # the first and the last among them


def test_gradients_of_any_loss_are_its_slopes():
    def cross_entropy(soft_prompt, params, example):
        score = predict(FORWARD(params, prefix.tokens(soft_prompt, example["x"])))
        return -jax.nn.log_sigmoid(jnp.where(example["label"], score, -score))

    examples = {"x": POOL.x, "label": POOL.y > 0}
    run = jax.jit(partial(prefix.example_gradients, cross_entropy, together=7))
    found = run(PARAMS, CHECKPOINTS, examples)
    assert found.shape == (M, 3 * 4 * (D + 1))
    whole = jax.jit(jax.grad(partial(prefix.mean_loss, cross_entropy, PARAMS)))
    for c, checkpoint in enumerate(CHECKPOINTS):
        mean = found.mean(0).reshape(CHECKPOINTS.shape)[c]
        np.testing.assert_allclose(mean, whole(checkpoint, examples), rtol=1e-9, atol=1e-12)
    # Control: the gradients of the squared error differ.
    assert abs(prefix_gradients(PARAMS, CHECKPOINTS, POOL) - found).max() > 1e-3
