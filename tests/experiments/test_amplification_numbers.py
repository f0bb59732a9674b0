"""The stacks of `amplification` read a prompt as their models do, and are summed up as by hand."""

from functools import partial
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from experiments.flow import pairs
from experiments.flow.amplification import cases, compute, width
from experiments.flow.amplification.config import TIERS
from experiments.models import tasks
from experiments.models.model import Model, init
from experiments.models.named import MODELS
from lsa_lab import prompts
from lsa_lab.models import linear_attention
from lsa_lab.models.linear_attention import Params
from lsa_lab.models.trace import predict
from lsa_lab.prompts import Prompt


@pytest.mark.parametrize("name", ["linear attention", "transformer"])
def test_a_stack_that_reads_prompts_as_they_are_predicts_as_its_model_does(name):
    spec = MODELS["smoke"][name]
    params = jax.tree.map(lambda leaf: leaf.astype(float), init(spec, jax.random.key(0)))
    batch = tasks.draw(jax.random.key(1), tasks.distribution(spec.task, dtype=float), 5)
    read = cases.plain_forward(spec)
    predicted = jax.vmap(lambda prompt: predict(read(params, prompts.tokens(prompt))))(batch)
    np.testing.assert_allclose(predicted, Model(spec, params).predict(batch), rtol=1e-9)


def test_runs_are_measured_one_after_the_other_as_they_are_side_by_side(monkeypatch):
    rng = np.random.default_rng(0)
    batch, _ = pairs.draw(rng, 3, 5, 2)
    params = pairs.random_linear(rng, 3, 2, 2)
    measured = partial(pairs.measure, pairs.log_ratios, pairs.UNMASKED, params, batch)
    together = measured()
    monkeypatch.setattr(pairs, "MOST_PAIRS", 10)  # two runs, then one
    np.testing.assert_allclose(measured(), together, rtol=1e-9)


def test_medians_of_masked_stacks_are_those_of_their_predictions(monkeypatch):
    rng = np.random.default_rng(0)
    params = Params(*(np.repeat(w[:, None, None], 2, 1) for w in rng.normal(size=(2, 2, 3, 3)) / 2))
    batch, _ = pairs.draw(rng, 2, 5, 2)
    case = ("masked: descent", linear_attention.forward, params, batch)
    monkeypatch.setattr(compute.cases, "untrained_cases", lambda config: [case])
    summaries = compute.untrained_summaries(SimpleNamespace(kinds=("linear",), gain=1.0))
    assert list(summaries) == ["masked: descent"]
    for r in range(2):
        logs = []
        for b in range(5):
            label = [label_flows(params, batch, r, b, i) for i in range(2)]
            ratio = np.log(label[0] / label[1])
            logs.append(ratio * np.sign(ratio[0]))
        np.testing.assert_allclose(summaries["masked: descent"]["median"][r], np.median(logs, 0))


def label_flows(params, batch, r, b, i):
    """|∂ŷ/∂d| after 1 and 2 layers of q ← q + (d·Kq) P d, where d moves too, by complex steps."""
    w_kq, w_pv = params.w_kq[r, 0, 0], params.w_pv[r, 0, 0]
    start, columns = np.append(batch.x[r, b, i], batch.y[r, b, i]), []
    for direction in np.eye(3):
        d, query, path = start + 1e-30j * direction, np.append(batch.x_query[r, b], 0), []
        for _ in range(2):
            d, query = (token + (d @ w_kq @ token) * (w_pv @ d) for token in (d, query))
            path.append(query[-1].imag / 1e-30)
        columns.append(path)
    return np.linalg.norm(columns, axis=0)


def test_empty_slots_are_covariates_that_are_zero():
    rng = np.random.default_rng(0)
    prompt = Prompt(rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal(size=2), 0.3)
    params = Params(*(0.3 * rng.normal(size=(2, 2, 1, 6, 6))))
    slotted = width.forward_with_slots(params, prompts.tokens(prompt)).stream
    wider = prompts.tokens(prompts.with_scratch(prompt, 3))
    np.testing.assert_allclose(slotted, linear_attention.forward(params, wider).stream, rtol=1e-12)


def test_random_stacks_have_one_gain_at_all_widths():
    config, sizes = TIERS["laptop"].width, []
    for e in config.widths:
        params = width.linear(np.random.default_rng(1), config, e, config.d)
        sizes.append(np.std(params.w_kq) * np.std(params.w_pv) * e**0.5)
    np.testing.assert_allclose(sizes, config.gain / (2 * config.d), rtol=0.1)


def test_widths_and_kinds_keep_their_places_and_medians_are_those_of_one_layer(monkeypatch):
    rng, steps, stacks = np.random.default_rng(3), 0.1 * np.arange(1, 7), []
    for step in steps:
        batch, _ = pairs.draw(rng, 1, 3, 2)  # with one covariate tokens of a task are parallel
        # q + η (d·q) d of tokens [x, y], with the query no key
        eye = np.tile(np.eye(3), (1, 2, 1, 1, 1))
        stacks.append((linear_attention.forward, Params(eye, step * eye), batch))
    monkeypatch.setattr(width, "wide_cases", lambda _: iter(stacks))
    numbers = width.random_summaries(SimpleNamespace(widths=(2, 3)))
    assert numbers["median"].shape == (3, 2, 1, 2)
    for i, (step, (*_, batch)) in enumerate(zip(steps, stacks, strict=True)):
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
