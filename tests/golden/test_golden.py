"""What the library computes is what other people's public code gives; README.md has the sources."""

from pathlib import Path

import numpy as np

from lsa_lab.theory.asymptotics import ridgeless_risk

FOLDER = Path(__file__).parent


def rows(name):
    return np.loadtxt(FOLDER / name, delimiter=",", skiprows=1).T


def test_the_risk_of_a_ridgeless_layer_on_new_tasks_is_that_of_lu_and_others():
    *arguments, risks = rows("lu_2405_11751.csv")
    new_tasks, pretraining_tasks = ridgeless_risk(*arguments)
    np.testing.assert_allclose(new_tasks, risks, rtol=1e-12)
    assert np.abs(pretraining_tasks / risks - 1).max() > 0.1  # a control: the other risk is not


def test_every_file_has_a_source():
    page = (FOLDER / "README.md").read_text("utf-8")
    assert all(path.name in page for path in FOLDER.glob("*.csv"))
