"""Experiments as single scripts: claims, runs, results, registration, pages and the command.

An experiment is a script with ``Config``, ``TIERS``, ``compute``, ``CLAIMS`` and ``plot``; its last
line is ``main(__file__)``. Names are imported when they are first used, so that ``lsa-lab list``
starts without jax.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lsa_lab.lab.claims import Claim as Claim
    from lsa_lab.lab.command import main as main
    from lsa_lab.lab.intervals import geometric_mean as geometric_mean
    from lsa_lab.lab.intervals import mean_interval as mean_interval
    from lsa_lab.lab.intervals import median_interval as median_interval
    from lsa_lab.lab.intervals import ratio_interval as ratio_interval
    from lsa_lab.lab.results import load_claims as load_claims
    from lsa_lab.lab.session import checkpoint as checkpoint
    from lsa_lab.lab.session import compute_each as compute_each
    from lsa_lab.lab.session import stack_rows as stack_rows

_MODULES = {"Claim": "claims", "main": "command", "load_claims": "results"}
_MODULES |= dict.fromkeys(("checkpoint", "compute_each", "stack_rows"), "session")
_INTERVALS = ("geometric_mean", "mean_interval", "median_interval", "ratio_interval")
_MODULES |= dict.fromkeys(_INTERVALS, "intervals")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
