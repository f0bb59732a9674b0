"""Where does depth amplify, and which stacks do the opposite?"""

from functools import partial

import jax
import numpy as np

from experiments.flow import pair_stacks, pairs
from experiments.flow.amplification_limits import reversals
from experiments.flow.amplification_limits.config import MAPS, Config
from lsa_lab.models import linear_attention
from lsa_lab.models.linear_attention import Params


def plane(logs, kappa, edges):  # [R, B, L], [R, B, 2] -> [bins, bins] twice
    """Of all pairs, both ways round: how many, and the share whose ratio ends larger, by κ."""
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
    paths, reverses, chosen = reversals.search(config, rng)
    batch, _ = pairs.draw(rng, config.runs, config.pairs, config.d)
    base = pair_stacks.linear(rng, config.runs, config.depth, config.d)
    same = base.replace(w_kq=np.zeros_like(base.w_kq) + np.eye(config.d + 1))
    same = same.w_kq / (2 * config.d) ** 0.5  # of gain 1, as base
    growth, dropped = [], []
    for feedback in config.feedbacks:
        rest, share = (1 - feedback**2) ** 0.5, abs(feedback)
        mixed = Params(share * same + rest * base.w_kq, feedback * same + rest * base.w_pv)
        many = [pair_stacks.amplified(mixed, gain) for gain in config.gains]
        logs = [pairs.measure(pairs.log_ratios, pair_stacks.UNMASKED, some, batch) for some in many]
        found = pairs.summed_up(np.moveaxis(np.stack(logs)[:, :, :, :, 0], 2, 3))  # [G, R, 2, B, L]
        growth.append(found["growth"])
        dropped.append(found["dropped"])
    free = pair_stacks.tied(pair_stacks.amplified(base, config.gain))
    frozen = free.replace(w_kq=(free.w_kq - free.w_kq.swapaxes(-1, -2)) / 2)
    masked = partial(pairs.measure, pairs.contribution_ratio, linear_attention.forward)
    flows = pairs.measure(pairs.log_ratios, pair_stacks.UNMASKED, free, batch)[:, :, 0, 0]
    logs = [np.asarray(some) for some in (masked(frozen, batch), masked(free, batch), flows)]
    kappas = [np.asarray(pairs.couplings(some, batch)) for some in (frozen, free, free)]
    edges = np.linspace(-1, 2, config.bins + 1)
    planes = [plane(*both, edges) for both in zip(logs, kappas, strict=True)]
    examples = jax.jit(reversals.by_hand, static_argnums=0)(config.layers)
    axes = ("feedback", "gain", "run", "mode")
    data = {
        "search": (("direction", "budget", "restart", "search_layer"), paths),
        "reverses": (("restart",), reverses),
        "example": (("which", "side", "layer"), np.asarray(examples)),
        "growth": (axes, np.stack(growth)),
        "dropped": (axes, np.stack(dropped)),
        "count": (("map", "first", "second"), np.stack([p[0] for p in planes])),
        "larger": (("map", "first", "second"), np.stack([p[1] for p in planes])),
        "agreement": (
            ("map", "run"),
            np.stack([pairs.agreement(*both) for both in zip(logs, kappas, strict=True)]),
        ),
    }
    names = ("w_kq", "w_pv", "pair", "query", "log_ratio")
    sizes = ("row", "column"), ("row", "column"), ("demonstration", "column"), ("x",)
    for name, axes, part in zip(names, (*sizes, ("search_layer",)), chosen, strict=True):
        data[f"found_{name}"] = (axes, part)
    return xr.Dataset(
        data,
        {
            "direction": list(reversals.DIRECTIONS),
            "budget": list(config.budgets),
            "which": list(reversals.EXAMPLES),
            "side": ["network", "closed form"],
            "layer": np.arange(config.layers) + 1,
            "feedback": list(config.feedbacks),
            "gain": list(config.gains),
            "mode": list(pairs.MODES),
            "map": list(MAPS),
            "edge": edges,
        },
    )
