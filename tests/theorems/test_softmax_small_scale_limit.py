"""Softmax attention at a small scale τ is centred linear attention, to first order in τ.

With scores s_i = x_iᵀ A x_query and means over the demonstrations (docs/theory, "Softmax at a small
scale"; k₃ derived here),

    (softmax(τs)·y - ȳ)/τ = mean(y(s - s̄)) + τ k₂ + O(τ²),   k₂ = ½ mean((y - ȳ)(s - s̄)²),
    (softmax(τs)·y - softmax(-τs)·y)/2τ = mean(y(s - s̄)) + τ² k₃ + O(τ⁴),
    k₃ = (mean((y - ȳ)(s - s̄)³) - 3 mean(y(s - s̄)) var s)/6.

Sides: the transformer at falling τ; the expansion, in NumPy. Hypotheses: k₂ and k₃ not 0. Without
centring linear attention is wrong by ȳ s̄ = 1 at every τ; it is the limit of centred labels.
"""

import dataclasses

import numpy as np
from hypothesis import assume

from draws import jit_numpy, seeds
from lsa_lab.models import transformer
from lsa_lab.models.transformer import Config
from lsa_lab.prompts import Prompt, tokens

N, D = 7, 3
ONE_HEAD = Config(D + 1, num_layers=1, heads=1, key_width=D)
PAIR = dataclasses.replace(ONE_HEAD, heads=2)
LINEAR = dataclasses.replace(ONE_HEAD, kernel="linear")
SCALES = np.geomspace(3e-2, 1e-3, 7)
predict = jit_numpy(
    lambda params, prompt, config: transformer.predict(params, tokens(prompt), config)
)


def draw(seed):
    """A prompt and A with max |s - s̄| = 1, s̄ = 1 and ȳ = 1."""
    rng = np.random.default_rng(seed)
    x, y, x_query = rng.normal(size=(N, D)), rng.normal(size=N), rng.normal(size=D)
    matrix = rng.normal(size=(D, D))
    direction, centred = matrix @ x_query, x - x.mean(0)
    x = centred / np.abs(centred @ direction).max() + direction / (direction @ direction)
    return Prompt(x, y - y.mean() + 1, x_query, np.zeros(())), matrix


def retrieved(prompt, matrix, scales, signs, config):
    """Σ_h sign_h · (the labels, averaged by the weights of scores scale_h · s)."""
    w_q, w_k, w_v, w_o = np.zeros((4, 1, len(scales), D, D + 1))
    w_q[0, :, :, :D] = np.array(scales)[:, None, None] * matrix
    w_k[0, :, :, :D] = np.eye(D)
    w_v[0, :, 0, D], w_o[0, :, 0, D] = 1, -np.array(signs)
    return predict(transformer.Params(w_q, w_k, w_v, w_o.swapaxes(2, 3)), prompt, config)


def one_head(prompt, matrix, scale):
    head = retrieved(prompt, matrix, [scale], [1.0], ONE_HEAD)
    return (head - prompt.y.mean()) / scale


def pair_of_heads(prompt, matrix, scale):
    return retrieved(prompt, matrix, [scale, -scale], [0.5 / scale, -0.5 / scale], PAIR)


def slope_and_last(network, prompt, matrix, limit):
    """The slope of log |error| against log τ, and the error at the smallest τ."""
    errors = np.array([network(prompt, matrix, scale) for scale in SCALES]) - limit
    return np.polyfit(np.log(SCALES), np.log(np.abs(errors)), 1)[0], errors[-1]


def expansion(prompt, matrix):
    """mean(y(s - s̄)), k₂ and k₃."""
    y, s = prompt.y, prompt.x @ (matrix @ prompt.x_query)
    y, s = y - y.mean(), s - s.mean()
    first = (y * s).mean()
    return first, (y * s**2).mean() / 2, ((y * s**3).mean() - 3 * first * (s**2).mean()) / 6


@seeds
def test_one_head_errs_by_first_order_and_a_pair_of_opposite_heads_by_second(seed):
    prompt, matrix = draw(seed)
    first, second, third = expansion(prompt, matrix)
    assume(min(abs(second), 5 * abs(third)) > 0.01)
    slope, error = slope_and_last(one_head, prompt, matrix, first)
    assert abs(slope - 1) < 0.1
    assert abs(error / SCALES[-1] - second) < 2e-3
    slope, error = slope_and_last(pair_of_heads, prompt, matrix, first)
    assert abs(slope - 2) < 0.1
    assert abs(error / SCALES[-1] ** 2 - third) < 2e-3


@seeds
def test_control_linear_attention_without_centring_is_not_the_limit(seed):
    prompt, matrix = draw(seed)
    plain = retrieved(prompt, matrix, [1.0], [1.0], LINEAR)
    slope, error = slope_and_last(one_head, prompt, matrix, plain)
    assert abs(slope) < 0.1
    assert abs(error + 1) < 0.01
    centred = prompt.replace(y=prompt.y - prompt.y.mean())
    plain = retrieved(centred, matrix, [1.0], [1.0], LINEAR)
    assert abs(slope_and_last(one_head, centred, matrix, plain)[1]) < 0.01


def test_undivided_it_is_plain_linear_attention_and_a_large_scale_retrieves_one_label():
    prompt, matrix = at = draw(0)
    y, s = prompt.y, prompt.x @ (matrix @ prompt.x_query)
    assert abs(retrieved(*at, [1.0], [1.0], LINEAR) - (y * np.expm1(1e-6 * s)).mean() / 1e-6) < 1e-5
    assert abs(retrieved(*at, [1e8], [1.0], ONE_HEAD) - y[s.argmax()]) < 1e-10
