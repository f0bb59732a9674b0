"""The rules that `learning_curves` puts beside trained layers have the curves that it draws."""

import jax
import numpy as np
import pytest

from experiments.recurrent.learning_curves import compute, rules
from experiments.recurrent.learning_curves.config import Config
from experiments.recurrent.learning_curves.train import model_of
from lsa_lab.models import recurrent
from lsa_lab.theory import learning_curves

CONFIG = Config(n=8, test_prompts=4000)
LENGTH = 24


@pytest.fixture(scope="module")
def longer():
    draw = jax.jit(compute.longer_prompts, static_argnums=(1, 2))
    return draw(jax.random.key(0), CONFIG, LENGTH)


@pytest.fixture(scope="module")
def best():
    return rules.best_constants(CONFIG)


def test_every_rule_has_its_closed_curve_and_no_curve_rises(best, longer):
    prompts, targets = longer
    predicted = rules.predictions_of_each(prompts, CONFIG, best)
    squares = (np.asarray(predicted) - np.asarray(targets)[:, None]) ** 2
    closed = rules.closed_curves(CONFIG, LENGTH, best)
    error = squares.std(0) / np.sqrt(len(squares))
    assert (np.abs(squares.mean(0) - closed) < 4.5 * error).all()
    assert (np.diff(closed) < 1e-12).all()
    # Control: with the constants of another rule the curve is another one.
    other = rules.closed_curves(CONFIG, LENGTH, best | {"LMS": best["LMS"] * np.array([2, 1, 1])})
    assert (np.abs(squares.mean(0) - other) > 4.5 * error)[1].any()


def test_constants_are_the_best_and_a_gate_costs_nothing(best):
    def mean_risk(curve, constants):
        return float(curve(CONFIG.n, CONFIG.d, CONFIG.noise_var, *constants)[1:].mean())

    curves = {"LMS": learning_curves.lms, "DeltaNet": learning_curves.gated_delta}
    for name, curve in curves.items():
        least = mean_risk(curve, best[name])
        for factors in ((1.05, 1, 1), (0.95, 1, 1), (1, 1, 1.05), (1, 1, 0.95)):
            assert mean_risk(curve, best[name] * np.array(factors)) > least
    gated = mean_risk(learning_curves.gated_delta, best["gated DeltaNet"])
    assert gated <= mean_risk(learning_curves.gated_delta, best["DeltaNet"]) + 1e-6


def test_a_learned_step_has_the_scale_that_is_best_in_training(best):
    step, _, scale = best["DeltaNet"]
    own = rules.closed_curves_of_step(CONFIG, LENGTH, step)[1]
    stated = learning_curves.gated_delta(LENGTH, CONFIG.d, CONFIG.noise_var, step, 1.0, scale)
    np.testing.assert_allclose(own, stated, rtol=1e-4)


def test_the_mean_step_is_that_of_the_layer(longer):
    module, shape = model_of("delta", 1, CONFIG)
    params = jax.jit(module.init, static_argnums=1)(jax.random.key(1), shape)
    params = jax.tree.map(np.asarray, params)
    params = params.replace(w_step=0 * params.w_step, b_step=params.b_step - 1)
    runs = jax.tree.map(lambda leaf: leaf[None], params)
    prompts = jax.tree.map(lambda leaf: np.asarray(leaf)[:4], longer[0])
    steps = jax.jit(compute.mean_steps, static_argnums=2)(runs, prompts, shape)
    np.testing.assert_allclose(steps, jax.nn.sigmoid(-1.0), rtol=1e-12)
    # A value of 1 for a key of any length is learned by that share.
    alone = params.replace(w_v=0 * params.w_v + 1)
    states = jax.jit(recurrent.states, static_argnums=2)
    state = np.asarray(states(alone, np.ones((1, shape.token_width)), shape))[0, 0, 0]
    u = params.read_in @ np.ones(shape.token_width)
    key = params.w_k[0, 0] @ u
    read = key @ state / np.linalg.norm(key)
    np.testing.assert_allclose(read, steps[0] * u.sum(), rtol=1e-10)
