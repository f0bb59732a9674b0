"""Every committed figure is legible at the width at which it is printed."""

from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from lsa_lab.harness.draw import legibility, style
from lsa_lab.harness.run.laboratory import experiments_of
from lsa_lab.store import results

FIGURES = Path(__file__).resolve().parents[2] / "figures"
EXPERIMENTS = experiments_of("experiments")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_pictures_are_legible_on_a_page(name):
    dataset = results.load(FIGURES / name / "result.nc")
    door = EXPERIMENTS[name].door("figure")
    with style.context():
        for plot in filter(None, (door.plot, getattr(door, "appendix", None))):
            picture = plot(dataset)
            FigureCanvasAgg(picture)
            assert legibility.faults(picture) == []
