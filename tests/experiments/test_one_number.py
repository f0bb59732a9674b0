"""`lm_one_number`: random edits as large as a cut, maps, and what is read."""

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.language import decoders
from experiments.language.edits import Clipped
from experiments.language.lm_one_number import compute
from experiments.language.lm_one_number.config import BOTH, CALIBRATED, METHODS, TEMPERATURE, TIERS
from lsa_lab.lm import cached_stream

LABELS = np.array([1, 1, 0, 0])


def scores_of(margins):
    return np.stack([np.full(len(margins), 7.0), 7 + np.asarray(margins)], axis=1)


def test_a_random_edit_is_as_large_as_the_cut_and_leaves_other_leaves_their_bits(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path))
    clipped = Clipped(decoders.decoder(TIERS["smoke"]))
    edit = (2, "mlp", 0.5)
    whole = cached_stream.take_layer(clipped.decoder.params, 2)
    cut, random = clipped.layer(edit), clipped.disturbed(edit, 3)
    for name in ("mlp_in", "mlp_out"):
        sizes = [
            jnp.linalg.norm(getattr(each, name) - getattr(whole, name)) for each in (cut, random)
        ]
        np.testing.assert_allclose(*sizes, rtol=1e-4)
        assert np.linalg.matrix_rank(np.asarray(getattr(random, name))) == 16
    np.testing.assert_array_equal(random.w_q, whole.w_q)


def test_maps_of_known_margins():
    plain, unedited = scores_of([3.0, 5, 1, -1]), scores_of([2.5, 1.5, 0.5, -1])
    free = scores_of([2.0, 2.0, 2.0])
    pairs = compute.maps(plain, LABELS, unedited, free)
    assert set(pairs) < set(METHODS)
    readings = {name: compute.read(*pair, LABELS, LABELS) for name, pair in pairs.items()}
    assert [readings[name][0] for name in ("unedited", "one threshold")] == [0.75, 0.75]
    assert readings[TEMPERATURE][0] == 0.75  # no label is changed
    assert readings[CALIBRATED][0] == 0.75  # the threshold 2
    np.testing.assert_allclose([each[1] for each in readings.values()], 1)  # nor any order
    calibrated = [each[3] for each in readings.values()]
    np.testing.assert_allclose(calibrated, calibrated[0], rtol=1e-6)
    assert readings[BOTH][2] == pytest.approx(calibrated[0])


def test_the_first_of_the_largest_gains_is_chosen_and_none_where_nothing_gains():
    plain = scores_of([3.0, 5, 1, -1])
    assert compute.choose(plain, [plain, scores_of([1, 1, -1, -1])], LABELS) == 1
    assert compute.choose(plain, [plain, plain], LABELS) is None
