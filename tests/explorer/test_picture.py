"""A picture keeps nothing of the one before, and what explodes is said."""

import numpy as np
import pytest

from explorer.picture import Picture
from explorer.sentence import sentence
from explorer.views import HEADS, HORIZON, LAYERS, START, WIDTH, N, Views, controls

START = controls(START)


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
    first = picture.svg(START, views(0.3))
    assert first.startswith(b"<?xml")
    assert picture.svg(START, views(0.4)) != first
    assert picture.svg(START, views(300.0)) != first  # other decades
    assert picture.svg(START, views(0.3)) == first


@pytest.mark.parametrize("risk", [1e30, np.inf, np.nan])
def test_what_explodes_is_drawn_at_the_edge(risk):
    exploded = views(1e30)
    exploded = exploded.replace(risks=np.append(exploded.risks[:-1], risk))
    assert b"</svg>" in Picture().svg(START, exploded)


def test_the_sentence_has_the_numbers_of_the_panels():
    depth = int(START.depth)
    text = sentence(START, views(0.3))
    assert "After 4 layers the risk is 3 times ridge's and 1.5 times that of 4 steps" in text
    assert f"2 times the flow of the second there, and {2 + (depth - 1) / 5:.2g} times" in text
    assert "flow" not in sentence(START.replace(shots=np.asarray(1)), views(0.3))
    assert "no longer a number" in sentence(START, views(0.3).replace(risks=np.full(7, np.nan)))
