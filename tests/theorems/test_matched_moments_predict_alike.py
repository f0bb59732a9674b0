"""A subset with the pool's second moment is as good as the pool, at any depth.

docs/theory, "Matched moments predict alike". Sides: the gap of the moment features, which selection
matches; every masked linear model's forward pass over the subset and over the pool.
"""

import functools

import jax.numpy as jnp
import numpy as np

import population
from draws import jit_numpy, seeds
from lsa_lab.models import constructions, linear_attention, transformer
from lsa_lab.selection.baselines import moment_features

D, SIZE, PARTS = 3, 6, 5
SOFTMAX = transformer.Config(D + 1, 2, 2, D)
DESCENT = jit_numpy(constructions.gradient_descent_plus_plus, static_argnums=2)(
    np.full(4, 0.3), np.full(4, 0.05), D
)


@functools.partial(jit_numpy, static_argnames="softmax")
def read(params, tokens, x_query, softmax=False):
    if softmax:
        rows = jnp.concatenate([tokens, jnp.append(x_query, 0.0)[None]])
        return transformer.predict(params, rows, SOFTMAX)
    return population.predict(params, tokens[:, :-1], tokens[:, -1], x_query)


def rotations(demonstrations, rng):
    """A pool of groups with one moment: orthogonal mixtures U E of the same demonstrations."""
    turns = [np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0] for _ in range(PARTS)]
    return np.concatenate([turn @ demonstrations for turn in turns])


def draw(seed):
    rng = np.random.default_rng(seed)
    demonstrations, x_query = rng.normal(size=(SIZE, D + 1)), rng.normal(size=D)
    weights = [0.3 * rng.normal(size=(3, 2, D + 1, D + 1)) for _ in range(2)]
    return rotations(demonstrations, rng), x_query, linear_attention.Params(*weights), rng


def differences(params, pool, indices, x_query, softmax=False):
    whole = read(params, pool, x_query, softmax)
    return abs(read(params, pool[indices], x_query, softmax) - whole) / max(1, abs(whole))


@seeds
def test_a_group_with_the_moment_of_the_pool_is_as_good_as_the_pool(seed):
    pool, x_query, params, _ = draw(seed)
    group = np.arange(SIZE, 2 * SIZE)
    features = np.asarray(moment_features(pool))
    assert np.linalg.norm(features[group].mean(0) - features.mean(0)) < 1e-12
    assert differences(params, pool, group, x_query) < 1e-10
    assert differences(DESCENT, pool, group, x_query) < 1e-10


def test_control_other_subsets_move_the_prediction():
    moved = []
    for seed in range(10):
        pool, x_query, params, _ = draw(seed)
        mixed = np.arange(SIZE) * PARTS  # rows of several groups
        moved.append(differences(params, pool, mixed, x_query))
    assert np.median(moved) > 1e-3


def test_control_softmax_sees_more_than_the_moment():
    moved = []
    for seed in range(10):
        pool, x_query, _, rng = draw(seed)
        shape = SOFTMAX.num_layers, SOFTMAX.heads, D, D + 1
        w_q, w_k, w_v, w_o = (rng.normal(size=shape) / 2 for _ in range(4))
        weights = transformer.Params(w_q, w_k, w_v, w_o.swapaxes(2, 3))
        moved.append(differences(weights, pool, np.arange(SIZE), x_query, softmax=True))
    assert np.median(moved) > 1e-2
