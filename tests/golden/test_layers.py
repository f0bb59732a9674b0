"""The layers of models.recurrent, and the loops of known_layers.py, give the known answers."""

import jax
import numpy as np
import pytest
from known_layers import (
    FILE,
    LENGTHS,
    PENALTY,
    RETENTION,
    SETTINGS,
    simulate_risks,
    tables,
)

from lsa_lab.models import recurrent
from lsa_lab.models.recurrent_weights import Kind


@pytest.fixture(scope="module")
def stored():
    with np.load(FILE) as file:
        return dict(file)


def test_the_file_is_what_the_loops_give_and_small(stored):
    table = tables()
    assert table.keys() == {name for name in stored if not name.endswith("/spread")}
    for name, rows in table.items():
        assert stored[name].dtype == np.float64
        np.testing.assert_allclose(stored[name], rows, rtol=1e-9, atol=1e-12)
    assert FILE.stat().st_size < 400_000


def raw(part, whole=1.0):
    """What a sigmoid makes this part of the whole of; 1 to the last bit where they are equal."""
    with np.errstate(divide="ignore"):
        return np.minimum(np.log(part) - np.log(np.maximum(whole - part, 0)), 40.0)


def layer(kind, one, dtype):
    """The reads [T, 3] of the library's layer, whose tokens hold all that a move takes."""
    positive, pair = kind in ("ssd", "lms", "longhorn"), kind == "delta_product"
    step = np.log(np.expm1(one["step"])) if positive else raw(one["step"], 2.0)
    step = one["step"] if kind == "ttt" else step
    columns = dict(w_q=one["queries"], w_k=one["keys"], w_v=one["values"], w_step=step[:, None])
    columns["w_gate"] = raw(
        one["gates"] if kind in ("gla", "gdn2", "rwkv7") else one["gate"][:, None]
    )
    if kind in ("gdn2", "rwkv7"):
        columns |= dict(w_step=raw(one["erase"], 2.0), w_write=raw(one["write"]))
    if pair:
        second = dict(w_k=one["more_keys"], w_v=one["more_values"])
        second["w_step"] = raw(one["more_step"], 2.0)[:, None]
        columns |= {name: np.concatenate([columns[name], second[name]], 1) for name in second}
    tokens = np.concatenate(list(columns.values()), 1).astype(dtype)
    width = tokens.shape[1]
    config = recurrent.Config(
        kind, width, key_width=4, value_width=3, layout="bound", largest_step=2.0,
        inner=2 if kind in ("ttt", "delta_product") else 1, diagonal=kind == "gla",
        solve="cholesky", normalise=False,
    )  # fmt: skip
    ends = np.cumsum([rows.shape[1] for rows in columns.values()])[:-1]
    places = dict(zip(columns, np.split(np.eye(width), ends), strict=True))
    places |= dict(w_o=np.eye(width)[:, :3], log_penalty=np.log(PENALTY))
    if kind in ("retention", "ssd"):
        places["b_gate"] = np.array([raw(RETENTION) if kind == "retention" else np.log(0.5)])
    shapes = jax.eval_shape(recurrent.init, jax.random.key(0), config)
    leaves = {
        name: np.broadcast_to(places.get(name, 0.0), shape.shape).astype(dtype)
        for name, shape in vars(shapes).items()
        if shape is not None
    }
    run = jax.jit(recurrent.forward, static_argnums=2)
    return np.asarray(run(shapes.replace(**leaves), tokens, config).heads[0, 0, :, :3])


@pytest.mark.parametrize("kind", Kind.__args__)
@pytest.mark.parametrize("count", LENGTHS)
def test_layers_read_the_known_answers(kind, count, stored):
    one = {
        name.split("/")[1]: rows for name, rows in stored.items() if name.startswith(f"{count}/")
    }
    expected, size = stored[f"{count}/{kind}"], np.abs(stored[f"{count}/{kind}"]).max()
    np.testing.assert_allclose(layer(kind, one, np.float64), expected, rtol=1e-9, atol=1e-11 * size)
    single = layer(kind, one, np.float32)
    np.testing.assert_allclose(single, expected, rtol=0, atol=2e-5 * size)
    others = [stored[f"{count}/{other}"] for other in Kind.__args__ if other != kind]
    assert min(np.abs(other - expected).max() for other in others) > 1e-2 * size  # Control


@pytest.mark.parametrize("kind", SETTINGS)
def test_the_loops_reach_the_closed_risks(kind, stored):
    errors, spread = simulate_risks(kind, 300, 2), stored[f"risk/{kind}/spread"]
    error = spread / 300**0.5
    assert abs(errors.mean() - stored[f"risk/{kind}"]) < 4 * error
    assert errors.std() == pytest.approx(spread, rel=0.5)
    if kind == "delta":  # Control: two steps on a token follow its noise
        assert abs(errors.mean() - stored["risk/ttt"]) > 4 * error
