"""Every committed figure is legible at the width at which it is printed."""

from pathlib import Path

import pytest

from legible import faults
from lsa_lab.harness.draw import footer, style
from lsa_lab.harness.run import runner
from lsa_lab.harness.run.laboratory import experiments_of
from lsa_lab.store import results

FIGURES = Path(__file__).resolve().parents[2] / "figures"
EXPERIMENTS = experiments_of("experiments")
MOST_WORDS = 80  # of a caption with its footer


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_pictures_are_legible_on_a_page(name):
    dataset = results.load(FIGURES / name / "result.nc")
    drawings, caption = runner.drawings(EXPERIMENTS[name], dataset)
    assert (FIGURES / name / "caption.txt").read_text("utf-8") == f"{caption}\n"
    with style.context():
        for picture in drawings.values():
            assert list(faults(picture)) == []
    assert len(caption.split()) <= MOST_WORDS
    panels = footer.panels_of(drawings["figure"]).values()
    assert len(panels) <= 2
    for ax in panels:
        assert ax.get_label() == footer.MESSAGE
    for picture in drawings.values():
        for ax in footer.panels_of(picture).values():
            title = ax.get_title()
            assert title[:1].isupper(), title
            assert title.count(" ") >= 2, title
