"""Domains of the numbers that closed forms take: one table, by the argument's name.

A value is checked where it can be read; one that is traced passes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jax.typing import ArrayLike

from lsa_lab.arguments import check_at_least, is_readable


class Domain(NamedTuple):
    """The allowed values of an argument: in words, and as a test of an array."""

    words: str
    holds: Callable[[np.ndarray], np.ndarray]


def _interval(words: str, low: float, high: float) -> Domain:
    """Return the closed interval [low, high]."""
    return Domain(words, lambda v: (v >= low) & (v <= high))


def _positive(words: str) -> Domain:
    return Domain(words, lambda v: (v > 0) & (v < np.inf))


def _not_negative(words: str) -> Domain:
    return Domain(words, lambda v: (v >= 0) & (v < np.inf))


UNIT_STEP = Domain(
    "in (0, 2), or the error of keys of length 1 does not fall", lambda v: (v > 0) & (v < 2)
)
RIDGE = _positive("positive and finite; without a penalty take ridgeless_risk")
NOISY_PENALTY = _positive("positive if labels are noisy: else the risk is infinite near n = d")

DOMAINS = {
    "noise_var": _not_negative("a variance is finite and not negative"),
    "alpha": _positive("the demonstrations for each covariate are positive and finite"),
    "kappa": Domain("a ratio of sizes is positive", lambda v: v > 0),
    "tau": Domain("a ratio of sizes is positive", lambda v: v > 0),
    "penalty": _not_negative("finite and not negative"),
    "signal_norm_sq": _not_negative("a squared length is finite and not negative"),
    "rho": _interval("a correlation of neighbours lies in [0, 1]", 0, 1),
    "drift": _interval("a correlation of neighbours lies in [0, 1]", 0, 1),
    "gate": _interval("a gate lies in [0, 1]", 0, 1),
    "scale": Domain("labels are multiplied by a finite number", np.isfinite),
    "step": _positive("a step is positive and finite"),
    "initial_step": _not_negative("u_0²/√d is finite and not negative"),
    "objective": _not_negative("ω is finite and not negative"),
    "subgaussian": _positive("positive and finite"),
    "noise_cov": _positive("a variance of the noise is positive and finite"),
    "train": _not_negative("variances are finite and not negative"),
    "test": _not_negative("variances are finite and not negative"),
}


def check(**values: ArrayLike) -> None:
    """Raise ValueError if a value, or an entry of it, lies outside its name's domain."""
    for name, value in values.items():
        check_domain(name, value, DOMAINS[name])


def check_domain(name: str, value: ArrayLike, domain: Domain) -> None:
    """Raise ValueError if a value, or an entry of it, lies outside the domain."""
    if is_readable(value) and not np.all(domain.holds(np.asarray(value, float))):
        raise ValueError(f"{name} = {value}: {domain.words}")


def check_sizes(n: int, d: int, noise_var: ArrayLike, least: int = 1) -> tuple[int, int]:
    """Return n and d as whole numbers, of at least ``least`` and 1; check the noise, too."""
    check(noise_var=noise_var)
    return check_at_least(n, "n", least), check_at_least(d, "d")
