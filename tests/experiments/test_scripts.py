"""The smoke tier of every script is computed, judged and drawn; `make test` runs one a theme."""

import pytest

from lsa_lab.lab import catalogue

EXPERIMENTS = catalogue.find("experiments")
FIRST = {experiment.theme: name for name, experiment in reversed(EXPERIMENTS.items())}.values()


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in FIRST else [pytest.mark.slow]) for n in EXPERIMENTS],
)
def test_the_smoke_tier_is_computed_judged_and_drawn(name):
    module = EXPERIMENTS[name].load()
    config = module.TIERS["smoke"]
    result = module.compute(config, {})
    assert any(claim.judge(result) for claim in module.CLAIMS)
    picture, caption = module.plot(result, config)
    assert picture.axes
    assert caption
