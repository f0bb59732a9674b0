"""What depth changes of two flows in one case: the lead and the disparity; and how far trained
stacks are from the best."""

import numpy as np

from experiments.flow.amplification.stacks import shared_case, stacks
from lsa_lab.judging.statistics import worst
from lsa_lab.store import results

# How far the runs of a case are from what is said of its stack; 0 is no change.
DISTANCES = {
    "amplify": lambda runs: -np.median(runs),
    "equalise": np.median,
    "leave": lambda runs: abs(np.median(runs)),
}


def has_case(dataset, case: str) -> bool:
    """Whether a result has a case: a smaller tier lacks some kinds."""
    stage, _, kind = case.partition(": ")
    return case in dataset.case.values or (stage == "trained" and kind in dataset.kind.values)


def case_runs(dataset, name, case, mode="alone", reading="token"):  # -> [R, ...]
    """A variable in a case, or in "trained: KIND" and "untrained: KIND". A case has one reading."""
    which, (stage, _, kind) = {"mode": mode, "reading": reading}, case.partition(": ")
    if stage not in dataset.stage.values:
        case = case if mode == "alone" else shared_case(case)
        return dataset[name].sel(case=case).transpose("run", ...).values
    values = dataset[f"trained_{name}"].sel(kind=kind, stage=stage, **which)
    return values.transpose("trained_run", ...).values


def lead(dataset, case, **which):  # -> [R, L]
    """The median log ratio of each layer less that of the first, whose larger flow is on top."""
    median = case_runs(dataset, "median", case, **which)
    return median - median[:, :1]


def disparity(dataset, case, **which):  # -> [R, L]
    """The median |log ratio| of each layer over that of the first."""
    spread = case_runs(dataset, "spread", case, **which)
    return spread / spread[:, :1]


def risk_ratios(dataset):  # {kind: []}
    """The excess risk of trained stacks over that of the Bayes rule."""
    ratios = dataset.risk.mean("trained_run") / dataset.least_risk.mean("trained_run")
    return dict(zip(dataset.kind.values.tolist(), ratios.values.tolist(), strict=True))


class Changes:
    """What depth changes of leads and disparities, from the first layer to the last."""

    def __init__(self, dataset, far):
        self.dataset, self.config, self.far = dataset, results.config_of(dataset), far
        self.stacks, self.risks = stacks(self.config), risk_ratios(dataset)

    def ends(self, measure, name):  # -> [R, cases]; None where there is nothing to judge
        """A measure at the last layer. A stack that is far from trained judges nobody."""
        stack = self.stacks[name]
        kind = stack.cases[0].removeprefix("trained: ")
        if not has_case(self.dataset, stack.cases[0]) or self.risks.get(kind, 0) > self.far:
            return None
        which = {"mode": stack.mode, "reading": stack.reading}
        rows = [measure(self.dataset, case, **which)[:, -1] for case in stack.cases]
        return np.stack(rows, axis=1)

    def lead(self, stack, effect):  # -> [R]
        ends = self.ends(lead, stack)
        return None if ends is None else worst(ends, DISTANCES[effect])

    def disparity(self, stack, effect):  # -> [R]
        ends = self.ends(disparity, stack)
        return None if ends is None else np.exp(worst(np.log(ends), DISTANCES[effect]))

    def residual(self, measure, name, compare):  # -> [R]
        """A measure where the residual connection is weak, compared with that of the usual one."""
        (case,) = self.stacks[name].cases
        usual = f"{case.partition(':')[0]}: gain {self.config.gain:g}"
        if not has_case(self.dataset, case):
            return None
        return compare(*(measure(self.dataset, each)[:, -1] for each in (case, usual)))

    def shares(self, name):  # -> [R, gains and tyings]
        """Shares of the pairs of random linear stacks, each demonstration alone."""
        stacks = [f"{tying}gain {g:g}" for g in self.config.gains for tying in ("", "tied, ")]
        rows = [case_runs(self.dataset, name, f"linear: {stack}") for stack in stacks]
        return np.stack(rows, axis=1)

    def agreement(self, case):  # -> [R]
        return self.dataset.agreement.transpose("run", "rule").sel(rule=f"flow, {case}").values
