"""Counterexamples by ascent and by hand, and maps of where random stacks amplify."""

from functools import partial

import jax
import numpy as np

from experiments.flow import pairs
from experiments.flow.amplification_limits import ascent, examples
from experiments.flow.amplification_limits.config import DIRECTIONS, EXAMPLES, MAPS, SIDES, Config
from lsa_lab.models import linear_attention
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
        logs = np.stack([pairs.measure(pairs.log_ratios, pairs.UNMASKED, s, batch) for s in stacks])
        summary = pairs.summarise(np.moveaxis(logs[:, :, :, :, 0], 2, 3))  # [G, R, 2, B, L]
        growth.append(summary["growth"])
        dropped.append(summary["dropped"])
    return np.stack(growth), np.stack(dropped)


def coupling_maps(config, base, batch):
    """Log ratios [R, B, L] and self-couplings [R, B, 2] of the pairs, for each of MAPS."""
    free = pairs.tie(pairs.amplify(base, config.gain))
    skew = (free.w_kq - free.w_kq.swapaxes(-1, -2)) / 2
    frozen = free.replace(w_kq=skew)  # d·K d = 0: a demonstration alone and masked stays
    masked = partial(pairs.measure, pairs.contribution_ratio, linear_attention.forward)
    flows = pairs.measure(pairs.log_ratios, pairs.UNMASKED, free, batch)[:, :, 0, 0]
    logs = [np.asarray(rows) for rows in (masked(frozen, batch), masked(free, batch), flows)]
    kappas = [np.asarray(pairs.couplings(stack, batch)) for stack in (frozen, free, free)]
    return list(zip(logs, kappas, strict=True))


def plane(logs, kappa, edges):  # [R, B, L], [R, B, 2] -> [bins, bins] twice
    """How many of all pairs, both ways round, have a κ here, and the share whose ratio ends
    larger."""
    change = logs[..., -1] - logs[..., 0]
    kept = np.isfinite(change)
    first, second = (np.concatenate([kappa[kept], kappa[kept][:, ::-1]])[:, i] for i in (0, 1))
    larger = np.concatenate([change[kept] > 0, change[kept] < 0])
    count, *_ = np.histogram2d(first, second, (edges, edges))
    grown, *_ = np.histogram2d(first, second, (edges, edges), weights=larger.astype(float))
    return count, np.where(count > 0, grown / np.maximum(count, 1), np.nan)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    rng = np.random.default_rng(config.seed)
    paths, reverses, chosen = ascent.search(config, rng)
    batch, _ = pairs.draw(rng, config.runs, config.pairs, config.d)
    base = pairs.random_linear(rng, config.runs, config.depth, config.d)
    growth, dropped = feedback_map(config, base, batch)
    maps, edges = coupling_maps(config, base, batch), np.linspace(-1, 2, config.bins + 1)
    count, larger = (np.stack(p) for p in zip(*(plane(*m, edges) for m in maps), strict=True))
    data = {
        "search": (("direction", "budget", "restart", "search_layer"), paths),
        "reverses": (("restart",), reverses),
        "example": (
            ("which", "side", "layer"),
            np.asarray(jax.jit(examples.ratios, static_argnums=0)(config.layers)),
        ),
        "growth": (("feedback", "gain", "run", "mode"), growth),
        "dropped": (("feedback", "gain", "run", "mode"), dropped),
        "count": (("map", "first", "second"), count),
        "larger": (("map", "first", "second"), larger),
        "agreement": (("map", "run"), np.stack([pairs.agreement(*m) for m in maps])),
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
            "which": list(EXAMPLES),
            "side": list(SIDES),
            "layer": np.arange(config.layers) + 1,
            "feedback": list(config.feedbacks),
            "gain": list(config.gains),
            "mode": list(pairs.MODES),
            "map": list(MAPS),
            "edge": edges,
        },
    )
