"""The change of the risk by the rate at which a part of a layer is clipped."""

import numpy as np

from experiments.clipping.clipping_curves.claims import (
    drastic,
    improvements,
    relative,
    samples,
    shallow_less_deep,
    sides,
)
from experiments.clipping.clipping_curves.config import DROPPED
from experiments.clipping.diverged_runs import left_out
from experiments.clipping.layer_ends import shallow_and_deep
from experiments.clipping.transformer_config import PARTS
from lsa_lab import results
from lsa_lab.harness import style
from lsa_lab.statistics import CONFIDENCE


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(10.0, 5.8, (2, 3))
    for i, part in enumerate(PARTS):
        plot_layers(axes[i], dataset, part, config)
        plot_shots(axes[3 + i], dataset, part, config)
    plot_heat(axes[2], dataset, config)
    plot_ends(axes[5], dataset, config)
    return figure


def plot_layers(ax, dataset, part, config):
    """One curve a layer, with as many shots as in training."""
    change, _ = relative(dataset)
    places = np.arange(dataset.sizes["rate"])
    looks = zip(dataset.layer.values, style.COLOURS, style.MARKERS, strict=False)
    for layer, color, marker in looks:
        runs = change.sel(module=part, layer=layer).transpose("run", "rate")
        style.mean_band(ax, places, runs, f"layer {layer}", color, marker)
    ax.set_title(f"{part}, {config.n} shots")
    rate_axis(ax, dataset.rate.values)


def plot_shots(ax, dataset, part, config):
    """The first layers and the last ones, one curve for each number of shots."""
    _, by_shots = relative(dataset)
    places = np.arange(dataset.sizes["rate"])
    for shots, color in zip(dataset.shots.values, style.COLOURS, strict=False):
        ends = shallow_and_deep(by_shots.sel(part=part, shots=shots), config.ends)
        looks = zip(ends, (f"{shots} shots", None), ("o", "s"), ("-", ":"), strict=True)
        for changes, label, marker, dash in looks:
            runs = changes.transpose("run", "rate")
            style.mean_band(ax, places, runs, label, color, marker, dash)
    ax.set_title(f"{part}, shallow and deep")
    ax.plot([], [], "k-", label=f"first {config.ends} layers")
    ax.plot([], [], "k:", label=f"last {config.ends} layers")
    rate_axis(ax, dataset.rate.values)


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
    ax.legend(ncols=2, loc="upper left")


def plot_heat(ax, dataset, config):
    """log10 of the risk ratio at high rates by module and layer."""
    change, _ = relative(dataset)
    logs = drastic(np.log10(1 + change), config.high).mean("run").transpose("module", "layer")
    top = float(abs(logs).max())
    ax.imshow(logs, cmap="PuOr_r", vmin=-top, vmax=top, aspect="auto")
    for (row, column), value in np.ndenumerate(logs.values):
        color = "white" if abs(value) > 0.6 * top else "black"
        ax.text(column, row, f"×{10**value:.3g}", ha="center", va="center", color=color)
    ax.set_yticks(np.arange(len(dataset.module)), list(dataset.module.values))
    ax.set_xticks(np.arange(len(dataset.layer)), dataset.layer.values)
    ax.set(xlabel="layer")
    ax.set_title(f"risk ratio, mean over rates ≥ {config.high:g}")


def plot_ends(ax, dataset, config):
    """Clipping the first layers against clipping the last ones, by the number of shots."""
    apart = shallow_less_deep(relative(dataset)[1], config)
    for part, color, marker in zip(PARTS, style.COLOURS, style.MARKERS, strict=False):
        runs = apart.sel(part=part).transpose("run", "shots")
        style.mean_band(ax, dataset.shots.values, runs, part, color, marker)
    ax.axhline(0, color=style.BLACK, lw=0.8, ls="--")
    style.log_axes(ax, x=True, ticks=dataset.shots.values)
    ax.set(xlabel="shots", ylabel="log₁₀ (risk, shallow / risk, deep)")
    ax.set_title("clipped shallow against deep")
    ax.legend()


def caption(dataset) -> str:
    config, judged = results.config_of(dataset), samples(dataset)
    change, by_shots = relative(dataset)
    flat = [judged[f"{part.lower()}_deep_is_flat"].mean() for part in PARTS]
    apart = [10 ** judged[f"{part.lower()}_deep_bears_more"].mean() for part in PARTS]
    side, tail, edits = sides(change), (1 - CONFIDENCE) / 2, by_shots[0, 0].size
    shots = dataset.shots.values
    better = ", ".join(f"{improvements(by_shots.sel(shots=s))} at {s}" for s in shots)
    risks = ", ".join(f"{float(risk):.2g}" for risk in dataset.unclipped.mean("run"))
    return (
        f"Drastic clipping of the last {config.ends} layers raises the risk by {flat[0]:.0%} "
        f"(attention) and {flat[1]:.0%} (MLP); with the first {config.ends} the risk is "
        f"{apart[0]:.2f} and {apart[1]:.2f} times as high. "
        f"Means over {config.prompts} prompts, the same for all; bands: 95 % intervals over "
        f"{dataset.sizes['run']} runs ({left_out(dataset)} diverged and left out); drastic: rates "
        f">= {config.high:g}, at {config.n} shots. There the intervals exclude zero at "
        f"{int((side != 0).sum())} of {side.size} places (modules of c, layers, rates and drop): "
        f"{int((side > 0).sum())} above, where clipping hurts, {int((side < 0).sum())} below, "
        f"where luck alone puts {tail * side.size:.0f}. Below, among the {edits} places of "
        f"attention and MLP, by shots: {better}; luck alone {tail * edits:.0f} each. Unclipped "
        f"risk {risks} at {', '.join(map(str, shots))} shots; d = {config.d}."
    )
