"""The experiment on width: empty slots are read as covariates that are zero."""

from types import SimpleNamespace

import numpy as np

from experiments.flow import pairs
from experiments.flow.width_and_ratio import compute, stacks
from experiments.flow.width_and_ratio.config import TIERS
from lsa_lab import prompts
from lsa_lab.models import linear_attention
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt


def test_empty_slots_are_covariates_that_are_zero():
    rng = np.random.default_rng(0)
    prompt = Prompt(rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal(size=2), 0.3)
    params = Params(*(0.3 * rng.normal(size=(2, 2, 1, 6, 6))))
    slotted = stacks.slotted(params, prompts.tokens(prompt)).stream
    wider = prompts.tokens(prompts.with_scratch(prompt, 3))
    np.testing.assert_allclose(slotted, linear_attention.forward(params, wider).stream, rtol=1e-12)


def test_random_stacks_have_one_gain_at_all_widths():
    config, sizes = TIERS["laptop"], []
    for width in config.widths:
        params = stacks.linear(np.random.default_rng(1), config, width, config.d)
        sizes.append(np.std(params.w_kq) * np.std(params.w_pv) * width**0.5)
    np.testing.assert_allclose(sizes, config.gain / (2 * config.d), rtol=0.1)


def test_widths_and_kinds_keep_their_places_and_medians_are_those_of_one_layer(monkeypatch):
    config = SimpleNamespace(widths=(2, 3))
    rng, steps, cases = np.random.default_rng(3), 0.1 * np.arange(1, 7), []
    for step in steps:
        batch, _ = pairs.draw(rng, 1, 3, 2)  # with one covariate tokens of a task are parallel
        # q + η (d·q) d of tokens [x, y], with the query no key
        eye = np.tile(np.eye(3), (1, 2, 1, 1, 1))
        params = Params(eye, step * eye)
        cases.append(("", linear_attention.forward, params, batch))
    monkeypatch.setattr(compute.stacks, "untrained_cases", lambda _: iter(cases))
    numbers = compute.random_summaries(config)
    assert numbers["median"].shape == (3, 2, 1, 2)
    for i, (step, (*_, batch)) in enumerate(zip(steps, cases, strict=True)):
        logs = [np.log(size_of(batch, b, 0) / size_of(batch, b, 1)) for b in range(3)]
        first = numbers["spread"][i // 2, i % 2, 0, 0]
        assert abs(first - np.median(np.abs(logs))) < 1e-10, f"a common factor {step} cancels"
        assert abs(numbers["median"][i // 2, i % 2, 0, 0] - first) < 1e-10
    assert (numbers["dropped"] == 0).all()


def size_of(batch, b, i):
    """|(d·q) I + d qᵀ|, the flow through one layer over η."""
    d = np.append(batch.x[0, b, i], batch.y[0, b, i])
    query = np.append(batch.x_query[0, b], 0)
    return np.linalg.norm(d @ query * np.eye(3) + np.outer(d, query))
