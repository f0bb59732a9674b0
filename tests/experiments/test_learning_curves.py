"""The rules beside trained recurrent layers have the closed learning curves."""

from functools import partial

import jax
import numpy as np
import pytest

from experiments.recurrent import learning_curves as experiment
from experiments.recurrent.learning_curves import RULES, Config
from lsa_lab.models import recurrent
from lsa_lab.theory import learning_curves as theory

CONFIG = Config(d=4, n=8, times=(3,), stream=10, test_prompts=4000)


@pytest.fixture(scope="module")
def constants():
    return [experiment.find_constants(CONFIG, curve) for curve in (theory.lms, theory.gated_delta)]


@pytest.fixture(scope="module")
def longer():
    return experiment.draw_prompts(CONFIG, 0)


def test_every_rule_has_its_closed_curve_and_no_curve_rises(constants, longer):
    prompts, targets = longer
    predict = partial(experiment.predict_by_rules, config=CONFIG, constants=constants)
    squares = (np.asarray(jax.jit(jax.vmap(predict))(prompts)) - targets[:, None]) ** 2
    closed = experiment.closed_curves(CONFIG, constants)
    error = squares.std(0) / np.sqrt(len(squares))
    assert (np.abs(squares.mean(0) - closed) < 4.5 * error).all()
    assert (np.diff(closed) < 1e-12).all()
    # Control: with twice the step the curve of LMS is another one.
    other = experiment.closed_curves(CONFIG, [constants[0] * np.array([2, 1]), constants[1]])
    assert (np.abs(squares.mean(0) - other) > 4.5 * error)[RULES.index("LMS")].any()


def test_constants_are_the_best(constants):
    for curve, best in zip((theory.lms, theory.gated_delta), constants, strict=True):

        def mean_risk(step, scale, curve=curve):
            sizes = CONFIG.n, CONFIG.d, CONFIG.noise_var
            return float(curve(*sizes, step, 1.0, scale)[1:].mean())

        least = mean_risk(*best)
        for factors in ((1.05, 1), (0.95, 1), (1, 1.05), (1, 0.95)):
            assert mean_risk(*(best * np.array(factors))) > least


def test_the_scale_of_a_learned_step_is_the_best_in_training(constants):
    step, scale = constants[1]
    curve = experiment.curve_of_step(CONFIG, step)
    stated = theory.gated_delta(24, CONFIG.d, CONFIG.noise_var, step, 1.0, scale)
    np.testing.assert_allclose(curve, stated, rtol=1e-4)


def test_the_mean_step_is_that_of_the_layer(longer):
    _, shape = experiment.make_forward("delta", 1, CONFIG)
    params = jax.jit(recurrent.init, static_argnums=1)(jax.random.key(1), shape)
    params = jax.tree.map(np.asarray, params)
    params = params.replace(w_step=0 * params.w_step, b_step=params.b_step - 1)
    prompts = jax.tree.map(lambda leaf: np.asarray(leaf)[:4], longer[0])
    step = jax.jit(experiment.mean_step)(params, prompts)
    np.testing.assert_allclose(step, jax.nn.sigmoid(-1.0), rtol=1e-12)
    # A value of 1 for a key of any length is learned by that share.
    ones = params.replace(w_v=0 * params.w_v + 1)
    states = jax.jit(recurrent.states, static_argnums=2)
    state = np.asarray(states(ones, np.ones((1, shape.token_width)), shape))[0, 0, 0]
    u = params.read_in @ np.ones(shape.token_width)
    key = params.w_k[0, 0] @ u
    read = key @ state / np.linalg.norm(key)
    np.testing.assert_allclose(read, step * u.sum(), rtol=1e-10)
