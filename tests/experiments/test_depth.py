"""The experiment on depth: what it judges of a stack is a property of the function of the stack."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from experiments.descent.depth.compute import shape_distances
from lsa_lab.models import linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.prompts import tokens
from lsa_lab.tasks.linear import LinearTask, sample

D, N = 3, 8


def prompts_of(size, seed=0):
    return jax.vmap(partial(sample, task=LinearTask(N, D)))(
        jax.random.split(jax.random.key(seed), size)
    )


@pytest.mark.parametrize("num_layers", [1, 3])
def test_no_direction_that_leaves_all_predictions_moves_a_judged_distance(num_layers):
    params = linear_attention.init(jax.random.key(1), num_layers, 1, D, scale=0.4)
    weights, unravel = ravel_pytree(params)

    def prediction(weights, prompt):
        return predict(linear_attention.forward(unravel(weights), tokens(prompt)))

    def distances(weights):
        stacks = jax.tree.map(lambda leaf: leaf[None], unravel(weights))
        return shape_distances(stacks, jnp.eye(D)[None])[:, 0]

    gradients = jax.jit(jax.vmap(jax.grad(prediction), (None, 0)))(weights, prompts_of(400))
    values, rows = np.linalg.svd(gradients / np.linalg.norm(gradients, axis=1)[:, None])[1:]
    silent = rows[values < 1e-10 * values[0]]  # scales of the two matrices, and what is never read
    assert len(silent) > num_layers
    moved = np.einsum("mlp,kp->mlk", jax.jit(jax.jacobian(distances))(weights), silent)
    moved = np.abs(moved).max(2)
    assert moved[0].max() < 1e-10  # A of every layer
    assert moved[1, :-1].max(initial=0) < 1e-10  # B of all but the last
    assert moved[1, -1] > 1e-3  # which moves nothing that is read, and is not judged
