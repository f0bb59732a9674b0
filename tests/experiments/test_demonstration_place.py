"""Where `demonstration_place` puts the relevant demonstration, and how it reads the curve."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from experiments.descent.demonstration_place import compute
from experiments.descent.demonstration_place.claims import samples
from experiments.descent.demonstration_place.config import KINDS
from lsa_lab.prompts import Prompt


@pytest.mark.parametrize("place", [0, 2, 4])
def test_the_others_keep_their_order(place):
    prompt = Prompt(
        10 + jnp.arange(5.0)[:, None], jnp.arange(5.0), jnp.full(1, 99.0), jnp.array(7.0)
    )
    moved = compute.placed(prompt, jnp.asarray(place))
    assert moved.x[place, 0] == 99
    assert moved.y[place] == 7
    rest = np.delete(np.asarray(moved.y), place)
    assert rest.tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(np.delete(np.asarray(moved.x[:, 0]), place), 10 + rest)


def curve(error):
    """The samples of two runs with this error over eight places."""
    table = np.tile(np.asarray(error, float), (len(KINDS), 2, 1))
    arrays = {"error": (("kind", "run", "place"), table)}
    arrays |= {
        "ordinary": (("kind", "run"), np.full((len(KINDS), 2), 4.0)),
        "ridge": ("run", [2, 2]),
    }
    return samples(xr.Dataset(arrays, {"kind": list(KINDS), "place": np.arange(8) + 1}))


def test_an_error_that_is_least_at_the_ends_is_a_u_of_performance():
    values = {id: row[0] for id, row in curve([0, 1, 2, 2, 2, 2, 1, 0.5]).items()}
    mean = 10.5 / 8
    expected = {"beginning": 2, "end": 1.5, "u_shape": 1.25, "untrained": 1.375}
    for id, difference in expected.items():
        np.testing.assert_allclose(values[id], difference / mean)
    np.testing.assert_allclose([values["it_helps"], values["near_ridge"]], [mean / 4, 2])
    assert curve([2, 2, 1, 1, 1, 1, 2, 2])["u_shape"][0] < 0  # control
