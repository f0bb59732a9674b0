"""Every committed figure is legible at the width at which it is printed."""

from pathlib import Path

import pytest

from experiments.__main__ import MODULES, load
from legible import faults
from lsa_lab.harness.draw import panels, pictures, style
from lsa_lab.store import results

FIGURES = Path(__file__).resolve().parents[2] / "figures"
MOST_WORDS = 80  # of a caption


@pytest.mark.parametrize("name", MODULES)
def test_pictures_are_legible_on_a_page(name):
    dataset = results.load(FIGURES / name / "result.nc")
    drawings = pictures.draw(load(name, "figure"), dataset)
    with style.context():
        for picture in drawings.values():
            assert list(faults(picture)) == []
    assert len(load(name, "figure").caption(dataset).split()) <= MOST_WORDS
    axes = panels.panels_of(drawings["figure"]).values()
    assert len(axes) <= 2
    for ax in axes:
        assert ax.get_label() == panels.MESSAGE
    for picture in drawings.values():
        for ax in panels.panels_of(picture).values():
            title = ax.get_title()
            assert title[:1].isupper(), title
            assert title.count(" ") >= 2, title
