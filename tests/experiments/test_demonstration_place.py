"""Where `demonstration_place` puts the relevant demonstration, and how it reads the curves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from experiments.descent.demonstration_place import claims, compute
from experiments.descent.demonstration_place.config import KINDS, TIERS
from lsa_lab.judging.claims import evidence
from lsa_lab.prompts import Prompt
from lsa_lab.store import results


@pytest.mark.parametrize("place", [0, 2, 4])
def test_the_others_keep_their_order(place):
    prompt = Prompt(
        10 + jnp.arange(5.0)[:, None], jnp.arange(5.0), jnp.full(1, 99.0), jnp.array(7.0)
    )
    moved = compute.move_demonstration(prompt, jnp.asarray(place))
    assert moved.x[place, 0] == 99
    assert moved.y[place] == 7
    rest = np.delete(np.asarray(moved.y), place)
    assert rest.tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(np.delete(np.asarray(moved.x[:, 0]), place), 10 + rest)


def test_a_rule_that_weighs_places_has_its_weights_for_influences():
    weights = jnp.array([3.0, -1.0, 2.0])
    batch = Prompt(
        *(jax.random.normal(jax.random.key(i), s) for i, s in enumerate(((4, 3, 2), (4, 3)))),
        jnp.ones((4, 2)),
        jnp.arange(4.0),
    )
    noise = jnp.array([0.5, -1.0, 0.0, 2.0])

    def answer(batch):
        return batch.y @ weights

    exact, noisy, _, influence = compute.place_errors(answer, (batch, noise))
    np.testing.assert_allclose(influence, [3, 1, 2])
    rest = [batch.y[:, 1:] @ np.delete(weights, place) for place in range(3)]
    missed = np.array([rest[i] + (weights[i] - 1) * batch.y_query for i in range(3)])
    np.testing.assert_allclose(exact, (missed**2).mean(1))
    np.testing.assert_allclose(noisy, ((missed + np.outer(weights, noise)) ** 2).mean(1))


def samples(monkeypatch, worth, ordinary=2.0):
    """Those of three runs with this error and influence over eight places."""
    table = np.tile(np.asarray(worth, float), (len(KINDS), 3, 1))
    arrays = {name: (("kind", "run", "place"), table) for name in ("error", "noisy", "influence")}
    arrays |= {
        "ordinary": (("kind", "run"), np.full((len(KINDS), 3), ordinary)),
        "least_squares": ("run", [2.0] * 3),
    }
    monkeypatch.setattr(results, "config_of", lambda dataset: TIERS["laptop"])
    dataset = xr.Dataset(arrays, {"kind": list(KINDS), "place": np.arange(8) + 1})
    return evidence(claims, dataset)[1]


def test_an_error_that_is_least_at_the_ends_is_a_u_of_performance(monkeypatch):
    values = samples(monkeypatch, [0, 1, 2, 2, 2, 2, 1, 0.5])
    mean = 10.5 / 8
    expected = {"beginning": 2, "end": 1.5, "u_shape": 1.25, "untrained": 1.375}
    for id, difference in expected.items():
        np.testing.assert_allclose(values[id], difference / mean)
        name = "influence_untrained" if id == "untrained" else f"influence_{id}"
        if id != "u_shape":
            np.testing.assert_allclose(values[name], -difference / mean)
    np.testing.assert_allclose(values["influence_u_shape"], -1.5 / mean)  # the first quarter
    np.testing.assert_allclose([values["it_helps"], values["well_trained"]], 1)
    turned = samples(monkeypatch, [2, 2, 1, 1, 1, 1, 2, 2])
    assert turned["u_shape"][0] < 0 < turned["influence_u_shape"][0]  # control


def test_a_model_far_above_least_squares_judges_nobody(monkeypatch):
    far = samples(monkeypatch, np.ones(8), 2 * 1.51)
    judged = {id for id, values in far.items() if values is not None}
    assert judged == {"untrained", "influence_untrained", "well_trained"}
    near = samples(monkeypatch, np.ones(8), 2 * 1.49)
    assert all(values is not None for values in near.values())
