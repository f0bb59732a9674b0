"""Claims about ratios of risks: their geometric mean over runs, with the interval of it."""

import math
from typing import Any

import numpy as np

from lsa_lab.claims import Claim, judge, mean_interval


def about_the_ratio(
    id: str,
    source: str,
    statement: str,
    criterion: str,
    ratios: Any,  # [R], positive
    *,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Claim:
    """exp of the mean of log ratios, between exp of the ends of Student's interval for it.

    A ratio and its inverse then lead to the same verdict, and one bad run does not decide alone.
    """
    logs = np.log(np.asarray(ratios, float))
    low, high = mean_interval(logs)
    interval = (math.exp(low), math.exp(high) if high < 700 else math.inf)
    verdict = judge(interval, at_least=at_least, at_most=at_most)
    return Claim(id, source, statement, criterion, math.exp(logs.mean()), interval, verdict)
