"""A delta rule with steps of 2 counts modulo two; states with eigenvalues in [0, 1] cannot.

docs/theory, "Parity". Sides: states of recurrent models; the parity of the tokens, and the number
of times that a read of k channels can cross a threshold. Hypotheses: steps above 1 or not.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy
from lsa_lab.models import recurrent
from lsa_lab.models.recurrent import Config

LENGTH, WIDTH = 40, 3


def counter(largest_step):
    """Tokens [start, bit]; the start writes 1, and a bit of 1 takes a step and writes nothing."""
    config = Config("delta", token_width=2, key_width=1, largest_step=largest_step, layout="bound")
    row = jnp.array([[[[1.0, 1.0]]]])
    leaves = dict(w_q=row, w_k=row, w_v=jnp.array([[[[1.0, 0.0]]]]), w_o=jnp.ones((1, 1, 2, 1)))
    steps = dict(w_step=jnp.zeros((1, 1, 1, 2)), b_step=jnp.full((1, 1, 1), 40.0))
    return recurrent.Params(**leaves, **steps), config


@jit_numpy
def states_of_delta(bits):  # [T] -> [T+1]
    rows = jnp.stack([jnp.zeros(LENGTH), bits], 1)
    rows = jnp.concatenate([jnp.array([[1.0, 0.0]]), rows])
    return recurrent.states(*(counter(2.0)[0], rows), counter(2.0)[1]).ravel()


def test_the_sign_of_the_state_is_the_parity_of_every_prefix():
    strings = np.random.default_rng(0).integers(0, 2, size=(50, LENGTH))
    parities = 1 - 2 * (np.cumsum(strings, 1) % 2)
    for bits, parity in zip(strings, parities, strict=True):
        assert (states_of_delta(bits.astype(float))[1:] == 2 * parity).all()


def most_crossings(path):
    """The most often that a path [T] changes sides of one threshold."""
    levels = np.unique(np.round(path, 9))
    sides = np.sign(path[None] - (levels[1:] + levels[:-1])[:, None] / 2)
    return int((np.diff(sides) != 0).sum(1).max(initial=0))


def config_of(kind, largest_step):
    return Config(
        kind,
        token_width=2,
        key_width=WIDTH,
        value_width=1,
        layout="bound",
        diagonal=kind == "gla",
        largest_step=largest_step,
    )


@partial(jit_numpy, static_argnums=0)
def states(config, params, token):  # [T, k]
    return recurrent.states(params, jnp.repeat(token, LENGTH, 0), config)[0, 0, :, :, 0]


def reads(kind, largest_step, seed):  # [8, T]
    """Eight random reads of the state while one token is repeated."""
    config, rng = config_of(kind, largest_step), np.random.default_rng(seed)
    shapes = jax.eval_shape(recurrent.init, jax.random.key(0), config)
    params = jax.tree.map(lambda leaf: 2 * rng.normal(size=leaf.shape), shapes)
    return rng.normal(size=(8, WIDTH)) @ states(config, params, rng.normal(size=(1, 2))).T


@pytest.mark.parametrize(("kind", "largest_step"), [("gla", 1.0), ("delta", 1.0)])
def test_no_read_of_k_channels_crosses_a_threshold_more_than_k_times(kind, largest_step):
    crossings = [
        most_crossings(path) for seed in range(5) for path in reads(kind, largest_step, seed)
    ]
    assert max(crossings) <= WIDTH


def test_control_steps_above_1_cross_at_nearly_every_token():
    paths = [path for seed in range(5) for path in reads("delta", 2.0, seed)]
    assert max(most_crossings(path) for path in paths) > LENGTH // 4
