"""The shares of pairs, changes of the lead and growths of the disparity that are judged."""

import numpy as np

from experiments.flow.amplification.stacks import shared, stacks
from lsa_lab import results
from lsa_lab.statistics import worst


def runs_of(dataset, name, case, mode="alone", reading="token"):  # -> [R, ...]
    """A variable in a case, or in "trained: KIND" and "untrained: KIND". A case has one reading."""
    which, (stage, _, kind) = {"mode": mode, "reading": reading}, case.partition(": ")
    if stage not in dataset.stage.values:
        case = case if mode == "alone" else shared(case)
        return dataset[name].sel(case=case).transpose("run", ...).values
    values = dataset[f"trained_{name}"].sel(kind=kind, stage=stage, **which)
    return values.transpose("trained_run", ...).values


def risk_ratios(dataset):  # {kind: []}
    """The excess risk of trained stacks over that of the Bayes rule."""
    ratios = dataset.risk.mean("trained_run") / dataset.least_risk.mean("trained_run")
    return dict(zip(dataset.kind.values.tolist(), ratios.values.tolist(), strict=True))


def lead(dataset, case, **which):  # -> [R, L]
    """The median log ratio of each layer less that of the first, whose larger flow is on top."""
    median = runs_of(dataset, "median", case, **which)
    return median - median[:, :1]


def disparity(dataset, case, **which):  # -> [R, L]
    """The median |log ratio| of each layer over that of the first."""
    spread = runs_of(dataset, "spread", case, **which)
    return spread / spread[:, :1]


# How far the runs of a case are from what is said of its stack; 0 is no change.
FROM = {
    "amplify": lambda runs: -np.median(runs),
    "equalise": np.median,
    "leave": lambda runs: abs(np.median(runs)),
}


def of_stack(dataset, stack):  # -> {reading: [R]}
    """The lead and the disparity at the last layer of a judged stack."""
    which, far = {"mode": stack.mode, "reading": stack.reading}, FROM[stack.effect]
    leads, disparities = (
        np.stack([measure(dataset, case, **which)[:, -1] for case in stack.cases], axis=1)
        for measure in (lead, disparity)
    )
    return {"lead": worst(leads, far), "disparity": np.exp(worst(np.log(disparities), far))}


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    gain, skip = f"gain {config.gain:g}", f"skip {config.skips[0]:g}"
    every = [f"linear: {tying}gain {g:g}" for g in config.gains for tying in ("", "tied, ")]
    rules = dataset.agreement.transpose("run", "rule")

    def shares(name):
        return np.stack([runs_of(dataset, name, case) for case in every], axis=1)

    numbers = {
        "theorem_1": worst(shares("larger")),
        "theorem_1_strict": worst(shares("growth")),
        "order": worst(shares("flips"), lambda runs: -np.median(runs)),
        "kappa_frozen": rules.sel(rule="flow, masked: frozen").values,
        "kappa": rules.sel(rule=f"flow, linear: tied, {gain}").values,
    }
    ratios = risk_ratios(dataset)
    for stack in stacks(config):
        kind = stack.cases[0].removeprefix("trained: ")
        far = ratios.get(kind, 0) > config.trained  # what is far from trained judges nobody
        ends = of_stack(dataset, stack)
        numbers |= {
            f"{stack.id}_{reading}": None if far else runs for reading, runs in ends.items()
        }
    for kind in ("linear", "softmax"):
        if kind in config.kinds:
            cases = [f"{kind}: {residual}" for residual in (skip, gain)]
            weak, full = (lead(dataset, case)[:, -1] for case in cases)
            numbers[f"{kind}_residual_lead"] = weak - full
            weak, full = (disparity(dataset, case)[:, -1] for case in cases)
            numbers[f"{kind}_residual_disparity"] = weak / full
    return numbers
