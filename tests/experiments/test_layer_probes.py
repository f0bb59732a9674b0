"""Linear readers of trained models: what they find, and descent on what they read."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.heads.each_run import prompts_of
from experiments.heads.layer_probes import compute, probing
from experiments.heads.layer_probes.config import FEATURES, FORMULA, RAW, TIERS
from experiments.models.model import Model
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab.models import linear_attention

SPEC = Spec(
    Task(2, (8,), sparsity=1, noise_std=0.5),
    Architecture(2, 2, ((1, 1), (2, 2)), padding_slots=2, normalise_prompt=True),
    Recipe(steps=1, batch=1, learning_rate=1.0, seeds=1),
)
CONFIG = dataclasses.replace(TIERS["smoke"], n=4, prompts=512, descents=1024)


def preprocessing(mask, finished=True):
    """Layer 1 writes r_j x_j to scratch slot j with head j, layer 2 nothing."""
    w_kq, w_pv = np.zeros((2, 1, 2, 2, 5, 5))
    for j in range(2):
        w_kq[0, 0, j, j, j] = w_pv[0, 0, j, 2 + j, 4] = 1
    models = Model(SPEC, linear_attention.Params(w_kq, w_pv), np.array([mask], float))
    return probing.Variant(models, np.array([finished]))


def read(masks, config=CONFIG):
    """Risks of reader and read-out, and R² [3, L+1], of one run for each mask."""
    variants = {name: preprocessing(mask) for name, mask in masks.items()}
    numbers = probing.readers(config, probing.Case(SPEC, variants, 0))[:, 0]
    return dict(zip(variants, numbers, strict=True))


def test_a_reader_finds_one_preprocessed_covariate_for_each_head_of_layer_one():
    numbers = read({"full": [[1, 1], [1, 1]], "one": [[1, 0], [1, 1]]})
    assert numbers["full"][2] == pytest.approx([0, 1, 1], abs=0.03)
    assert numbers["one"][2] == pytest.approx([0, 0.5, 0.5], abs=0.1)


def test_descent_on_raw_and_weighed_covariates_is_that_of_loops():
    config = SimpleNamespace(seed=0, n=4, prompts=4, descents=4, steps=3, share=0.4)
    masks = {"full": [[1, 1], [1, 1]], "single head": [[1, 0], [1, 0]]}
    case = probing.Case(SPEC, {name: preprocessing(mask) for name, mask in masks.items()}, 0)
    paths = compute.descents(config, case)
    assert paths.shape == (1, len(FEATURES), 2, 4)
    batch = prompts_of(SPEC.task, 0, probing.DESCENT, 4, 4, 1)
    for feature in (RAW, FORMULA):
        squares = np.zeros((4, 4))
        for b in range(4):
            x, y, query, target = (np.asarray(leaf)[0, b] for leaf in vars(batch).values())
            gains = x.T @ y if feature == FORMULA else np.ones(2)
            rows, asked, theta = x * gains, query * gains, np.zeros(2)
            size, most = 0.4 * 2 / np.linalg.norm(rows, ord=2) ** 2, 2 * np.abs(y).max()
            for step in range(4):
                squares[b, step] = (np.clip(theta @ asked, -most, most) - target) ** 2
                theta = theta + size * rows.T @ (y - rows @ theta)
        exact = [squares[:2].mean(0), squares[2:].mean(0)]
        np.testing.assert_allclose(paths[0, FEATURES.index(feature)], exact, rtol=1e-8)


def test_white_tokens_are_white_and_have_no_more_directions():
    features = np.random.default_rng(0).standard_normal((8, 5, 2)) @ np.array(
        [[3, 1, 3], [0, 1, 0]]
    )
    first = compute.whitened(features)[:4].reshape(-1, 3)
    moment = first.T @ first / len(first)
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(moment)), [0, 1, 1], atol=1e-10)
