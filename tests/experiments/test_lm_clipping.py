"""`lm_clipping`: scores of a tiny decoder and its edits, searches, and changes of known scores."""

import dataclasses

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from experiments.language import decoders, sentences
from experiments.language.lm_clipping import claims, compute, figure, search
from experiments.language.lm_clipping.config import (
    DROPPED,
    MATRICES,
    PARTS,
    READINGS,
    SEARCHES,
    TIERS,
)
from experiments.language.lm_clipping.search import Answers, Clipped
from lsa_lab.judging.statements import cells_of, samples_of
from lsa_lab.lm import halts, text
from lsa_lab.store import parts, results

TINY = TIERS["smoke"]
TASK = TINY.tasks[0][1]
BOTH = dataclasses.replace(TINY, tasks=(("films", TASK), ("news", TASK)))
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
    return Answers(clipped, TASK, demonstrations, fresh, layers), fresh


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
    own = halts.layer_of(clipped.decoder.params, 2)
    cut = clipped.layer((2, "mlp", 0.75))
    assert np.linalg.matrix_rank(np.asarray(cut.mlp_gate)) == 4  # of 16
    np.testing.assert_array_equal(cut.w_q, own.w_q)
    assert not np.asarray(clipped.layer((2, "mlp", "drop")).mlp_out).any()


def test_readings_of_known_margins():
    accuracy, auc, entropy = compute.readings_of(scores_of(MARGINS), LABELS)
    assert (accuracy, auc) == (0.5, 1.0)
    # each half has margins ±1 and ±0.5 about the middle 2, to which the other half shifts it
    np.testing.assert_allclose(entropy, np.log1p(np.exp([-1, -0.5])).mean(), rtol=1e-9)


def test_condition_numbers_are_those_of_a_layers_worst_matrix():
    params = decoders.decoder(TINY).params
    ours = search.condition_numbers(params, "MLP")
    names = ("mlp_in", "mlp_gate", "mlp_out")
    every = [[np.linalg.cond(np.asarray(w, float)) for w in getattr(params, n)] for n in names]
    np.testing.assert_allclose(ours, np.max(every, axis=0))
    assert ours.shape == (len(params.mlp_in),)


def test_the_deepest_of_the_worst_conditioned_layers_is_tried_the_smallest_rates_first():
    conditions = {"attention": np.array([9.0, 2, 8, 7]), "MLP": np.array([1.0, 5, 2, 6])}
    tried = search.candidates(TINY.search, conditions)
    assert tried["Algorithm 1, attention"] == [(2, "attention", 0.5)]
    assert tried["Algorithm 1, MLP"] == [(3, "mlp", 0.5)]
    first = [(layer, part, 0.5) for layer in (1, 3) for part in ("attention", "mlp")]
    second = [(layer, part, 0.75) for layer in (1, 3) for part in ("attention", "mlp")]
    assert tried["more layers, both parts"] == first + second


def test_the_first_of_the_largest_gains_is_best_and_none_where_nothing_gains():
    assert search.choose("abc", {"a": 0.1, "b": 0.3, "c": 0.3}) == "b"
    assert search.choose("ab", {"a": -0.1, "b": 0.0}) is None


def test_a_threshold_is_fitted_on_validation_and_judged_on_test():
    validation = scores_of([3.0, 5, 1, -1])  # the threshold between 1 and 3 is 2
    test = scores_of([2.5, 1.5, 0.5, -1, 9.0, 9.0, 9.0])  # and three texts that say nothing
    assert search.read_test(test, LABELS, validation, LABELS) == [0.75, 1.0, 0.75]
    turned = search.read_test(test, LABELS, scores_of([-3.0, -5, -7, -9]), LABELS)
    np.testing.assert_allclose(turned, [0.75, 1.0, 0.5])  # the threshold -6: all are above


@pytest.fixture(scope="module")
def dataset():
    rng = np.random.default_rng(0)

    def draw(*shape):
        return rng.uniform(size=shape)

    main = xr.Dataset(
        {
            "unclipped": (("task", "run", "reading"), draw(2, 3, 3)),
            "edited": (("task", "run", "layer", "part", "rate", "reading"), draw(2, 3, 2, 2, 3, 3)),
            "matrix_edited": (("task", "run", "end", "matrix", "reading"), draw(2, 3, 2, 7, 3)),
            "shots_unclipped": (("task", "run", "shots", "reading"), draw(2, 3, 2, 3)),
            "shots_edited": (
                ("task", "run", "shots", "end", "part", "reading"),
                draw(2, 3, 2, 2, 2, 3),
            ),
        },
        {
            "task": ["films", "news"],
            "reading": list(READINGS),
            "layer": [0, 2],
            "part": list(PARTS),
            "rate": [0.5, 0.75, DROPPED],
            "end": [0, 2],
            "matrix": list(MATRICES),
            "shots": [0, 4],
        },
    )
    searched = xr.Dataset(
        {
            "clipped": (("task", "run", "search", "reading"), draw(2, 3, 3, 3)),
            "validation_gain": (("task", "run", "search"), draw(2, 3, 3)),
            "unclipped": (("task", "run", "reading"), draw(2, 3, 3)),
            "calibrated": (("task", "run"), draw(2, 3)),
        },
        {"search": list(SEARCHES), "reading": ["accuracy", "auc", "fitted"]},
    )
    whole = parts.join(main, search=searched)
    return whole.assign_attrs(config=results.json.dumps(results.plain(BOTH)))


def test_each_collection_of_texts_has_rows_of_its_own(dataset):
    statements = claims.layer_statements(BOTH)
    ours = samples_of(statements, claims.numbers(dataset))
    change = (dataset.edited - dataset.unclipped).sel(layer=2, reading="auc", part="MLP")
    flat = change.sel(rate=[0.5, 0.75]).mean("rate").transpose("task", "run").values
    np.testing.assert_allclose(ours["films_mlp_deep_is_flat"], flat[0])
    np.testing.assert_allclose(ours["news_mlp_deep_is_flat"], flat[1])
    assert {cell.id.split("_")[0] for cell in cells_of(statements)} == {"films", "news"}
    assert all(cell.revision for cell in cells_of(statements))
    assert not all(cell.revision for cell in cells_of(claims.statements(TINY)))


def test_a_layer_dropped_is_judged_by_accuracy_beside_the_whole_model(dataset):
    ours = samples_of(claims.layer_statements(BOTH), claims.numbers(dataset))
    edited, plain = dataset.edited.values, dataset.unclipped.values
    for place, part in enumerate(PARTS):
        change = edited[0, :, 1, place, 2, 0] - plain[0, :, 0]  # the deep layer, dropped
        np.testing.assert_allclose(ours[f"films_{part.lower()}_dropped"], change)
    shots = dataset.shots_unclipped.values[1, ..., 1]
    np.testing.assert_allclose(ours["news_more_shots"], shots[:, 1] - shots[:, 0])
    keys = dataset.matrix_edited.values[0, :, 1, MATRICES.index("w_k"), 1] - plain[0, :, 1]
    np.testing.assert_allclose(ours["films_keys_alone"], keys)


def test_the_best_edit_is_chosen_on_the_other_sets_and_among_the_clipped(dataset):
    films = claims.numbers(dataset).changes["films"]
    edited, plain = dataset.edited.values[0], dataset.unclipped.values[0]
    cells = (edited[..., :2, 0] - plain[:, None, None, None, 0]).reshape(3, -1)
    gains = [cells[r, np.delete(cells, r, 0).mean(0).argmax()] for r in range(3)]
    np.testing.assert_allclose(films.gain(), gains)


def test_searches_are_judged_beside_nothing_and_beside_rivals(dataset):
    ours = samples_of(claims.search_statements(TINY), claims.numbers(dataset))
    own = parts.part(dataset, "search")
    plain, clipped = own.unclipped.values, own.clipped.values[..., 0]
    wide = (clipped[:, :, 2] - plain[..., 0]).mean(0)
    np.testing.assert_allclose(ours["wider_gains"], wide)
    algorithm = (clipped[:, :, :2] - plain[..., :1]).mean((0, 2))
    np.testing.assert_allclose(ours["algorithm_gains"], algorithm)
    fitted = (plain[..., 2] - plain[..., 0]).mean(0)
    np.testing.assert_allclose(ours["threshold"], fitted - wide)
    calibrated = (own.calibrated.values - plain[..., 0]).mean(0)
    np.testing.assert_allclose(ours["calibration_wider"], calibrated - wide)


def test_curves_are_mean_changes_by_layer_part_and_rate(dataset):
    ax, films = Figure().subplots(), parts.part(dataset).sel(task="films")
    figure.plot_layers(ax, films, "auc")
    curves = [line.get_ydata() for line in ax.lines[1:]]
    edited, plain = films.edited.values, films.unclipped.values
    expected = [
        [np.mean(edited[:, layer, part, rate, 1] - plain[:, 1]) for layer in range(2)]
        for part in range(2)
        for rate in range(3)
    ]
    np.testing.assert_allclose(curves, expected)
