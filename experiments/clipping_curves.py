"""Which layers and modules of a trained transformer bear clipping, and with how many shots?"""

from functools import partial

import jax
import numpy as np

from experiments import style
from experiments.configs.clipping_curves import CLAIMS, TIERS, Config
from experiments.parts import clipped, stacks
from lsa_lab import results
from lsa_lab.analyses.clipping import DROP, curve
from lsa_lab.claims import CONFIDENCE, about_the_mean, mean_interval

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]

# All of A2's modules at the trained length, and those of its figures at the others.
MODULES = {"W_q": "w_q", "W_k": "w_k", "W_v": "w_v", "W_o": "w_o", **clipped.PARTS}
MODULES |= {"MLP in": "mlp_in", "MLP out": "mlp_out"}
DROPPED = 1.0  # the rate that stands for rank 0


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    stack, watched, status = clipped.trained(config, "clipping_curves", progress)
    params, risk = clipped.final(watched), clipped.squared_error(stack)
    law = stacks.task(stack, n=max(config.shots))
    draw = jax.jit(partial(stacks.draw, law=law, size=config.prompts))
    batch = draw(jax.random.fold_in(jax.random.key(config.seed), 1))
    measure = partial(curve, risk, params, batch, rates=(*config.rates, DROP))
    here = measure(modules=list(MODULES.values()), shots=(config.n,))
    there = measure(modules=list(clipped.PARTS.values()), shots=config.shots)
    parts = [list(MODULES).index(part) for part in clipped.PARTS]
    shots = np.array([*config.shots, config.n])
    order = np.argsort(shots)
    unclipped = np.concatenate([there.unclipped.mean, here.unclipped.mean], axis=1)[:, order]
    by_shots = np.concatenate([there.change.mean, here.change.mean[:, :, :, parts]], axis=1)
    return xr.Dataset(
        {
            "unclipped": (("run", "shots"), unclipped),
            "change": (("run", "layer", "module", "rate"), here.change.mean[:, 0]),
            "by_shots": (("run", "shots", "layer", "part", "rate"), by_shots[:, order]),
            "status": ("trained", status),
        },
        {
            "shots": shots[order],
            "layer": np.arange(config.depth) + 1,
            "module": list(MODULES),
            "part": list(clipped.PARTS),
            "rate": [*config.rates, DROPPED],
        },
    )


def relative(dataset):  # -> (run, layer, module, rate), (run, shots, layer, part, rate)
    """Changes over the risk of the same run unclipped, at as many shots."""
    n = results.settings(dataset).n
    unclipped = dataset.unclipped
    return dataset.change / unclipped.sel(shots=n), dataset.by_shots / unclipped


def drastic(values, settings):
    """Averaged over the high rates; dropping is not among them."""
    return values.sel(rate=slice(settings.high, DROPPED - 1e-9)).mean("rate")


def shallow_less_deep(by_shots, settings):  # -> (run, shots, part)
    """log10 of the risk after clipping shallow layers over that after clipping deep ones."""
    logs = drastic(np.log10(1 + by_shots), settings)
    shallow, deep = clipped.shallow_and_deep(logs, settings.ends)
    return shallow - deep


def left_out_gains(changes):  # (run, layer, part, rate) -> [R]
    """For each run the change by that edit which is best, on average, for all the other runs."""
    table = changes.transpose("run", ...).values.reshape(changes.sizes["run"], -1)
    others = table.sum(0, keepdims=True) - table
    return table[np.arange(len(table)), others.argmin(1)]


def excluded(changes):  # (run, layer, module, rate) -> (-1, 0 or 1 at each place)
    """The side of zero on which the interval over runs lies as a whole."""
    table = changes.transpose("run", ...).values
    flat = table.reshape(len(table), -1).T
    sides = [
        np.sign(low) * (np.sign(low) == np.sign(high)) for low, high in map(mean_interval, flat)
    ]
    return changes.isel(run=0, drop=True).copy(data=np.reshape(sides, table.shape[1:]))


def rate_axis(ax, rates):
    """Places of equal distance, as in A2's figures, and a change that may be small or huge."""
    ax.axhline(0, color=style.BLACK, lw=0.8, ls="--")
    ax.set_yscale("symlog", linthresh=0.01, linscale=0.5)
    ax.set_ylim(-0.05, 5000)  # room for the legend
    ticks = (-0.01, 0, 0.01, 0.1, 1, 10, 100)
    ax.set_yticks(ticks, [f"{tick:+.0%}" if tick else "0" for tick in ticks])
    labels = ["drop" if rate == DROPPED else f"{rate:g}" for rate in rates]
    ax.set_xticks(np.arange(len(rates)), labels)
    ax.set(xlabel="clipping rate", ylabel="change of the risk")


def plot_heat(ax, dataset, settings):
    """log10 of the risk ratio at high rates by module and layer."""
    change, _ = relative(dataset)
    ratio = drastic(np.log10(1 + change), settings).mean("run").transpose("module", "layer")
    top = float(abs(ratio).max())
    ax.imshow(ratio, cmap="PuOr_r", vmin=-top, vmax=top, aspect="auto")
    for (row, column), value in np.ndenumerate(ratio.values):
        dark = abs(value) > 0.6 * top
        text = f"×{10**value:.3g}"
        ax.text(column, row, text, ha="center", va="center", color="white" if dark else "black")
    ax.set_yticks(np.arange(len(dataset.module)), list(dataset.module.values))
    ax.set_xticks(np.arange(len(dataset.layer)), dataset.layer.values)
    ax.set(xlabel="layer")
    ax.set_title(f"risk ratio, mean over rates ≥ {settings.high:g}")


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(10.0, 6.4, (2, 3))
    change, by_shots = relative(dataset)
    places, rates = np.arange(dataset.sizes["rate"]), dataset.rate.values
    for i, part in enumerate(clipped.PARTS):
        here = change.sel(module=part)
        for layer, color, marker in zip(
            dataset.layer.values, style.COLOURS, style.MARKERS, strict=False
        ):
            runs = here.sel(layer=layer).transpose("run", "rate")
            clipped.mean_band(axes[i], places, runs, f"layer {layer}", color, marker)
        axes[i].set_title(f"{part}, {settings.n} shots")
        for shots, color in zip(dataset.shots.values, style.COLOURS, strict=False):
            both = by_shots.sel(part=part, shots=shots)
            ends = clipped.shallow_and_deep(both, settings.ends)
            for runs, marker, dash in zip(ends, ("o", "s"), ("-", ":"), strict=True):
                label = f"{shots} shots" if dash == "-" else None
                runs = runs.transpose("run", "rate")
                clipped.mean_band(axes[3 + i], places, runs, label, color, marker, dash)
        axes[3 + i].set_title(f"{part}, shallow and deep")
        axes[3 + i].plot([], [], "k-", label=f"first {settings.ends} layers")
        axes[3 + i].plot([], [], "k:", label=f"last {settings.ends} layers")
    for i in (0, 1, 3, 4):
        rate_axis(axes[i], rates)
        axes[i].legend(ncols=2, loc="upper left")
    plot_heat(axes[2], dataset, settings)
    apart = shallow_less_deep(by_shots, settings)
    for part, color, marker in zip(clipped.PARTS, style.COLOURS, style.MARKERS, strict=False):
        runs = apart.sel(part=part).transpose("run", "shots")
        clipped.mean_band(axes[5], dataset.shots.values, runs, part, color, marker)
    axes[5].axhline(0, color=style.BLACK, lw=0.8, ls="--")
    style.log_axes(axes[5], x=True, ticks=dataset.shots.values)
    axes[5].set(xlabel="shots", ylabel="log₁₀ (risk, shallow / risk, deep)")
    axes[5].set_title("clipped shallow against deep")
    axes[5].legend()
    style.caption(drawn, _told(dataset, settings))
    return drawn


def _told(dataset, settings):
    change, by_shots = relative(dataset)
    sides = excluded(change)
    told = []
    for shots in dataset.shots.values:
        better = (excluded(by_shots.sel(shots=shots)) < 0).transpose("part", "layer", "rate")
        stacked = better.stack(place=better.dims)
        names = [f"{part} {layer} at {rate:g}" for part, layer, rate in stacked.place.values]
        found = [name for name, is_better in zip(names, stacked.values, strict=True) if is_better]
        told.append(f"{len(found)} at {shots}" + f" ({', '.join(found[:3])})" * bool(found))
    chance = (1 - CONFIDENCE) / 2
    return (
        f"Means over {settings.prompts} prompts, the same for all; bands: 95 % intervals over "
        f"{clipped.left_out(dataset)}. At {settings.n} shots they exclude zero at "
        f"{int((sides != 0).sum())} of {sides.size} places (modules of (c), layers, rates and "
        f"drop): {int((sides > 0).sum())} above, where clipping hurts, {int((sides < 0).sum())} "
        f"below, where chance alone puts {chance * sides.size:.0f}. Below, among the "
        f"{by_shots[0, 0].size} places of attention and MLP, by shots: {', '.join(told)}; chance "
        f"{chance * by_shots[0, 0].size:.0f} each. Unclipped risk "
        + ", ".join(f"{float(r):.2g}" for r in dataset.unclipped.mean("run"))
        + f" at {', '.join(map(str, dataset.shots.values))} shots; d = {settings.d}."
    )


def claims(dataset):
    settings = results.settings(dataset)
    change, by_shots = relative(dataset)
    few, many = int(dataset.shots.min()), int(dataset.shots.max())
    absolute = drastic(dataset.by_shots, settings) / settings.d
    samples = {}
    for part in clipped.PARTS:
        name, at = part.lower(), by_shots.sel(part=part)
        there = drastic(at.sel(shots=settings.n), settings)
        collapse, _ = clipped.shallow_and_deep(absolute.sel(part=part), settings.ends)
        apart = shallow_less_deep(at, settings).sel(shots=settings.n)
        less = collapse.sel(shots=few) - collapse.sel(shots=settings.n)
        samples[f"{name}_deep_bears_more"] = apart.values
        samples[f"{name}_deep_is_flat"] = clipped.shallow_and_deep(there, settings.ends)[1].values
        samples[f"{name}_few_shots_collapse_less"] = less.values
    for which, shots in (("few", few), ("trained", settings.n), ("many", many)):
        samples[f"helps_{which}"] = left_out_gains(by_shots.sel(shots=shots))
    keys = drastic(change.sel(module="W_k"), settings)
    samples["keys_alone"] = clipped.shallow_and_deep(keys, settings.ends)[0].values
    known = vars(settings) | {"few": few, "many": many, "-gain": -settings.gain}
    made = []
    for name, (source, statement, criterion, bounds) in CLAIMS.items():
        said = (source, statement.format(**known), criterion.format(**known), samples[name])
        limits = {side: known.get(bound, bound) for side, bound in bounds.items()}
        made.append(about_the_mean(f"clipping_curves.{name}", *said, **limits))
    return made
