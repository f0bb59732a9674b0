"""`lm_label_bias`: margins of a tiny decoder by whole walks, and panels of known margins."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from experiments.language import label_scores, sentences
from experiments.language.lm_label_bias import compute, panels
from experiments.language.lm_label_bias.config import TIERS, UNCLIPPED, edits
from lsa_lab.lm import text
from lsa_lab.store import results

TINY = TIERS["smoke"]


def test_margins_are_those_of_whole_walks_with_and_without_the_layer(tmp_path, monkeypatch):
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path))
    task = TINY.tasks[0][1]
    demonstrations, fresh, _ = sentences.sets(sentences.of_task(task), task, TINY, 0, 0)
    margins = compute.Margins(TINY)
    ours = margins(task, demonstrations, fresh, 2, [("mlp", "drop")])
    params, config = margins.decoder.params, margins.decoder.config
    template = sentences.template(task)
    asked = label_scores.questions(margins.decoder, template, demonstrations, fresh)
    dropped = params.replace(mlp_out=params.mlp_out.at[2].set(0))
    expected = [np.diff(text.scores(each, config, asked))[:, 0] for each in (params, dropped)]
    np.testing.assert_allclose(ours, expected, atol=2e-5)
    assert np.abs(expected[0] - expected[1]).max() > 1e-3


@pytest.fixture(scope="module")
def dataset():
    """Two runs of one task: the margins 3, 2, 1, -1 of labels 1, 1, 0, 0, shifted and turned."""
    names = [UNCLIPPED, *edits(TINY)]
    base = np.array([3.0, 2, 1, -1])
    margin = np.tile(base, (1, 2, len(names), 1))
    margin[0, :, 1] -= 1.5  # both runs: all is right
    margin[0, :, 2] = [-2, 4, 1, -1]  # one of class 1 below the others
    margin[0, 1, 2] = base
    control = np.array([[base, base], [base, -base]])
    return xr.Dataset(
        {
            "task_margin": (("task", "run", "edit", "task_sentence"), margin),
            "task_content_free": (("task", "run", "text"), np.full((1, 2, 3), 1.5)),
            "task_label": (("task", "run", "task_sentence"), np.tile([1, 1, 0, 0], (1, 2, 1))),
            "control_margin": (("run", "control_edit", "control_sentence"), control),
        },
        {"task": [name for name, _ in TINY.tasks], "edit": names},
        {"config": results.json.dumps(results.plain(TINY))},
    )


def test_a_shift_changes_accuracy_as_far_as_a_moved_threshold_does(dataset):
    shifted, turned = list(dataset.edit.values[1:3])
    for edit, expected in ((shifted, [[0.25, 0.25]] * 2), (turned, [[-0.25, 0.25], [0, 0]])):
        ax = Figure().subplots()
        panels.plot_parts(ax, dataset, edit=edit)
        (points,) = (line.get_xydata() for line in ax.lines if line.get_linestyle() == "None")
        expected = np.array(expected)
        np.testing.assert_allclose(points, expected[:, ::-1])


def test_changes_of_auc_are_means_of_the_runs_and_the_control_is_the_last_row(dataset):
    ax = Figure().subplots()
    panels.plot_aucs(ax, dataset)
    edited, control = (line.get_xdata() for line in ax.lines if line.get_linestyle() == "None")
    np.testing.assert_allclose(edited[:2], [0, (0.5 - 1) / 2])
    np.testing.assert_allclose(control, [-0.5])  # from 1 to 1, and from 1 to 0


def test_accuracies_stand_beside_calibration_and_a_fitted_threshold(dataset):
    ax = Figure().subplots()
    panels.plot_accuracies(ax, dataset)
    (points,) = (line.get_xdata() for line in ax.lines if line.get_linestyle() == "None")
    np.testing.assert_allclose(points[:3], [0.75, 1.0, (0.5 + 0.75) / 2])
    np.testing.assert_allclose(points[-2], 1.0)  # 1.5 lies between the classes
    # the threshold 2 of the half (3, 1) ties with 2 and is above -1; 0 of (2, -1) is below 3 and 1
    np.testing.assert_allclose(points[-1], (0.75 + 0.5) / 2)
