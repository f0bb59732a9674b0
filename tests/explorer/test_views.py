"""What gates and repeated demonstrations stand for, and where the explorer's model ends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer import views as explorer
from explorer.picture import Picture, sentence
from explorer.views import HEADS, HORIZON, LAYERS, START, WIDTH, N, Views, controls
from lsa_lab import prompts
from lsa_lab.analyses.clipping import kept_rank
from lsa_lab.models import transformer
from lsa_lab.models.trace import predict
from lsa_lab.theory import learning_curves

FIRST = controls(START)


def views(risk):
    return Views(
        flow=np.linspace(0.1, 0.5, LAYERS * N).reshape(LAYERS, N),
        ratio=np.linspace(2, 3, LAYERS),
        risks=np.geomspace(1, risk, LAYERS + 1),
        descent=np.geomspace(1, 0.2, LAYERS + 1),
        ridge=np.asarray(0.1),
        zero=np.asarray(1.0),
        spectrum=np.linspace(0.9, 0.1, WIDTH),
        clipped=np.linspace(0.5, risk, WIDTH),
        importance=np.full((LAYERS, HEADS), 0.1),
        curves=np.geomspace((1, 1, 1), (0.1, 0.2, 0.3), HORIZON + 1, axis=1),
    )


def test_the_same_views_are_the_same_picture_whatever_came_between():
    picture = Picture()
    first = picture.svg(FIRST, views(0.3))
    assert first.startswith(b"<?xml")
    assert picture.svg(FIRST, views(0.4)) != first
    assert picture.svg(FIRST, views(300.0)) != first  # other decades
    assert picture.svg(FIRST, views(0.3)) == first


@pytest.mark.parametrize("risk", [1e30, np.inf, np.nan])
def test_what_explodes_is_drawn_at_the_edge(risk):
    exploded = views(1e30)
    exploded = exploded.replace(risks=np.append(exploded.risks[:-1], risk))
    assert b"</svg>" in Picture().svg(FIRST, exploded)


def test_the_sentence_has_the_numbers_of_the_panels():
    depth = int(FIRST.depth)
    text = sentence(FIRST, views(0.3))
    assert "After 4 layers the risk is 3 times ridge's and 1.5 times that of 4 steps" in text
    assert f"2 times the flow of the second there, and {2 + (depth - 1) / 5:.2g} times" in text
    assert "flow" not in sentence(FIRST.replace(shots=np.asarray(1)), views(0.3))
    assert "no longer a number" in sentence(FIRST, views(0.3).replace(risks=np.full(7, np.nan)))


def at(**moved):
    arguments = controls(START | moved, jnp.float64)
    return arguments, explorer.views(arguments)


def test_the_model_tends_to_descent_in_the_first_order_of_its_sharpness():
    """softmax(ε s)/ε - 1/nε = (s - s̄)/n + ε ((s - s̄)² - var s)/2n + O(ε²).

    The second term is ε |s - s̄|/2 of the first or less, in each of L layers. So with |s - s̄| ≤ S
    risks differ by L ε S/2 of themselves, and at half the ε by half as much, up to L ε S of it.
    """
    sharpness, depth = 0.01, START["depth"]
    first, seen = at(softmax=sharpness)
    _, half = at(softmax=sharpness / 2)
    largest = START["scale"] * jnp.abs(jax.jit(explorer.prompts_of)(first).x).max() ** 2
    assert depth * sharpness * largest < 0.25  # or nothing is tested
    np.testing.assert_allclose(seen.risks, seen.descent, rtol=depth * sharpness * largest / 2)
    halved, whole = (each.risks - each.descent for each in (half, seen))
    ratio = (whole / halved)[1 : depth + 1]
    np.testing.assert_allclose(ratio, 2, rtol=depth * sharpness * largest)


@pytest.mark.parametrize("weights", [0, 1])
def test_a_repeated_prompt_is_the_same_prompt_cut(weights):
    arguments, seen = at(shots=3, softmax=0.7, weights=weights)
    np.testing.assert_allclose(seen.risks[-1], risk_of_three(arguments), rtol=1e-10)
    assert seen.flow[:, :3].all()
    assert not seen.flow[:, 3:].any()


@jax.jit
def risk_of_three(arguments):
    batch = explorer.prompts_of(arguments)
    cut = batch.replace(x=batch.x[:, :3], y=batch.y[:, :3])
    params = explorer.pairs(explorer.weights_of(arguments), arguments.softmax)
    gates = jnp.tile(explorer.gates_of(arguments), (1, 2))

    def prediction(tokens):
        return predict(transformer.forward(params, tokens, explorer.PAIRED, gates))

    return jnp.mean((jax.vmap(prediction)(jax.vmap(prompts.tokens)(cut)) - batch.y_query) ** 2)


@pytest.mark.parametrize("rate", [0.0, 0.4, 0.8])
def test_the_curve_over_ranks_passes_through_the_model(rate):
    _, seen = at(weights=1, scale=1.0, rate=rate, layer=2, matrix=2)
    np.testing.assert_allclose(seen.clipped[kept_rank(WIDTH, rate) - 1], seen.risks[-1], rtol=1e-10)
    assert len(set(np.asarray(seen.clipped))) == WIDTH


def test_an_address_has_what_differs_from_the_start_and_nothing_else():
    for changed in explorer.PRESETS.values():
        assert explorer.addressed(explorer.address(START | changed)) == START | changed
    assert explorer.address(START | {"gates": [True] * explorer.HEADS}) == {}


@pytest.mark.parametrize("text", ["99", "x", "[1]", "null", "-1"])
def test_an_address_that_names_no_place_of_a_slider_changes_nothing(text):
    assert explorer.addressed({"depth": text, "other": "1"}) == START


def test_the_learning_curves_are_those_of_the_library():
    _, seen = at(step=0.7, noise_std=0.5)
    expected = learning_curves.delta(explorer.HORIZON, explorer.D, 0.25, 0.7)
    np.testing.assert_allclose(seen.curves[2], expected, rtol=1e-12)
    assert np.all(seen.curves[1][1:] < seen.curves[2][1:])  # steps that are best at each place
