"""Risks of simulated layers beside the closed form and beside each other."""

import numpy as np

from lsa_lab import results
from lsa_lab.statistics import worst, worst_elsewhere


def over_closed_form(dataset):  # d, alpha, kappa, run, tau, risk
    return dataset.measured / dataset.closed_form


def extrapolated(dataset):  # alpha, kappa, run, tau, risk
    """The same for d to infinity, where what falls like 1/d is all that differs in its log."""
    *_, coarse, fine = dataset.d.values
    ratio = fine / coarse
    logs = np.log(over_closed_form(dataset))
    return np.exp((ratio * logs.sel(d=fine) - logs.sel(d=coarse)) / (ratio - 1))


def judged_taus(dataset):  # [taus] of bool
    config = results.config_of(dataset)
    return np.maximum(dataset.tau, 1 / dataset.tau).values > config.near


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    away = extrapolated(dataset).isel(tau=judged_taus(dataset))
    rows = {
        f"closed_form_{name.split()[0]}": worst_elsewhere(
            away.sel(risk=name).transpose("run", ...).values, lambda runs: abs(np.log(runs).mean())
        )
        for name in dataset.risk.values
    }
    at_last = dataset.measured.isel(d=-1)
    new = at_last.sel(risk="new tasks").transpose("run", ...)
    above = int(np.argmax(dataset.tau.values > 1))
    sides = np.maximum(new.isel(tau=1), new.isel(tau=-2))
    gap = new / at_last.sel(risk="pretraining tasks").transpose("run", ...)
    gap = gap.isel(alpha=-1, tau=-1)
    return rows | {
        "peak": worst((new.isel(tau=above) / sides).values, lambda runs: -np.log(runs).mean()),
        "memorised": gap.isel(kappa=0).values,
        "learned": gap.isel(kappa=-1).values,
    }
