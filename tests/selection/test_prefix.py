"""The latent learner: its tokens, its training, and its gradients."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from draws import draw_weights, jit_numpy
from lsa_lab.models import transformer
from lsa_lab.models.trace import predict
from lsa_lab.selection import prefix
from lsa_lab.tasks import pools

D, M = 3, 40
SOFTMAX = transformer.Config(D + 1, 2, 2, 3, mlp_width=5)
FORWARD = partial(transformer.forward, config=SOFTMAX)
RNG = np.random.default_rng(0)
POOL = pools.Pool(RNG.normal(size=(M, D)), RNG.normal(size=M))
CHECKPOINTS, PARAMS = (
    RNG.normal(size=(3, 4, D + 1)),
    draw_weights(RNG, transformer.init, SOFTMAX, 0.3),
)


def test_a_prefix_stands_where_demonstrations_would_and_a_batch_has_the_mean_of_half_the_squares():
    shown = [prefix.tokens(CHECKPOINTS[1], x) for x in POOL.x]
    np.testing.assert_array_equal(shown[0], [*CHECKPOINTS[1], [*POOL.x[0], 0]])
    answer = jit_numpy(lambda rows: predict(FORWARD(PARAMS, rows)))
    expected = [(answer(rows) - y) ** 2 / 2 for rows, y in zip(shown, POOL.y, strict=True)]
    one = prefix.example_loss(FORWARD, CHECKPOINTS[1], PARAMS, (POOL.x[7], POOL.y[7]))
    np.testing.assert_allclose(one, expected[7], rtol=1e-10)
    whole = jit_numpy(partial(prefix.batch_loss, FORWARD, PARAMS))(CHECKPOINTS[1], POOL)
    np.testing.assert_allclose(whole, np.mean(expected), rtol=1e-10)


def test_linear_gradients_are_slopes_of_the_linear_loss():
    weights = RNG.normal(size=(2, D))
    gradients = prefix.linear_gradients(weights, POOL)
    assert gradients.shape == (M, 2 * D)
    whole = jit_numpy(jax.vmap(jax.grad(prefix.linear_loss), (0, None)))(weights, POOL)
    np.testing.assert_allclose(gradients.mean(0), whole.ravel(), rtol=1e-9)


def test_a_recipe_counts_steps_as_fit_does():
    recipe = prefix.Recipe()
    assert [recipe.steps(m) for m in (256, 50_000, 3)] == [40, 7810, 10]  # a step between two saves
    assert recipe.chunk(256) == 4  # ten saves
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
    assert {*np.asarray(many.y)} == {*POOL.y}  # the first and the last among them


def test_gradients_of_any_loss_are_its_slopes():
    def cross_entropy(soft_prompt, params, example):
        score = predict(FORWARD(params, prefix.tokens(soft_prompt, example["x"])))
        return -jax.nn.log_sigmoid(jnp.where(example["label"], score, -score))

    examples = {"x": POOL.x, "label": POOL.y > 0}
    run = jit_numpy(partial(prefix.example_gradients, cross_entropy, together=7))
    found = run(PARAMS, CHECKPOINTS, examples)
    assert found.shape == (M, CHECKPOINTS.size)
    whole = jit_numpy(jax.grad(partial(prefix.mean_loss, cross_entropy, PARAMS)))
    expected = [whole(checkpoint, examples) for checkpoint in CHECKPOINTS]
    np.testing.assert_allclose(found.mean(0), np.ravel(expected), rtol=1e-9, atol=1e-12)
    # Control: the gradients of the squared error differ.
    squared = jit_numpy(partial(prefix.prefix_gradients, FORWARD))(PARAMS, CHECKPOINTS, POOL)
    assert abs(squared - found).max() > 1e-3
