"""What lessons use, from one place: ``from lsa_lab.notebooks import check, sample, style``."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lsa_lab import estimators, prompts
from lsa_lab.analyses import amplification, clipping, common_map, disparity, heads, implicit_gd
from lsa_lab.harness.draw import style
from lsa_lab.models import constructions, linear_attention, moments, transformer
from lsa_lab.models.trace import label_slots, layer_predictions, predict
from lsa_lab.prompts import Prompt
from lsa_lab.selection import diversity, gradient_matching, oracles, prefix, rivals, scores
from lsa_lab.tasks import pools, tables
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory import learning_curves
from lsa_lab.training import Training, fit

__all__ = [
    "LinearTask",
    "Prompt",
    "Training",
    "amplification",
    "check",
    "clipping",
    "common_map",
    "constructions",
    "disparity",
    "diversity",
    "estimators",
    "fit",
    "gradient_matching",
    "heads",
    "implicit_gd",
    "label_slots",
    "layer_predictions",
    "learning_curves",
    "linear_attention",
    "moments",
    "oracles",
    "pools",
    "predict",
    "prefix",
    "prompts",
    "rivals",
    "sample",
    "scores",
    "style",
    "tables",
    "transformer",
]

_NEAR = 0.01  # share of the truth by which an answer may miss it


def check(answers: Mapping[int, Any], truths: Mapping[int, Any]) -> bool:
    """Whether all answers are right, after a line on each: within 1 % of the truth of its number,
    entry by entry."""
    words = {}
    for number, truth in truths.items():
        answer = answers.get(number)
        if answer is None:
            words[number] = "not answered yet"
        elif np.shape(answer) != np.shape(truth):
            words[number] = f"not yet: its shape is {np.shape(answer)}, not {np.shape(truth)}"
        else:
            is_right = np.allclose(answer, truth, rtol=_NEAR, atol=1e-6)
            words[number] = "right" if is_right else "not yet"
    print("\n".join(f"{number}: {word}." for number, word in words.items()))
    return set(words.values()) == {"right"}
