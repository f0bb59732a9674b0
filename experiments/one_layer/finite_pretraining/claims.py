"""What `finite_pretraining` judges: simulated layers beside the closed form and each other."""

from functools import partial

import numpy as np

from experiments.one_layer.finite_pretraining.config import RISKS
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst, worst_elsewhere
from lsa_lab.store import results

SOURCE = "Lu et al. 2405.11751"


def limit(dataset, risk):  # [R], each at the place that is worst for the others
    """Risk over closed form for d to infinity, where what falls like 1/d is all that differs in its
    log, at the values of tau that are judged."""
    *_, coarse, fine = dataset.d.values
    ratio, tau = fine / coarse, dataset.tau
    logs = np.log(dataset.measured / dataset.closed_form).sel(risk=risk)
    far = np.maximum(tau, 1 / tau).values > results.config_of(dataset).near
    limits = np.exp((ratio * logs.sel(d=fine) - logs.sel(d=coarse)) / (ratio - 1))
    places = limits.isel(tau=far).transpose("run", ...).values
    return worst_elsewhere(places, lambda runs: abs(np.log(runs).mean()))


def peak(dataset):  # [R], where least
    """The risk on new tasks just above tau = 1 over the larger of those on either side."""
    new = dataset.measured.isel(d=-1).sel(risk="new tasks").transpose("run", ...)
    above = int(np.argmax(dataset.tau.values > 1))
    sides = np.maximum(new.isel(tau=1), new.isel(tau=-2))
    return worst((new.isel(tau=above) / sides).values, lambda runs: -np.log(runs).mean())


def gap(dataset, kappa):  # [R], at the place of a kappa
    """The risk on new tasks over that on those of the pretraining."""
    risks = dataset.measured.isel(d=-1, alpha=-1, tau=-1, kappa=kappa)
    return (risks.sel(risk="new tasks") / risks.sel(risk="pretraining tasks")).values


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
            "the risk over the closed form, whose log a line through d = "
            f"{coarse} and {fine} takes to 1/d = 0, at the place that is worst for the other runs",
            margin=0.1,
            note=f"places where tau or 1 / tau is above {config.near:g}: finite d widens the peak",
            revision="it was the ratio, not its log, on a line: where 1/d² counts it bends more",
            sample=limit,
            cells=grid("closed_form_new closed_form_pretraining", risk=RISKS),
            message="The closed form is the risk on new tasks and on pretraining tasks as d grows",
        ),
        ratio(
            "peak",
            own,
            "The risk on new tasks has a peak where prompts are as many as entries of the layer",
            f"the risk just above tau = 1 over the larger of those at tau = {config.taus[1]:g} and "
            f"{config.taus[-2]:g}, where it is least, at d = {fine}",
            at_least=1.5,
            sample=peak,
        ),
        ratio(
            "memorised",
            own,
            "With fewer tasks than dimensions a layer learns these and answers new ones badly",
            f"the risk on new tasks over that on those of the pretraining at kappa = {few:g}, "
            f"alpha = {config.alphas[-1]:g}, tau = {config.taus[-1]:g}, at d = {fine}",
            at_least=2.0,
            sample=lambda r: gap(r, 0),
        ),
        ratio(
            "learned",
            own,
            "With more tasks than dimensions new tasks are answered nearly as well as its own",
            f"the same ratio at kappa = {many:g}",
            at_most=1.25,
            sample=lambda r: gap(r, -1),
        ),
    )
