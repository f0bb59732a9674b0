"""What `finite_pretraining` judges: simulated layers beside the closed form and each other."""

from functools import cached_property, partial

import numpy as np

from experiments.one_layer.finite_pretraining.config import RISKS
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst, worst_elsewhere
from lsa_lab.store import results

SOURCE = "Lu et al. 2405.11751"


class Fits:
    """A result's risks over the closed form, and at the largest d those over each other."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)

    @cached_property
    def ratios(self):  # (d, alpha, kappa, run, tau, risk)
        return self.dataset.measured / self.dataset.closed_form

    @cached_property
    def limits(self):  # (alpha, kappa, run, tau, risk)
        """The same for d to infinity, where what falls like 1/d is all that differs in its log."""
        *_, coarse, fine = self.dataset.d.values
        ratio = fine / coarse
        logs = np.log(self.ratios)
        return np.exp((ratio * logs.sel(d=fine) - logs.sel(d=coarse)) / (ratio - 1))

    @cached_property
    def far(self):  # [taus] of bool
        """Whether a tau is judged against the closed form."""
        tau = self.dataset.tau
        return np.maximum(tau, 1 / tau).values > self.config.near

    def limit(self, risk):  # [R], each at the place that is worst for the others
        places = self.limits.isel(tau=self.far).sel(risk=risk).transpose("run", ...).values
        return worst_elsewhere(places, lambda runs: abs(np.log(runs).mean()))

    def last(self, risk):  # (run, alpha, kappa, tau), at the largest d
        return self.dataset.measured.isel(d=-1).sel(risk=risk).transpose("run", ...)

    def peak(self):  # [R], where least
        new = self.last("new tasks")
        above = int(np.argmax(self.dataset.tau.values > 1))
        sides = np.maximum(new.isel(tau=1), new.isel(tau=-2))
        return worst((new.isel(tau=above) / sides).values, lambda runs: -np.log(runs).mean())

    def gap(self, kappa):  # [R], at the place of a kappa
        """The risk on new tasks over that on those of the pretraining."""
        ratios = self.last("new tasks") / self.last("pretraining tasks")
        return ratios.isel(alpha=-1, tau=-1, kappa=kappa).values


numbers = Fits


def statements(config) -> tuple[Statement, ...]:
    *_, coarse, fine = config.sizes
    few, many = config.kappas[0], config.kappas[-1]
    own = f"{SOURCE}, in our setting"
    ratio = partial(Statement, statistic="ratio", redrawn=f"{config.runs} fresh runs, 24 before")
    return (
        ratio(
            "closed_form",
            f"{SOURCE}, as stated; the proof is ours",
            "The closed form is the risk on {risk} as d grows",
            "risk over closed form, its log extrapolated to 1/d = 0 by the line through d = "
            f"{coarse} and {fine}, at the place that is worst for the other runs",
            margin=0.1,
            note=f"places where tau or 1 / tau is above {config.near:g}: finite d widens the peak",
            revision="it was the ratio, not its log, on a line: where 1/d² counts it bends more",
            sample=lambda r, risk: r.limit(risk),
            cells=grid("closed_form_new closed_form_pretraining", risk=RISKS),
            message="The closed form is the risk on new tasks and on pretraining tasks as d grows",
        ),
        ratio(
            "peak",
            own,
            "The risk on new tasks has a peak where prompts are as many as entries of the layer",
            f"risk just above tau = 1 / the larger of those at tau {config.taus[1]:g} and "
            f"{config.taus[-2]:g}, where least, at d = {fine}",
            at_least=1.5,
            sample=lambda r: r.peak(),
        ),
        ratio(
            "memorised",
            own,
            "With fewer tasks than dimensions a layer learns these and answers new ones badly",
            f"risk on new tasks / on those of the pretraining at kappa = {few:g}, "
            f"alpha = {config.alphas[-1]:g}, tau = {config.taus[-1]:g}, at d = {fine}",
            at_least=2.0,
            sample=lambda r: r.gap(0),
        ),
        ratio(
            "learned",
            own,
            "With more tasks than dimensions new tasks are answered nearly as well as its own",
            f"the same ratio at kappa = {many:g}",
            at_most=1.25,
            sample=lambda r: r.gap(-1),
        ),
    )
