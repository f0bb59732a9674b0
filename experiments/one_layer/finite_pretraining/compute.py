"""Layers fitted at several sizes, and the closed form that they approach."""

import itertools

import jax
import numpy as np

from experiments.one_layer.finite_pretraining import simulation
from experiments.one_layer.finite_pretraining.config import RISKS, Config
from lsa_lab.theory.asymptotics import ridgeless_risk

_LINE = np.geomspace(0.1, 10, 201)  # of tau and of kappa


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    axes = ("d", "alpha", "kappa", "tau", "risk")
    places = list(itertools.product(config.sizes, config.alphas, config.kappas))
    measured = []
    task = progress and progress.add_task("finite_pretraining", total=len(places))
    for i, place in enumerate(places):
        key = jax.random.fold_in(jax.random.key(config.seed), i)
        measured.append(simulate(config, key, *place))
        if progress:
            progress.update(task, completed=i + 1)
    shape = [len(getattr(config, name)) for name in ("sizes", "alphas", "kappas")]
    risks = np.stack(measured).reshape(*shape, config.runs, len(config.taus), len(RISKS))

    def closed(kappa, tau, alphas=config.alphas):  # -> [alphas, kappas, taus, 2]
        alpha = np.asarray(alphas)[:, None, None]
        grid = np.asarray(kappa)[None, :, None], np.asarray(tau)[None, None]
        return np.stack(ridgeless_risk(alpha, *grid, config.noise_var), axis=-1)

    limit = closed(_LINE, [np.inf], [1000.0])[0, :, 0]
    return xr.Dataset(
        {
            "measured": (("d", "alpha", "kappa", "run", "tau", "risk"), risks),
            "closed_form": (axes[1:], closed(config.kappas, config.taus)),
            "over_tau": (("alpha", "kappa", "line", "risk"), closed(config.kappas, _LINE)),
            "over_kappa": (("alpha", "line", "risk"), closed(_LINE, config.taus[-1:])[:, :, 0]),
            "limit": (("line", "risk"), limit),
        },
        {
            "d": list(config.sizes),
            "alpha": list(config.alphas),
            "kappa": list(config.kappas),
            "tau": list(config.taus),
            "risk": list(RISKS),
            "line": _LINE,
        },
    )


def simulate(config, key, d, alpha, kappa):  # -> [R, taus, 2]
    """Both risks of every run after each number of prompts.

    One fit after the other, for one at d = 64 takes a gigabyte.
    """
    n, k = round(alpha * d), round(kappa * d)
    counts = tuple(round(tau * d * d) for tau in config.taus)
    sizes = {"counts": counts, "most_tasks": round(config.kappas[-1] * d), "d": d}
    fits = (config.sizes[-1] // d) ** 2
    keys = jax.random.split(key, config.runs * fits)
    risks = [simulation.risks(key, float(n), k, config.noise_var, **sizes) for key in keys]
    return np.reshape(risks, (config.runs, fits, len(counts), len(RISKS))).mean(1)
