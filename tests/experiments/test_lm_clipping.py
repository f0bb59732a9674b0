"""`lm_clipping`: readings of scores by hand, of a tiny decoder, and what the panels draw."""

import dataclasses

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from experiments.language import decoders, sentences
from experiments.language.lm_clipping import claims, compute, panels
from experiments.language.lm_clipping.config import DROPPED, MATRICES, PARTS, READINGS, TIERS
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.lm import text
from lsa_lab.store import results

TINY = TIERS["smoke"]
TASK = TINY.tasks[0][1]
BOTH = dataclasses.replace(TINY, tasks=(("films", TASK), ("news", TASK)))
MARGINS, LABELS = np.array([3.0, 2.5, 1.0, 1.5]), np.array([1, 1, 0, 0])


def scores_of(margins):
    return np.stack([np.full(len(margins), 7.0), 7 + np.asarray(margins)], axis=1)


def test_the_unclipped_model_has_the_right_order_and_its_rivals_move_the_threshold():
    ours = compute.of_plain(scores_of([*MARGINS, 2.7, 2.7, 2.7]), LABELS)
    accuracy, auc, entropy = ours["unclipped"]
    assert (accuracy, auc) == (0.5, 1.0)
    # each half has margins ±1 and ±0.5 about the middle 2, to which the other half shifts it
    np.testing.assert_allclose(entropy, np.log1p(np.exp([-1, -0.5])).mean(), rtol=1e-9)
    np.testing.assert_allclose(ours["rival"], [0.75, 1.0])  # calibrated, 2.5 is below 2.7


def test_an_edit_is_read_as_the_whole_walk_of_the_changed_model(tmp_path, monkeypatch):
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path))
    decoder, task = decoders.decoder(TINY), TASK
    demonstrations, fresh, _ = sentences.sets(sentences.of_task(task), task, TINY, 0, 0)
    queries = sentences.with_content_free(fresh)
    read = compute.Readings(decoder)
    plain, edited = read(task, demonstrations, queries, [(2, "mlp", "drop")])
    template = sentences.template(task)
    asked = compute.label_scores.questions(decoder, template, demonstrations, queries)
    params = decoder.params
    whole = text.scores(params, decoder.config, asked)
    np.testing.assert_allclose(plain, whole, rtol=0, atol=1e-5)
    dropped = params.replace(mlp_out=params.mlp_out.at[2].set(0))
    margins = np.diff(text.scores(dropped, decoder.config, asked)[: len(fresh)])[:, 0]
    assert edited[0, 0] == np.mean((margins > 0) == fresh.labels)
    above = [a > b for a in margins[fresh.labels == 1] for b in margins[fresh.labels == 0]]
    assert edited[0, 1] == np.mean(above)


@pytest.fixture(scope="module")
def dataset():
    rng = np.random.default_rng(0)
    shapes = {
        "unclipped": (("task", "run", "reading"), (2, 3, 3)),
        "rival": (("task", "run", "rival_of"), (2, 3, 2)),
        "edited": (("task", "run", "layer", "part", "rate", "reading"), (2, 3, 2, 2, 3, 3)),
        "matrix_edited": (("task", "run", "end", "matrix", "reading"), (2, 3, 2, 7, 3)),
        "shots_unclipped": (("task", "run", "shots", "reading"), (2, 3, 2, 3)),
        "shots_edited": (("task", "run", "shots", "end", "part", "reading"), (2, 3, 2, 2, 2, 3)),
    }
    return xr.Dataset(
        {name: (axes, rng.uniform(size=shape)) for name, (axes, shape) in shapes.items()},
        {
            "task": ["films", "news"],
            "reading": list(READINGS),
            "rival_of": ["calibrated", "threshold"],
            "layer": [0, 2],
            "part": list(PARTS),
            "rate": [0.5, 0.75, DROPPED],
            "end": [0, 2],
            "matrix": list(MATRICES),
            "shots": [0, 4],
        },
        {"config": results.json.dumps(results.plain(BOTH))},
    )


def test_each_collection_of_texts_has_rows_of_its_own(dataset):
    statements, ours = evidence(claims, dataset)
    change = (dataset.edited - dataset.unclipped).sel(layer=2, reading="auc", part="MLP")
    flat = change.sel(rate=[0.5, 0.75]).mean("rate").transpose("task", "run").values
    np.testing.assert_allclose(ours["films_mlp_deep_is_flat"], flat[0])
    np.testing.assert_allclose(ours["news_mlp_deep_is_flat"], flat[1])
    assert {cell.id.split("_")[0] for cell in cells_of(statements)} == {"films", "news"}
    assert all(cell.revision for cell in cells_of(statements))
    assert not all(cell.revision for cell in cells_of(claims.statements(TINY)))


def test_a_layer_dropped_is_judged_by_accuracy_beside_the_whole_model(dataset):
    _, ours = evidence(claims, dataset)
    edited, plain = dataset.edited.values, dataset.unclipped.values
    for place, part in enumerate(PARTS):
        change = edited[0, :, 1, place, 2, 0] - plain[0, :, 0]  # the deep layer, dropped
        np.testing.assert_allclose(ours[f"films_{part.lower()}_dropped"], change)
    shots = dataset.shots_unclipped.values[1, ..., 1]
    np.testing.assert_allclose(ours["news_more_shots"], shots[:, 1] - shots[:, 0])


@pytest.fixture
def films(dataset):
    return dataset.sel(task="films")


def test_curves_are_mean_changes_by_layer_part_and_rate(films):
    ax = Figure().subplots()
    panels.layer_curves(ax, films, "auc")
    curves = [line.get_ydata() for line in ax.lines[1:]]
    edited, plain = films.edited.values, films.unclipped.values
    expected = [
        [np.mean(edited[:, layer, part, rate, 1] - plain[:, 1]) for layer in range(2)]
        for part in range(2)
        for rate in range(3)
    ]
    np.testing.assert_allclose(curves, expected)
    assert [panels.rate_words(rate) for rate in (0.9, DROPPED)] == ["0.9", "dropped"]


def test_the_best_edit_is_chosen_on_the_other_sets_and_among_the_clipped(films):
    ax = Figure().subplots()
    panels.plot_gains(ax, films)
    points = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    edited, plain = films.edited.values, films.unclipped.values
    expected = []
    for reading in (0, 1):
        change = edited[..., :2, reading] - plain[:, None, None, None, reading]
        cells = change.reshape(3, -1)
        gains = [cells[r, np.delete(cells, r, 0).mean(0).argmax()] for r in range(3)]
        expected.append(np.mean(gains))
    rivals = (films.rival.values - plain[:, :1]).mean(0)
    np.testing.assert_allclose(points, [expected[0], *rivals, expected[1]])


def test_aucs_by_shots_hold_the_configs_own_shots_too(films):
    ax = Figure().subplots()
    panels.plot_shots(ax, films)
    own, other = films.unclipped.values[..., 1], films.shots_unclipped.values[..., 1]
    expected = [other[:, 0].mean(), own.mean(), other[:, 1].mean()]
    np.testing.assert_allclose(ax.lines[0].get_xydata(), np.transpose([[0, 2, 4], expected]))
    own = films.edited.values[:, 1, 1, 1, 1].mean()  # the last layer's MLP, most clipped
    other = films.shots_edited.values[:, :, 1, 1, 1].mean(0)
    np.testing.assert_allclose(ax.lines[4].get_ydata(), [other[0], own, other[1]])


def test_matrices_are_drawn_by_the_mean_change_of_auc_in_each_end(films):
    ax = Figure().subplots()
    panels.plot_matrices(ax, films)
    change = films.matrix_edited.values[..., 1] - films.unclipped.values[:, None, None, 1]
    points = [line.get_xdata() for line in ax.lines if line.get_label().startswith("layer")]
    np.testing.assert_allclose(points, change.mean(0))
