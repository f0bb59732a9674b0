"""What the statements of `amplification` are judged by."""

import numpy as np

from experiments.flow.amplification.config import CLAIMS
from lsa_lab import results
from lsa_lab.claims import about_the_median

# Constructions: label, case, and what flows: gradient descent answers in the label slot.
CONSTRUCTED = (
    ("push: positive feedback", "linear: push", "token"),
    ("pull: negative feedback", "linear: pull", "token"),
    ("descent", "masked: descent", "prediction"),
    ("GD++", "masked: GD++", "prediction"),
    ("descent from a prior", "masked: prior", "prediction"),
)


def measured(dataset, name, case, mode="alone", reading="token"):  # -> [R, ...]
    """Of a case, or of "trained: KIND" and "untrained: KIND" without the runs that diverged."""
    stage, _, kind = case.partition(": ")
    if stage not in dataset.stage.values:
        there = dataset[name].sel(case=case, mode=mode, reading=reading)
        return there.transpose("run", ...).values
    there = dataset[f"trained_{name}"].sel(kind=kind, stage=stage).transpose("trained_run", ...)
    went_well = ~dataset.status.sel(kind=kind).str.startswith("diverged")
    return there.values[went_well.values]


def changes(dataset, case, **which):  # -> [R, L]
    """Of the median log ratio, from the first layer to each."""
    median = measured(dataset, "median", case, **which)
    return median - median[:, :1]


def claims(dataset):
    settings = results.config_of(dataset)
    clear, gain = settings.clear, f"gain {settings.gain:g}"
    bounds = {
        "up": {"at_least": clear},
        "down": {"at_most": -clear},
        "flat": {"at_least": -clear, "at_most": clear},
        "positive": {"at_least": 0.0},
        "generic": {"at_least": settings.generic},
        "rare": {"at_most": 1 - settings.generic},
        "exact": {"at_least": settings.exact},
        "predicts": {"at_least": settings.predicts},
    }

    def change(case, **which):
        return changes(dataset, case, **which)[:, -1]

    def ways(name):  # tied and not
        return f"linear: {name}", f"linear: tied, {name}"

    every = [case for g in settings.gains for case in ways(f"gain {g:g}")]
    small, large = ([change(case) for case in cases] for cases in (every[:2], every[-2:]))
    weight, rules = settings.skips[0], dataset.agreement.transpose("rule", "run")
    samples = {
        "theorem_1": max((measured(dataset, "growth", c) for c in every), key=np.median),
        "order": min((measured(dataset, "flips", c) for c in every), key=np.median),
        "large": min(large, key=np.median),
        "small": max(small, key=lambda some: abs(np.median(some))),
        "shared_prompt": change(f"linear: {gain}", mode="together"),
        **{f"{kind}_random": change(f"{kind}: {gain}") for kind in settings.kinds[1:]},
        **{f"{kind}_trained": change(f"trained: {kind}") for kind in settings.trained_kinds},
        **{c.split(": ")[1]: change(c, reading=reading) for _, c, reading in CONSTRUCTED},
        **{
            f"{kind}_residual": change(f"{kind}: skip {weight:g}") - change(f"{kind}: {gain}")
            for kind in ("linear", "softmax")
            if kind in settings.kinds
        },
        "kappa_contribution": rules.sel(rule="contribution, masked: frozen").values,
        "kappa_frozen": rules.sel(rule="flow, masked: frozen").values,
        "kappa": rules.sel(rule=f"flow, linear: tied, {gain}").values,
    }
    made = []
    for name, values in samples.items():
        source, statement, what, which = CLAIMS[name]
        words = {"at_least": ">=", "at_most": "<="}
        kept = " and ".join(f"{words[k]} {bound:g}" for k, bound in bounds[which].items())
        criterion = f"median over runs of {what} {kept}"
        row = (f"amplification.{name}", source, statement, criterion, values)
        made.append(about_the_median(*row, **bounds[which]))
    return made
