"""Softmax attention at a small scale τ is centred linear attention, to first order in τ.

Derived here; docs/theory, "Softmax at a small scale".
"""

import numpy as np
from hypothesis import assume

from draws import jit_numpy, seeds
from lsa_lab.models import transformer
from lsa_lab.prompts import Prompt, tokens

N, D = 7, 3
ONE_HEAD = transformer.Config(D + 1, 1, heads=1, key_width=D)
PAIR = transformer.Config(D + 1, 1, heads=2, key_width=D)
LINEAR = transformer.Config(D + 1, 1, heads=1, key_width=D, kernel="linear")
SCALES = np.geomspace(3e-2, 1e-3, 7)
predict = jit_numpy(
    lambda params, prompt, config: transformer.predict(params, tokens(prompt), config)
)


def draw(seed):
    """A prompt and A with max |s - s̄| = 1, s̄ = 1 and ȳ = 1; y - ȳ and s - s̄."""
    rng = np.random.default_rng(seed)
    x, y, x_query = rng.normal(size=(N, D)), rng.normal(size=N), rng.normal(size=D)
    matrix = rng.normal(size=(D, D))
    direction, centred = matrix @ x_query, x - x.mean(0)
    x = centred / np.abs(centred @ direction).max() + direction / (direction @ direction)
    y, s = y - y.mean(), x @ direction - 1
    return (Prompt(x, y + 1, x_query, np.zeros(())), matrix), y, s


def retrieve(case, scales, signs, config):
    """Σ_h sign_h · (the labels, averaged by the weights of scores scale_h · s)."""
    prompt, matrix = case
    w_q, w_k, w_v, w_o = np.zeros((4, 1, len(scales), D, D + 1))
    w_q[0, :, :, :D] = np.array(scales)[:, None, None] * matrix
    w_k[0, :, :, :D] = np.eye(D)
    w_v[0, :, 0, D], w_o[0, :, 0, D] = 1, -np.array(signs)
    return predict(transformer.Params(w_q, w_k, w_v, w_o.mT), prompt, config)


def slope_and_last(case, limit, pair=False):
    """The slope of log |error| against log τ, of a head or a pair, and the error at the last τ."""
    if pair:
        found = [retrieve(case, [t, -t], [0.5 / t, -0.5 / t], PAIR) for t in SCALES]
    else:
        found = [(retrieve(case, [t], [1.0], ONE_HEAD) - case[0].y.mean()) / t for t in SCALES]
    errors = np.array(found) - limit
    return np.polyfit(np.log(SCALES), np.log(np.abs(errors)), 1)[0], errors[-1]


@seeds
def test_one_head_errs_by_first_order_and_a_pair_of_opposite_heads_by_second(seed):
    case, y, s = draw(seed)
    first, second = (y * s).mean(), (y * s**2).mean() / 2
    third = ((y * s**3).mean() - 3 * first * (s**2).mean()) / 6
    assume(min(abs(second), 5 * abs(third)) > 0.01)
    for order, coefficient, pair in ((1, second, False), (2, third, True)):
        slope, error = slope_and_last(case, first, pair)
        assert abs(slope - order) < 0.1
        assert abs(error / SCALES[-1] ** order - coefficient) < 2e-3
    # Control: linear attention without centring is not the limit.
    slope, error = slope_and_last(case, retrieve(case, [1.0], [1.0], LINEAR))
    assert abs(slope) < 0.1
    assert abs(error + 1) < 0.01  # ȳ s̄ = 1
    centred = case[0].replace(y=y), case[1]
    assert abs(slope_and_last(centred, retrieve(centred, [1.0], [1.0], LINEAR))[1]) < 0.01
    # Undivided it is plain linear attention, and a large scale retrieves one label.
    undivided = ((y + 1) * np.expm1(1e-6 * (s + 1))).mean() / 1e-6
    assert abs(retrieve(case, [1.0], [1.0], LINEAR) - undivided) < 1e-5
    assert abs(retrieve(case, [1e8], [1.0], ONE_HEAD) - (y + 1)[s.argmax()]) < 1e-10
