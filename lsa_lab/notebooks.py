"""The names that lessons use, from one place: ``from lsa_lab.notebooks import check, sample``."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lsa_lab import estimators as estimators
from lsa_lab import prompts as prompts
from lsa_lab.analyses import amplification as amplification
from lsa_lab.analyses import clipping as clipping
from lsa_lab.analyses import common_map as common_map
from lsa_lab.analyses import disparity as disparity
from lsa_lab.analyses import heads as heads
from lsa_lab.analyses import implicit_gd as implicit_gd
from lsa_lab.lab import plotting as plotting
from lsa_lab.models import constructions as constructions
from lsa_lab.models import linear_attention as linear_attention
from lsa_lab.models import moments as moments
from lsa_lab.models import transformer as transformer
from lsa_lab.models.trace import label_slots as label_slots
from lsa_lab.models.trace import layer_predictions as layer_predictions
from lsa_lab.models.trace import predict as predict
from lsa_lab.prompts import Prompt as Prompt
from lsa_lab.selection import baselines as baselines
from lsa_lab.selection import diversity as diversity
from lsa_lab.selection import gradient_matching as gradient_matching
from lsa_lab.selection import oracles as oracles
from lsa_lab.selection import prefix as prefix
from lsa_lab.selection import scores as scores
from lsa_lab.tasks import pools as pools
from lsa_lab.tasks import tables as tables
from lsa_lab.tasks.linear import LinearTask as LinearTask
from lsa_lab.tasks.linear import sample as sample
from lsa_lab.theory import learning_curves as learning_curves
from lsa_lab.training import Training as Training
from lsa_lab.training import fit as fit

_NEAR = 0.01  # share of the truth by which an answer may miss it


def check(answers: Mapping[int, Any], truths: Mapping[int, Any]) -> bool:
    """Print a line on each answer, and return whether all lie within 1 % of the truth, entry by
    entry."""
    verdicts = {}
    for number, truth in truths.items():
        answer = answers.get(number)
        if answer is None:
            verdicts[number] = "not answered yet"
        elif np.shape(answer) != np.shape(truth):
            verdicts[number] = f"not yet: its shape is {np.shape(answer)}, not {np.shape(truth)}"
        else:
            is_right = np.allclose(answer, truth, rtol=_NEAR, atol=1e-6)
            verdicts[number] = "right" if is_right else "not yet"
    print("\n".join(f"{number}: {verdict}." for number, verdict in verdicts.items()))
    return set(verdicts.values()) == {"right"}
