"""The experiment on width: empty slots are read as covariates that are zero."""

import numpy as np

from experiments.flow.width_and_ratio import stacks
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
