"""The shares of pairs and the changes of median log ratios that `amplification` judges."""

import numpy as np

from experiments.flow.amplification.config import CONSTRUCTED
from lsa_lab import results
from lsa_lab.statistics import worst


def runs_of(dataset, name, case, mode="alone", reading="token"):  # -> [R, ...]
    """A variable in a case, or in "trained: KIND" and "untrained: KIND" without the runs that
    diverged."""
    stage, _, kind = case.partition(": ")
    if stage not in dataset.stage.values:
        values = dataset[name].sel(case=case, mode=mode, reading=reading)
        return values.transpose("run", ...).values
    values = dataset[f"trained_{name}"].sel(kind=kind, stage=stage).transpose("trained_run", ...)
    diverged = dataset.status.sel(kind=kind).str.startswith("diverged")
    return values.values[~diverged.values]


def changes(dataset, case, **which):  # -> [R, L]
    """The median log ratio of each layer less that of the first."""
    median = runs_of(dataset, "median", case, **which)
    return median - median[:, :1]


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    gain = f"gain {config.gain:g}"
    every = [f"linear: {tying}gain {g:g}" for g in config.gains for tying in ("", "tied, ")]
    rules = dataset.agreement.transpose("run", "rule")

    def change(case, **which):
        return changes(dataset, case, **which)[:, -1]

    growth = np.stack([runs_of(dataset, "growth", case) for case in every], axis=1)
    flips = np.stack([runs_of(dataset, "flips", case) for case in every], axis=1)
    small, large = (np.stack([change(c) for c in ways], 1) for ways in (every[:2], every[-2:]))
    residual = f"skip {config.skips[0]:g}"
    kinds = [kind for kind in ("linear", "softmax") if kind in config.kinds]
    return {
        "theorem_1": worst(growth),
        "order": worst(flips, lambda runs: -np.median(runs)),
        "large": worst(large, lambda runs: -np.median(runs)),
        "small": worst(small, lambda runs: abs(np.median(runs))),
        "shared_prompt": change(f"linear: {gain}", mode="together"),
        **{f"{kind}_random": change(f"{kind}: {gain}") for kind in config.kinds[1:]},
        **{f"{kind}_trained": change(f"trained: {kind}") for kind in config.trained_kinds},
        **{c.split(": ")[1]: change(c, reading=reading) for c, reading in CONSTRUCTED.values()},
        **{
            f"{kind}_residual": change(f"{kind}: {residual}") - change(f"{kind}: {gain}")
            for kind in kinds
        },
        "kappa_contribution": rules.sel(rule="contribution, masked: frozen").values,
        "kappa_frozen": rules.sel(rule="flow, masked: frozen").values,
        "kappa": rules.sel(rule=f"flow, linear: tied, {gain}").values,
    }
