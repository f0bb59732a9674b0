"""A delta rule with steps of 2 counts modulo two; states with eigenvalues in [0, 1] cannot: a read
of k channels crosses a threshold k times at most.

docs/theory, "Parity".
"""

from functools import partial

import numpy as np

from draws import draw_weights, jit_numpy
from lsa_lab.models import recurrent
from lsa_lab.models.recurrent import Config

LENGTH, WIDTH = 40, 3


@partial(jit_numpy, static_argnums=0)
def states(config, params, rows):  # [T, k]
    return recurrent.states(params, rows, config)[0, 0, :, :, 0]


def test_the_sign_of_the_state_is_the_parity_of_every_prefix():
    """Tokens are [start, bit]: the start writes 1, a bit of 1 takes a step of 2."""
    config = Config("delta", token_width=2, key_width=1, largest_step=2.0, layout="bound")
    row, ones = np.ones((1, 1, 1, 2)), np.ones((1, 1, 1))
    leaves = dict(w_q=row, w_k=row, w_v=row * [1.0, 0.0], w_o=np.ones((1, 1, 2, 1)))
    params = recurrent.Params(**leaves, w_step=0 * row, b_step=40 * ones)
    for bits in np.random.default_rng(0).integers(0, 2, size=(50, LENGTH)):
        rows = np.append([[1.0, 0.0]], np.outer(bits, [0.0, 1.0]), axis=0)
        parity = 1 - 2 * (np.cumsum(bits) % 2)
        assert (states(config, params, rows)[1:, 0] == 2 * parity).all()


def most_crossings(kind, largest_step):
    """The most often that a random read [T] of the state changes sides of one threshold, while one
    token is repeated."""
    shape = dict(token_width=2, key_width=WIDTH, value_width=1, layout="bound")
    config = Config(kind, **shape, diagonal=kind == "gla", largest_step=largest_step)
    most = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        params = draw_weights(rng, recurrent.init, config, 2.0)
        reads, token = rng.normal(size=(8, WIDTH)), rng.normal(size=(1, 2))
        for path in reads @ states(config, params, np.repeat(token, LENGTH, 0)).T:
            levels = np.unique(np.round(path, 9))
            sides = np.sign(path[None] - (levels[1:] + levels[:-1])[:, None] / 2)
            most = max(most, int((np.diff(sides) != 0).sum(1).max(initial=0)))
    return most


def test_no_read_of_k_channels_crosses_a_threshold_more_than_k_times_with_steps_up_to_1():
    assert max(most_crossings("gla", 1.0), most_crossings("delta", 1.0)) <= WIDTH
    # Control: steps above 1 cross at nearly every token.
    assert most_crossings("delta", 2.0) > LENGTH // 4
