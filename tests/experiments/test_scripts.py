"""The smoke tier of every script is computed, judged and drawn; `make test` runs one a theme."""

import pytest

import lowering
from lsa_lab.lab import catalogue
from lsa_lab.lab.run import Job

EXPERIMENTS = catalogue.find("experiments")
QUICKEST = {  # of each theme
    *("bound_and_gap", "common_map", "flow_factors", "preprocess_then_optimise", "lm_clipping"),
    *("many_shots", "training_dynamics", "correlated"),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in QUICKEST else [pytest.mark.slow]) for n in EXPERIMENTS],
)
def test_the_smoke_tier_is_computed_judged_and_drawn(name, tmp_path):
    experiment = EXPERIMENTS[name]
    module = experiment.load()
    config = module.TIERS["smoke"]
    with lowering.operations() as kinds:
        models = Job(experiment, "smoke", config, tmp_path).load_models()
        result = module.compute(config, models)
    assert lowering.lacking(kinds, "cuda") == []
    assert any(claim.judge(result) for claim in module.CLAIMS)
    picture, caption = module.plot(result, config)
    assert picture.axes
    assert caption
