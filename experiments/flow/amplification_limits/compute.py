"""Counterexamples by ascent, and maps of where random stacks amplify."""

import numpy as np

from experiments.flow import pairs
from experiments.flow.amplification_limits import ascent
from experiments.flow.amplification_limits.config import DIRECTIONS, Config
from lsa_lab.models.linear_attention import Params


def feedback_map(config, base, batch):
    """Shares of pairs whose ratio grows in every layer, and overflows [feedbacks, gains, R, 2]."""
    same = base.replace(w_kq=np.zeros_like(base.w_kq) + np.eye(config.d + 1))
    same = same.w_kq / (2 * config.d) ** 0.5  # of gain 1, as base
    growth, dropped = [], []
    for feedback in config.feedbacks:
        rest, share = (1 - feedback**2) ** 0.5, abs(feedback)
        mixed = Params(share * same + rest * base.w_kq, feedback * same + rest * base.w_pv)
        stacks = [pairs.amplify(mixed, gain) for gain in config.gains]
        logs = np.stack([pairs.measure(pairs.UNMASKED, s, batch) for s in stacks])
        summary = pairs.summarise(np.moveaxis(logs[:, :, :, :, 0], 2, 3))  # [G, R, 2, B, L]
        growth.append(summary["growth"])
        dropped.append(summary["dropped"])
    return np.stack(growth), np.stack(dropped)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    rng = np.random.default_rng(config.seed)
    paths, reverses, chosen = ascent.search(config, rng)
    batch = pairs.draw(rng, config.runs, config.pairs, config.d)
    base = pairs.random_linear(rng, config.runs, config.depth, config.d)
    growth, dropped = feedback_map(config, base, batch)
    data = {
        "search": (("direction", "budget", "restart", "search_layer"), paths),
        "reverses": (("restart",), reverses),
        "growth": (("feedback", "gain", "run", "mode"), growth),
        "dropped": (("feedback", "gain", "run", "mode"), dropped),
    }
    sizes = ("row", "column"), ("row", "column"), ("demonstration", "column"), ("x",)
    names = ("w_kq", "w_pv", "pair", "query", "log_ratio")
    for name, axes, part in zip(names, (*sizes, ("search_layer",)), chosen, strict=True):
        data[f"found_{name}"] = (axes, part)
    return xr.Dataset(
        data,
        {
            "direction": list(DIRECTIONS),
            "budget": list(config.budgets),
            "feedback": list(config.feedbacks),
            "gain": list(config.gains),
            "mode": list(pairs.MODES),
        },
    )
