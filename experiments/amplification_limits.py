"""Where does depth amplify, and which stacks do the opposite?"""

from functools import partial

import jax
import numpy as np

from experiments import style
from experiments.configs.amplification_limits import CLAIMS, TIERS, Config
from experiments.parts import pair_stacks, pairs, reversals
from lsa_lab import results
from lsa_lab.claims import Claim, about_the_median, judge
from lsa_lab.models import linear_attention
from lsa_lab.models.linear_attention import Params

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]

MAPS = ("contribution, frozen", "contribution, masked", "flow, not masked")
PRINTED = (1, 2, 4, 8, 16, 64, 200)


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


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(11.0, 7.4, (2, 3))
    layers = dataset.layer.values
    shown = layers[np.isin(layers, (*PRINTED, 32, 128))]
    for name, color, marker in zip(reversals.EXAMPLES, style.COLOURS, style.MARKERS, strict=False):
        there = dataset.example.sel(which=name)
        style.line(axes[0], layers, there.sel(side="closed form"), color=color)
        points = there.sel(side="network", layer=shown)
        axes[0].plot(shown, points, marker, color=color, label=name)
    path = np.exp(dataset.found_log_ratio.values)
    axes[0].plot(
        np.arange(len(path)) + 1, path, "v-", color=style.COLOURS[3], label="found by ascent"
    )
    axes[0].axhline(1, color="grey", lw=0.8, ls="--")
    style.log_axes(axes[0], x=True, y=True, ticks=[1, 2, 4, 8, 16, 64, 200])
    axes[0].set(title="by hand and by ascent", xlabel="layers", ylabel="ratio", ylim=(1e-2, 1e3))
    axes[0].legend(loc="upper right")
    lost = 0
    change = dataset.search.isel(search_layer=-1) - dataset.search.isel(search_layer=0)
    for name, color, marker in zip(reversals.DIRECTIONS, style.COLOURS[1::-1], "sv", strict=True):
        runs = change.sel(direction=name).transpose("restart", "budget")
        lost += style.band(axes[1], dataset.budget.values, runs, f"{name} found", color, marker)
    axes[1].axhspan(-settings.small, settings.small, color="grey", alpha=0.2, lw=0)
    style.log_axes(axes[1], x=True, ticks=dataset.budget.values)
    axes[1].set_yscale("symlog", linthresh=1)
    axes[1].set(title="ascent over weights and tokens", xlabel="budget |w_kq| |w_pv|")
    axes[1].set(ylabel=f"change of log ratio, {settings.search_depth} layers")
    axes[1].legend(loc="upper left")
    colours = dict(cmap="PuOr_r", vmin=0, vmax=1)
    for ax, mode in zip(axes[2:4], pairs.MODES, strict=True):
        share = dataset.growth.sel(mode=mode).median("run").transpose("gain", "feedback")
        rows, columns = np.arange(share.sizes["gain"]), np.arange(share.sizes["feedback"])
        mesh = ax.pcolormesh(columns, rows, share.values, **colours)
        for (i, j), value in np.ndenumerate(share.values):
            pale = abs(value - 0.5) < 0.3
            text = {"ha": "center", "va": "center", "color": "black" if pale else "white"}
            ax.text(j, i, f"{value:.2f}"[1:] if value < 1 else "1", fontsize=6, **text)
        ax.set_xticks(columns, [f"{f:g}" for f in dataset.feedback.values], fontsize=6)
        ax.set_yticks(rows, [f"{g:g}" for g in dataset.gain.values])
        ax.set(title=f"grows in every layer, {mode}", xlabel="feedback", ylabel="gain")
        drawn.colorbar(mesh, ax=ax, fraction=0.05)
    for ax, name in zip(axes[4:], (MAPS[0], MAPS[2]), strict=True):
        edges, there = dataset.edge.values, dataset.sel(map=name)
        larger = there.larger.where(there["count"] >= 4).transpose("second", "first")
        mesh = ax.pcolormesh(edges, edges, larger.values, **colours)
        ax.plot(edges, edges, color=style.BLACK, lw=0.8, ls="--")
        ax.set(title=f"ends larger: {name}", xlabel="κ of the first", ylabel="κ of the second")
        drawn.colorbar(mesh, ax=ax, fraction=0.05)
    style.caption(drawn, caption(dataset, settings, lost))
    return drawn


def caption(dataset, settings, lost):
    def numbers(values):
        return ", ".join(f"{value:.3g}" for value in np.ravel(values))

    def rows(name):
        return "; ".join(numbers(row) for row in np.atleast_2d(dataset[f"found_{name}"]))

    printed = [depth for depth in PRINTED if depth <= settings.layers]
    ratios = dataset.example.sel(side="network", layer=printed)
    right = dataset.agreement.median("run")
    dropped, total = int(dataset.dropped.sum()), dataset.dropped.size * settings.pairs
    return (
        "Depth amplifies the ratio of most pairs where all feedback is positive (c, right), or "
        "where weights are large and each demonstration is alone (c, top; d); no linear stack is "
        "safe by being one (a, b). "
        f"a: ratios after {numbers(printed)} layers; lines: closed forms. Width 1, w_pv w_kq = "
        f"-0.01, d = 1.5 and 0.8, q = 0.5: {numbers(ratios[0])}. Descent, η = 0.15, x = (2, 0) and "
        f"(0.6, 0), x_query = (1, 0.3): {numbers(ratios[1])}. Contributions, w_kq = (0, 1; -1, 0), "
        "w_pv = (0, 0; 0, 1), d = (0, 1), κ = 0, and (1, 0.5), κ = 0.5, q = (1, 0): "
        f"{numbers(ratios[2])}. By ascent, tied, w_kq = ({rows('w_kq')}), w_pv = ({rows('w_pv')}), "
        f"d = ({rows('pair')}), x_query = ({rows('query')}), after 1, 2, ... layers: "
        f"{numbers(np.exp(dataset.found_log_ratio))}. b: median of {settings.restarts} restarts "
        f"and the middle 80 %; {lost} left out as not finite. c, d: median over {settings.runs} "
        f"runs of the share of {settings.pairs} pairs; {dropped} of {total} overflow, left out; "
        "feedback 1 is w_kq = w_pv = cI, -1 has w_pv = -cI, 0 is random. The larger κ wins for "
        f"{float(right[0]):.0%} of the pairs with κ > -1 in e, for {float(right[2]):.0%} in f."
    )


def claims(dataset):
    settings = results.settings(dataset)
    change = dataset.search.isel(search_layer=-1) - dataset.search.isel(search_layer=0)
    change = change.transpose("direction", "budget", "restart").values
    shown = dataset.search.sel(direction="least", budget=settings.shown).isel(search_layer=-1)
    small, large = (int(pick(settings.budgets)) for pick in (np.argmin, np.argmax))
    alone = dataset.growth.sel(mode="alone").transpose("feedback", "gain", "run")
    right = dataset.agreement.transpose("map", "run").values
    bounds = {
        "positive": {"at_least": 0.0},
        "generic": {"at_least": settings.generic},
        "rare": {"at_most": 1 - settings.generic},
        "small": {"at_most": settings.small},
        "exact": {"at_least": settings.exact},
        "predicts": {"at_least": settings.predicts},
        "reversed": {"at_most": 1.0},
        "limit": {"at_most": settings.limit},
        "rounding": {"at_most": settings.rounding},
    }
    samples = {
        "theorem_1": change[0, large],
        "order": shown.values,
        "robust": dataset.reverses.values,
        "small_weights": np.abs(change[:, small]).max(0),
        "push": min(alone.sel(feedback=1).values, key=np.median),
        "pull": max(alone.sel(feedback=-1).values, key=np.median),
        "kappa_frozen": right[0],
        "kappa_moving": right[1],
    }
    network, closed = (dataset.example.sel(side=side) for side in dataset.side.values)
    apart = np.abs(network / closed - 1).max("layer").values
    for i, name in enumerate(("width_1", "descent", "coupling")):
        samples |= {name: network.values[i, -1], f"{name}_law": apart[i]}
    made = []
    for name, values in samples.items():
        source, statement, measured, which = CLAIMS[name]
        words = {"at_least": ">=", "at_most": "<="}
        kept = " and ".join(f"{words[k]} {bound:g}" for k, bound in bounds[which].items())
        row = (f"amplification_limits.{name}", source, statement, f"{measured} {kept}")
        if np.ndim(values):
            made.append(about_the_median(*row, values, **bounds[which]))
        else:  # one number, the same in every run
            value = float(values)
            verdict = judge((value, value), **bounds[which])
            made.append(Claim(*row, value, (value, value), verdict))
    return made
