"""Check the answers to the exercises of a lesson."""

from collections.abc import Mapping
from typing import Any

import numpy as np

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
