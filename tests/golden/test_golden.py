"""The library computes what others' code and plain loops give; README.md has the sources."""

import math
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import known_layers
import numpy as np
import pytest

from draws import temporal_difference
from lsa_lab import estimators, interop
from lsa_lab.models import linear_attention, recurrent, trace
from lsa_lab.models.recurrent_weights import Kind
from lsa_lab.prompts import Prompt
from lsa_lab.theory import depth
from lsa_lab.theory.asymptotics import ridgeless_risk
from lsa_lab.theory.plateaus import plateaus

FOLDER = Path(__file__).parent


def rows(name):
    return np.loadtxt(FOLDER / name, delimiter=",", skiprows=1, ndmin=2).T


def waves(*shape, seed):
    """Return numbers that nobody has to store: 2 sin((1 + seed/7) i²), i = 1, 2, ..."""
    places = np.arange(1.0, math.prod(shape) + 1)
    return 2 * np.sin(places * places * (1 + seed / 7)).reshape(shape)


def test_every_file_has_a_source():
    page = (FOLDER / "README.md").read_text("utf-8")
    assert all(path.name in page for path in FOLDER.glob("*.csv"))


def test_the_risk_of_a_ridgeless_layer_on_new_tasks_is_that_of_lu_and_others():
    *arguments, risks = rows("lu_2405_11751.csv")
    new_tasks, pretraining_tasks = ridgeless_risk(*arguments)
    np.testing.assert_allclose(new_tasks, risks, rtol=1e-12)
    assert np.abs(pretraining_tasks / risks - 1).max() > 0.1  # a control: the other risk is not


X, Y = waves(10, 4, seed=1), waves(10, seed=2)
PROMPT = Prompt(X, Y, X[0], Y[0])
BY_PREFIX = [
    ("garg_2208_01066.csv", 0, 1e-11, estimators.ols),
    ("garg_2208_01066.csv", 1, 1e-13, lambda p: estimators.gradient_descent(p, jnp.ones(1))[1]),
    ("garg_2208_01066.csv", 2, 2e-3, lambda p: estimators.lasso(p, 0.1)),
    ("raventos_2306_15063.csv", 0, 1e-12, lambda p: estimators.ridge(p, 0.25 / len(p.y))),
]


@pytest.mark.parametrize(("name", "column", "within", "rule"), BY_PREFIX)
def test_predictions_from_each_prefix_are_those_of_the_baselines_of_others(
    name, column, within, rule
):
    few = PROMPT.replace(x=X[:6], y=Y[:6])  # each length is a program: d = 4 lies between them
    weights, expected = jax.jit(partial(estimators.prefixes, rule))(few), rows(name)[column][:7]
    np.testing.assert_allclose((weights * X[:7]).sum(1), expected, atol=within, rtol=within)
    assert np.abs(expected).max() > 1


def test_the_rule_for_few_tasks_is_the_discrete_mmse_of_raventos_and_others():
    tasks = waves(5, 4, seed=15) / 2
    means = jax.jit(estimators.discrete_posterior_means)(PROMPT, tasks, 1.5**2)
    expected = rows("raventos_2306_15063.csv")[1]
    np.testing.assert_allclose((means[:-1] * X).sum(1), expected, rtol=1e-11)


def test_a_stack_of_two_heads_writes_what_the_code_of_ahn_and_others_writes():
    params, tokens = interop.ahn(waves(3, 2, 2, 3, 3, seed=3) / 8), waves(4, 6, 4, seed=4)
    tokens[:, -1, -1] = 0
    forward = jax.jit(jax.vmap(partial(linear_attention.forward, params)))
    labels = forward(tokens).stream[:, -1, -1, -1]
    np.testing.assert_allclose(labels, rows("ahn_2306_00297.csv")[0], rtol=1e-12)


def test_layers_evaluate_a_policy_as_the_loop_of_wang_and_others():
    features, following, rewards = waves(3, 7, seed=5), waves(3, 6, seed=6), waves(6, seed=7)
    query = np.concatenate([features[:, -1], np.zeros(4)])
    transitions = np.concatenate([features[:, :-1].T, 0.9 * following.T, rewards[:, None]], 1)
    params = temporal_difference(np.array([0.3, 0.2, 0.25]), 3)
    path = jax.jit(linear_attention.forward)(params, np.vstack([transitions, query]))
    values = trace.layer_predictions(path)[1:]
    np.testing.assert_allclose(values, rows("wang_2405_13861.csv")[0], rtol=1e-12)


def test_plateaus_of_training_are_those_of_zhang_and_others():
    table = rows("zhang_2501_16265.csv").T
    for d, n in ((4, 31), (8, 10)):
        losses = plateaus(jnp.arange(1.0, d + 1) / (d * (d + 1) / 2), n)
        np.testing.assert_allclose(2 * losses, table[table[:, 0] == d][:, 3], rtol=1e-12)


def test_the_risk_of_each_depth_is_that_of_the_moments_of_marchenko_and_pastur():
    for alpha, noise_var, layers, risk in rows("marchenko_pastur.csv").T:
        ours = depth.best_descent(alpha, noise_var, int(layers))[-1]
        np.testing.assert_allclose(ours, risk, rtol=1e-12)


forward = jax.jit(recurrent.forward, static_argnums=2)


def read(kind, columns, dtype=float, leaves=None, **shape):
    """Return the reads [T, v] of one head whose tokens hold columns, each for one of its leaves."""
    tokens = np.concatenate([*columns.values()], 1).astype(dtype)
    width, count = tokens.shape[1], columns["w_v"].shape[1]
    if kind == "delta_product":  # a token holds two values
        count //= 2
    config = recurrent.Config(kind, width, key_width=4, value_width=count, layout="bound", **shape)
    places = np.cumsum([rows.shape[1] for rows in columns.values()])[:-1]
    values = dict(zip(columns, np.split(np.eye(width), places), strict=True))
    values |= dict(w_o=np.eye(width)[:, :count]) | (leaves or {})
    needed = jax.eval_shape(recurrent.init, jax.random.key(0), config)
    params = needed.replace(**{
        name: np.broadcast_to(values.get(name, 0.0), leaf.shape).astype(dtype)
        for name, leaf in vars(needed).items()
        if leaf is not None
    })  # fmt: skip
    return np.asarray(forward(params, tokens, config).heads[0, 0, :, :count])


QUERIES, KEYS, STEPS = waves(7, 4, seed=8), waves(7, 4, seed=9), waves(7, 1, seed=11)
COLUMNS = dict(w_q=QUERIES, w_k=KEYS, w_v=waves(7, 3, seed=10), w_step=STEPS)
GATE, GATES = dict(w_gate=waves(7, 1, seed=12) + 2), dict(w_gate=waves(7, 4, seed=13) + 2)
REPEATED = dict(w_k=np.concatenate([KEYS[:3], np.repeat(KEYS[2:3], 4, 0)]))
SHUT, PARTLY_SHUT = dict(w_gate=GATE["w_gate"].copy()), dict(w_gate=GATES["w_gate"].copy())
SHUT["w_gate"][4] = PARTLY_SHUT["w_gate"][4, :3] = -30
TWO = dict(w_k=waves(7, 8, seed=16), w_v=waves(7, 6, seed=17), w_step=waves(7, 2, seed=18))
NAIVE = {  # the kind, what differs from COLUMNS, and the shape
    "delta": ("delta", {}, {}),
    "gated_delta": ("gated_delta", GATE, {}),
    "kda": ("gated_delta", GATES, dict(diagonal=True)),
    "gla": ("gla", GATES, dict(diagonal=True)),
    "simple_gla": ("gla", GATE, {}),
    "linear_attn": ("additive", {}, dict(normalise=False)),
    "retention": ("retention", {}, dict(leaves={"b_gate": np.log(31.0)})),  # a gate of 1 - 1/32
    "delta_product": ("delta_product", TWO, dict(inner=2, largest_step=2.0)),
    "rwkv7": ("rwkv7", GATES | dict(w_step=waves(7, 4, seed=19)), {}),
    "delta_edges": ("delta", REPEATED, {}),
    "gated_delta_edges": ("gated_delta", REPEATED | SHUT, {}),
    "kda_edges": ("gated_delta", REPEATED | PARTLY_SHUT, dict(diagonal=True)),
    "gla_edges": ("gla", REPEATED | PARTLY_SHUT, dict(diagonal=True)),
}


@pytest.mark.parametrize("name", NAIVE)
def test_recurrent_layers_read_what_the_naive_loops_of_flash_linear_attention_read(name):
    kind, columns, shape = NAIVE[name]
    table, place = rows("fla_naive.csv"), list(NAIVE).index(name)
    expected = table[place]
    found = read(kind, COLUMNS | columns, **shape).ravel()
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    others = np.delete(table, place, 0)
    assert np.abs(others - expected).max(1).min() > 1e-2  # a control: no two are the same


def test_a_mesa_layer_reads_what_the_exact_loop_of_flash_linear_attention_reads():
    columns, leaves = COLUMNS | GATE | dict(w_v=waves(7, 4, seed=14)), {"log_penalty": np.log(0.3)}
    exact, recursive = (
        read("mesa", columns, leaves=leaves, solve=solve).ravel()
        for solve in ("cholesky", "recursive")
    )
    expected = rows("fla_mesa.csv")[0]
    np.testing.assert_allclose(exact, expected, rtol=1e-11, atol=1e-12)
    assert np.abs(recursive - expected).max() > 0.1  # a control: there gates forget the penalty


@pytest.fixture(scope="module")
def stored():
    with np.load(known_layers.FILE) as file:
        return dict(file)


def test_the_file_of_layers_is_what_the_loops_give(stored):
    table = known_layers.tables()
    assert table.keys() == {name for name in stored if not name.endswith("/spread")}
    for name, values in table.items():
        np.testing.assert_allclose(stored[name], values, rtol=1e-9, atol=1e-12)


def raw(part, whole=1.0):
    """What a sigmoid makes this part of the whole of; 1 to the last bit where they are equal."""
    with np.errstate(divide="ignore"):
        return np.minimum(np.log(part) - np.log(np.maximum(whole - part, 0)), 40.0)


def list_columns(kind, one):
    """Return the columns of tokens from which a layer of this kind has the inputs of its loop."""
    step = raw(one["step"], 2.0)
    if kind in ("ssd", "lms", "longhorn"):
        step = np.log(np.expm1(one["step"]))
    columns = dict(w_q=one["queries"], w_k=one["keys"], w_v=one["values"])
    columns["w_step"] = (one["step"] if kind == "ttt" else step)[:, None]
    gates = one["gates"] if kind in ("gla", "gdn2", "rwkv7") else one["gate"][:, None]
    columns["w_gate"] = raw(gates)
    if kind in ("gdn2", "rwkv7"):
        columns |= dict(w_step=raw(one["erase"], 2.0), w_write=raw(one["write"]))
    if kind == "delta_product":
        second = one["more_keys"], one["more_values"], raw(one["more_step"], 2.0)[:, None]
        for name, more in zip(("w_k", "w_v", "w_step"), second, strict=True):
            columns[name] = np.concatenate([columns[name], more], 1)
    return columns


@pytest.mark.parametrize("kind", Kind.__args__)
def test_layers_read_the_known_answers(kind, stored):
    gates = {"retention": raw(known_layers.RETENTION), "ssd": np.log(0.5)}
    leaves = {"log_penalty": np.log(known_layers.PENALTY), "b_gate": gates.get(kind, 0.0)}
    shape = dict(inner=2 if kind in ("ttt", "delta_product") else 1, diagonal=kind == "gla")
    shape |= dict(largest_step=2.0, solve="cholesky", normalise=False)
    for count, dtype, within in ((97, np.float64, 1e-11), (9, np.float32, 2e-5)):
        one = {name.removeprefix(f"{count}/"): array for name, array in stored.items()}
        found, expected = read(kind, list_columns(kind, one), dtype, leaves, **shape), one[kind]
        size = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=within * size)
        others = [one[other] for other in Kind.__args__ if other != kind]
        assert min(np.abs(other - expected).max() for other in others) > 1e-2 * size  # Control


@pytest.mark.parametrize("kind", known_layers.SETTINGS)
def test_the_loops_reach_the_closed_risks(kind, stored):
    errors, spread = known_layers.simulate_risks(kind, 300, 2), stored[f"risk/{kind}/spread"]
    error = spread / 300**0.5
    assert abs(errors.mean() - stored[f"risk/{kind}"]) < 4 * error
    assert errors.std() == pytest.approx(spread, rel=0.5)
    if kind == "delta":  # Control: two steps on a token follow its noise
        assert abs(errors.mean() - stored["risk/ttt"]) > 4 * error
