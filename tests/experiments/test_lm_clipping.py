"""`lm_clipping`: scores of a tiny decoder and its edits, and readings of known scores."""

import dataclasses
import json

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.language import decoders, sentences, spectra
from experiments.language.edits import Answers, Clipped
from experiments.language.lm_clipping import compute, search
from experiments.language.lm_clipping.config import MATRICES, TIERS
from experiments.language.lm_clipping.readings import moved, rise
from lsa_lab.lm import cached_stream, text

TINY = TIERS["smoke"]
TASK = TINY.tasks[0][1]
MARGINS, LABELS = np.array([3.0, 2.5, 1.0, 1.5]), np.array([1, 1, 0, 0])


def scores_of(margins):
    return np.stack([np.full(len(margins), 7.0), 7 + np.asarray(margins)], axis=1)


@pytest.fixture(scope="module")
def clipped(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LSA_LAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        return Clipped(decoders.decoder(TINY))


def ask(clipped, layers):
    demonstrations, fresh, _ = sentences.sets(sentences.read(TASK), TASK, TINY, 0, 0)
    questions = sentences.ask(clipped.decoder, TASK, demonstrations, fresh)
    return Answers(clipped, questions, layers), fresh


def test_scores_from_any_layer_are_those_of_the_whole_walk(clipped):
    params, config = clipped.decoder.params, clipped.decoder.config
    for layers in ((1,), (1, 3)):
        answers, _ = ask(clipped, layers)
        whole = text.scores(params, config, answers.questions)
        np.testing.assert_allclose(answers.scores(), whole, rtol=0, atol=1e-5)


def test_an_edit_is_read_as_the_whole_walk_of_the_changed_model(clipped):
    answers, _ = ask(clipped, [2])
    params, config = clipped.decoder.params, clipped.decoder.config
    dropped = params.replace(mlp_out=params.mlp_out.at[2].set(0))
    expected = text.scores(dropped, config, answers.questions)
    np.testing.assert_allclose(answers.scores((2, "mlp", "drop")), expected, rtol=0, atol=2e-5)
    assert np.abs(expected - answers.scores()).max() > 1e-3


def test_an_edit_cuts_its_module_and_leaves_the_others_their_bits(clipped):
    own = cached_stream.take_layer(clipped.decoder.params, 2)
    cut = clipped.layer((2, "mlp", 0.75))
    assert np.linalg.matrix_rank(np.asarray(cut.mlp_gate)) == 4  # of 16
    np.testing.assert_array_equal(cut.w_q, own.w_q)
    assert not np.asarray(clipped.layer((2, "mlp", "drop")).mlp_out).any()


def test_readings_of_known_margins():
    assert [of(scores_of(MARGINS), LABELS) for of in compute.READINGS.values()] == [0.5, 1.0]


def test_the_first_of_the_largest_gains_is_best_and_none_where_nothing_gains():
    assert search.choose("abc", {None: 0.5, "a": 0.6, "b": 0.8, "c": 0.8}) == "b"
    assert search.choose("ab", {None: 0.5, "a": 0.4, "b": 0.5}) is None


def test_a_threshold_is_fitted_on_validation_and_judged_on_test():
    validation = scores_of([3.0, 5, 1, -1])  # the threshold between 1 and 3 is 2
    test = scores_of([2.5, 1.5, 0.5, -1, 9.0, 9.0, 9.0])  # and three texts that say nothing
    assert search.read_test(test, LABELS, validation, LABELS) == [0.75, 1.0, 0.75]
    turned = search.read_test(test, LABELS, scores_of([-3.0, -5, -7, -9]), LABELS)
    np.testing.assert_allclose(turned, [0.75, 1.0, 0.5])  # the threshold -6: all are above


def test_an_error_of_rounding_is_as_large_as_that_of_sixteen_levels():
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((400, 16))
    error = spectra.rounding_error(rng, matrix, bits=4, block=8).reshape(400, 2, 8)
    step = np.ptp(matrix.reshape(400, 2, 8), axis=-1, keepdims=True) / 15
    assert (np.abs(error) <= step / 2).all()
    np.testing.assert_allclose((error**2 / step**2).mean(), 1 / 12, rtol=0.03)


def test_a_random_matrix_has_the_norms_of_rows_and_columns_that_it_stands_for():
    rng = np.random.default_rng(2)
    matrix = rng.standard_normal((12, 20)) * np.geomspace(0.1, 10, 12)[:, None]
    alike = spectra.random_alike(rng, matrix)
    for axis in (0, 1):
        norms = (np.linalg.norm(each, axis=axis) for each in (alike, matrix))
        np.testing.assert_allclose(*norms, rtol=1e-9)
    assert abs((alike * matrix).sum()) < 0.9 * (matrix**2).sum()


def test_ratios_by_layer_are_those_of_matrices_that_were_built_with_them(tmp_path):
    """Layer l has the singular values 10^(l i): the condition number is 10^(3 l), of 4 values."""
    rng = np.random.default_rng(3)
    turned = [np.linalg.qr(rng.standard_normal((7, 4, 4)))[0] for _ in range(2)]
    values = 10.0 ** (-np.arange(4)[:, None] * np.arange(4))  # [L, r]
    built = np.einsum("mij,lj,mkj->lmik", turned[0], values, turned[1])
    names = dict(zip(MATRICES, built.swapaxes(0, 1), strict=True))
    params = {name: jnp.asarray(names[name]) for name in MATRICES}
    params |= {name: params[name][:, None] for name in MATRICES[:4]}
    part = spectra.by_layer(TINY.spectra, params, folder=tmp_path)
    part.attrs["config"] = json.dumps(dataclasses.asdict(TINY.spectra))
    np.testing.assert_allclose(rise(part, "deeper", 1), [6, 6], atol=1e-7)
    np.testing.assert_allclose(rise(part, "last", 1), [9, 6, 3], atol=1e-7)
    part["random"] = part.stored  # which rises as far
    np.testing.assert_array_equal(rise(part, "last", 1, null=True), 0)
    assert (moved(part, 1)[1:] > 0).all()
