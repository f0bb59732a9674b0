"""The figure of `clipping_curves`, drawn from its result alone."""

import numpy as np

from experiments.clipping.clipping_curves.claims import drastic, relative, shallow_less_deep
from experiments.clipping.clipping_curves.config import DROPPED
from experiments.clipping.diverged_runs import left_out
from experiments.clipping.layer_ends import shallow_and_deep
from experiments.clipping.transformer_config import PARTS
from lsa_lab import results
from lsa_lab.harness import style
from lsa_lab.statistics import CONFIDENCE, mean_interval


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
    settings = results.config_of(dataset)
    drawn, axes = style.figure(10.0, 6.4, (2, 3))
    change, by_shots = relative(dataset)
    places, rates = np.arange(dataset.sizes["rate"]), dataset.rate.values
    for i, part in enumerate(PARTS):
        here = change.sel(module=part)
        for layer, color, marker in zip(
            dataset.layer.values, style.COLOURS, style.MARKERS, strict=False
        ):
            runs = here.sel(layer=layer).transpose("run", "rate")
            style.mean_band(axes[i], places, runs, f"layer {layer}", color, marker)
        axes[i].set_title(f"{part}, {settings.n} shots")
        for shots, color in zip(dataset.shots.values, style.COLOURS, strict=False):
            both = by_shots.sel(part=part, shots=shots)
            ends = shallow_and_deep(both, settings.ends)
            for runs, marker, dash in zip(ends, ("o", "s"), ("-", ":"), strict=True):
                label = f"{shots} shots" if dash == "-" else None
                runs = runs.transpose("run", "rate")
                style.mean_band(axes[3 + i], places, runs, label, color, marker, dash)
        axes[3 + i].set_title(f"{part}, shallow and deep")
        axes[3 + i].plot([], [], "k-", label=f"first {settings.ends} layers")
        axes[3 + i].plot([], [], "k:", label=f"last {settings.ends} layers")
    for i in (0, 1, 3, 4):
        rate_axis(axes[i], rates)
        axes[i].legend(ncols=2, loc="upper left")
    plot_heat(axes[2], dataset, settings)
    apart = shallow_less_deep(by_shots, settings)
    for part, color, marker in zip(PARTS, style.COLOURS, style.MARKERS, strict=False):
        runs = apart.sel(part=part).transpose("run", "shots")
        style.mean_band(axes[5], dataset.shots.values, runs, part, color, marker)
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
        f"{dataset.sizes['run']} runs ({left_out(dataset)} diverged and left out). "
        f"At {settings.n} shots they exclude zero at "
        f"{int((sides != 0).sum())} of {sides.size} places (modules of (c), layers, rates and "
        f"drop): {int((sides > 0).sum())} above, where clipping hurts, {int((sides < 0).sum())} "
        f"below, where chance alone puts {chance * sides.size:.0f}. Below, among the "
        f"{by_shots[0, 0].size} places of attention and MLP, by shots: {', '.join(told)}; chance "
        f"{chance * by_shots[0, 0].size:.0f} each. Unclipped risk "
        + ", ".join(f"{float(r):.2g}" for r in dataset.unclipped.mean("run"))
        + f" at {', '.join(map(str, dataset.shots.values))} shots; d = {settings.d}."
    )
