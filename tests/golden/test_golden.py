"""What the library computes is what other people's public code gives; README.md has the sources."""

import functools
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import temporal_difference
from lsa_lab import estimators, interop
from lsa_lab.models import linear_attention, recurrent, trace
from lsa_lab.prompts import Prompt
from lsa_lab.theory import depth
from lsa_lab.theory.asymptotics import ridgeless_risk
from lsa_lab.theory.plateaus import plateaus

FOLDER = Path(__file__).parent


def rows(name):
    return np.loadtxt(FOLDER / name, delimiter=",", skiprows=1, ndmin=2).T


def waves(*shape, seed):
    """Numbers between -2 and 2 that nobody has to store: 2 sin((1 + seed/7) i²), i = 1, 2, ..."""
    places = np.arange(1.0, math.prod(shape) + 1)
    return 2 * np.sin(places * places * (1 + seed / 7)).reshape(shape)


def test_the_risk_of_a_ridgeless_layer_on_new_tasks_is_that_of_lu_and_others():
    *arguments, risks = rows("lu_2405_11751.csv")
    new_tasks, pretraining_tasks = ridgeless_risk(*arguments)
    np.testing.assert_allclose(new_tasks, risks, rtol=1e-12)
    assert np.abs(pretraining_tasks / risks - 1).max() > 0.1  # a control: the other risk is not


def by_prefix(rule):
    """The prediction of each of ten labels from those before it, by a rule that gives weights."""

    x, y = waves(10, 4, seed=1), waves(10, seed=2)
    weights = jax.jit(functools.partial(estimators.prefixes, rule))(Prompt(x, y, x[0], y[0]))
    return (weights[:-1] * x).sum(1)


ONE_STEP = jnp.ones(1)
BY_PREFIX = [
    ("garg_2208_01066.csv", 0, 1e-11, estimators.ols),
    ("garg_2208_01066.csv", 1, 1e-13, lambda p: estimators.gradient_descent(p, ONE_STEP)[1]),
    ("garg_2208_01066.csv", 2, 2e-3, lambda p: estimators.lasso(p, 0.1)),
    ("raventos_2306_15063.csv", 0, 1e-12, lambda p: estimators.ridge(p, 0.25 / len(p.y))),
]


@pytest.mark.parametrize(("name", "column", "within", "rule"), BY_PREFIX)
def test_predictions_from_each_prefix_are_those_of_the_baselines_of_others(
    name, column, within, rule
):
    expected = rows(name)[column]
    np.testing.assert_allclose(by_prefix(rule), expected, atol=within, rtol=within)
    assert np.abs(expected).max() > 1


def test_the_rule_for_few_tasks_is_the_discrete_mmse_of_raventos_and_others():
    x, y, tasks = (
        jnp.asarray(waves(*shape, seed=seed)) for *shape, seed in ((10, 4, 1), (10, 2), (5, 4, 15))
    )
    means = estimators.discrete_posterior_means(Prompt(x, y, x[0], y[0]), tasks / 2, 1.5**2)
    expected = rows("raventos_2306_15063.csv")[1]
    np.testing.assert_allclose((means[:-1] * x).sum(1), expected, rtol=1e-11)


def test_a_stack_of_two_heads_writes_what_the_code_of_ahn_and_others_writes():
    params = interop.ahn(waves(3, 2, 2, 3, 3, seed=3) / 8)
    tokens = jnp.asarray(waves(4, 6, 4, seed=4)).at[:, -1, -1].set(0)
    labels = jax.vmap(lambda rows: linear_attention.forward(params, rows).stream[-1, -1, -1])(
        tokens
    )
    np.testing.assert_allclose(labels, rows("ahn_2306_00297.csv")[0], rtol=1e-12)


def test_layers_evaluate_a_policy_as_the_loop_of_wang_and_others():
    features, following, rewards = waves(3, 7, seed=5), waves(3, 6, seed=6), waves(6, seed=7)
    query = np.concatenate([features[:, -1], np.zeros(4)])
    transitions = np.concatenate([features[:, :-1].T, 0.9 * following.T, rewards[:, None]], 1)
    params = temporal_difference(np.array([0.3, 0.2, 0.25]), 3)
    path = linear_attention.forward(params, jnp.asarray(np.vstack([transitions, query])))
    values = trace.layer_predictions(path)[1:]
    np.testing.assert_allclose(values, rows("wang_2405_13861.csv")[0], rtol=1e-12)


def test_plateaus_of_training_are_those_of_zhang_and_others():
    table = rows("zhang_2501_16265.csv").T
    for d, n in ((4, 31), (8, 10)):
        eigenvalues = jnp.arange(1.0, d + 1) / (d * (d + 1) / 2)
        expected = table[table[:, 0] == d][:, 3]
        losses = plateaus(eigenvalues, n)
        np.testing.assert_allclose(2 * losses, expected, rtol=1e-12)


def test_the_risk_of_each_depth_is_that_of_the_moments_of_marchenko_and_pastur():
    for alpha, noise_var, layers, risk in rows("marchenko_pastur.csv").T:
        ours = depth.best_descent(alpha, noise_var, int(layers))[-1]
        np.testing.assert_allclose(ours, risk, rtol=1e-12)


QUERIES, KEYS, STEPS = waves(7, 4, seed=8), waves(7, 4, seed=9), waves(7, 1, seed=11)
GATE, GATES = waves(7, 1, seed=12) + 2, waves(7, 4, seed=13) + 2
REPEATED = np.concatenate([KEYS[:3], np.repeat(KEYS[2:3], 4, 0)])
SHUT, PARTLY_SHUT = GATE.copy(), GATES.copy()
SHUT[4] = PARTLY_SHUT[4, :3] = -30


def read(kind, values, keys=KEYS, steps=STEPS, gates=None, dtype=float, bias=None, **shape):
    """The reads of one recurrent layer whose tokens hold query, key, value, step and gate."""
    columns = [QUERIES, keys, values, steps, *([] if gates is None else [gates])]
    tokens = np.concatenate(columns, 1).astype(dtype)
    width, count = tokens.shape[1], values.shape[1] // shape.get("inner", 1)
    config = recurrent.Config(kind, width, key_width=4, value_width=count, layout="bound", **shape)
    places = np.split(np.eye(width), np.cumsum([each.shape[1] for each in columns])[:-1])
    names = ("w_q", "w_k", "w_v", "w_step", "w_gate")
    leaves = {name: place[None, None] for name, place in zip(names, places, strict=False)}
    leaves["w_o"] = np.eye(width)[None, None, :, :count]
    needed = jax.eval_shape(recurrent.init, jax.random.key(0), config)
    zeros = {name: leaf.shape for name, leaf in vars(needed).items() if leaf is not None}
    own = {name: leaves.get(name, np.zeros(shape)) for name, shape in zeros.items()}
    own |= {} if bias is None else {name: np.full_like(own[name], bias[name]) for name in bias}
    params = needed.replace(**jax.tree.map(lambda leaf: np.asarray(leaf, dtype), own))
    return np.ravel(forward(params, tokens, config).heads[0, 0, :, :count])


forward = jax.jit(recurrent.forward, static_argnums=2)
VALUES = waves(7, 3, seed=10)
TWO = dict(keys=waves(7, 8, seed=16), values=waves(7, 6, seed=17), steps=waves(7, 2, seed=18))
NAIVE = {
    "delta": ("delta", {}),
    "gated_delta": ("gated_delta", dict(gates=GATE)),
    "kda": ("gated_delta", dict(gates=GATES, diagonal=True)),
    "gla": ("gla", dict(gates=GATES, diagonal=True)),
    "simple_gla": ("gla", dict(gates=GATE)),
    "linear_attn": ("additive", dict(normalise=False)),
    "retention": ("retention", dict(bias={"b_gate": np.log(31.0)})),  # a gate of 1 - 1/32
    "delta_product": ("delta_product", TWO | dict(inner=2, largest_step=2.0)),
    "rwkv7": ("rwkv7", dict(steps=waves(7, 4, seed=19), gates=GATES)),
    "delta_edges": ("delta", dict(keys=REPEATED)),
    "gated_delta_edges": ("gated_delta", dict(keys=REPEATED, gates=SHUT)),
    "kda_edges": ("gated_delta", dict(keys=REPEATED, gates=PARTLY_SHUT, diagonal=True)),
    "gla_edges": ("gla", dict(keys=REPEATED, gates=PARTLY_SHUT, diagonal=True)),
}


@pytest.mark.parametrize("name", NAIVE)
def test_recurrent_layers_read_what_the_naive_loops_of_flash_linear_attention_read(name):
    kind, rest = NAIVE[name]
    rest = dict(values=VALUES) | rest
    table, place = rows("fla_naive.csv"), list(NAIVE).index(name)
    expected = table[place]
    np.testing.assert_allclose(read(kind, **rest), expected, rtol=1e-11, atol=1e-12)
    single = read(kind, dtype=np.float32, **rest)
    np.testing.assert_allclose(single, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
    others = np.delete(table, place, 0)
    assert np.abs(others - expected).max(1).min() > 1e-2  # a control: no two are the same


PENALTY = {"log_penalty": np.log(0.3)}


def test_a_mesa_layer_reads_what_the_exact_loop_of_flash_linear_attention_reads():
    exact, recursive = (
        read("mesa", waves(7, 4, seed=14), gates=GATE, bias=PENALTY, solve=solve)
        for solve in ("cholesky", "recursive")
    )
    expected = rows("fla_mesa.csv")[0]
    np.testing.assert_allclose(exact, expected, rtol=1e-11, atol=1e-12)
    assert np.abs(recursive - expected).max() > 0.1  # a control: there gates forget the penalty


def test_every_file_has_a_source():
    page = (FOLDER / "README.md").read_text("utf-8")
    assert all(path.name in page for path in FOLDER.glob("*.csv"))
