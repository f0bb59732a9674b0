"""The change of the risk by the rate at which a part of a layer is clipped, and what is judged."""

import numpy as np

from experiments.clipping.clipping_curves.claims import over_ends, relative, samples, sides
from experiments.clipping.clipping_curves.config import DROPPED, statements
from experiments.clipping.clipping_curves.curves import end_curves, layer_curves, shots_curves
from experiments.clipping.diverged_runs import left_out
from experiments.clipping.layer_ends import shades, shallow_and_deep
from experiments.clipping.transformer_config import PARTS
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.harness.marks import end_labels
from lsa_lab.statistics import CONFIDENCE, mean_interval

FACTORS = {"deep_bears_more": "first / last layers", "few_shots_collapse_less": "few / {n} shots"}
SHARES = {
    "deep_is_flat": "rise, last layers",
    "shallow_collapses": "first clipped / predicting 0",
    "few_shots_rise_less": "rise, few less {n} shots",
}


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.4, 2.6, 2.3), ((1, 1), (1, 1), (1, 1)))
    plot_judged(axes[0], axes[1], dataset, results.config_of(dataset))
    for panel, first in ((layer_curves, 2), (shots_curves, 4)):
        pair = axes[first : first + len(PARTS)]
        ends = [panel(ax, dataset, part) for ax, part in zip(pair, PARTS, strict=True)]
        low, high = zip(*(ax.get_ylim() for ax in pair), strict=True)
        for ax, heights in zip(pair, ends, strict=True):
            ax.set_ylim(min(low), max(high))
            end_labels(ax, heights, shades(len(heights)))
    return figure


def appendix(dataset):
    """The first layers and the last ones by the rate, at every number of shots."""
    figure, axes = style.figure(6.75, 3.2, (1, 2), first="g")
    for ax, part in zip(axes, PARTS, strict=True):
        end_curves(ax, dataset, part)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, ncols=len(names), loc="outside lower center")
    return figure


def plot_judged(shares_ax, factors_ax, dataset, config):
    """What is judged: changes of the risk, and factors."""
    judged, bounds, few = samples(dataset), statements(config), min(config.shots)
    names = {"few": few, "trained": config.n, "many": max(config.shots)}
    words = {
        f"{part.lower()}_{id}": f"{part}: {text.format(n=config.n)}"
        for id, text in (SHARES | FACTORS).items()
        for part in PARTS
    }
    factors = {id: text for id, text in words.items() if id.endswith(tuple(FACTORS))}
    shares = {id: text for id, text in words.items() if id not in factors}
    shares |= {f"helps_{name}": f"best edit, {shots} shots" for name, shots in names.items()}
    shares_ax.set_xscale("symlog", linthresh=0.01)
    judged_panel.rows(shares_ax, bounds, judged, shares, (-0.15, 15))
    ticks = (-0.1, 0, 0.1, 1, 10)
    shares_ax.set_xticks(ticks, [f"{tick:g}".replace("-", "\u2212") for tick in ticks])
    shares_ax.set(xlabel="change as a share of the risk", title="judged changes")
    judged_panel.rows(factors_ax, bounds, judged, factors, np.log10((0.15, 60)))
    ticks = (0.2, 1, 5, 20)
    factors_ax.set_xticks(np.log10(ticks), [f"{tick:g}" for tick in ticks])
    factors_ax.set(xlabel="ratio of risks or of factors", title="judged ratios")


def caption(dataset) -> str:
    config, judged, change = results.config_of(dataset), samples(dataset), relative(dataset)
    flat = [judged[f"{part.lower()}_deep_is_flat"].mean() for part in PARTS]
    apart = [
        "{:.2f} [{:.2f}, {:.2f}]".format(*10 ** np.array([logs.mean(), *mean_interval(logs)]))
        for logs in (judged[f"{part.lower()}_deep_bears_more"] for part in PARTS)
    ]
    side, tail, edits = sides(change), (1 - CONFIDENCE) / 2, change[0, 0].size
    shots = dataset.shots.values
    better = ", ".join(f"{int((side.sel(shots=s) < 0).sum())} at {s}" for s in shots)
    far = np.exp(np.log(dataset.unclipped / dataset.ridge).mean("run"))
    ratios = ", ".join(f"{float(ratio):.2g} at {s}" for s, ratio in zip(shots, far, strict=True))
    return (
        f"Drastic clipping of the last {config.ends} layers raises our models' risk by "
        f"{flat[0]:.0%} (attention) and {flat[1]:.0%} (MLP); with the first {config.ends} it is "
        f"{apart[0]} and {apart[1]} times as high. "
        f"Drastic: rates >= {config.high:g}, averaged. a, b: {judged_panel.KEY}; few: "
        f"{min(config.shots)} shots. c, d: means; e, f: geometric means; bands: 95 % intervals. "
        f"Appendix: g, h: by rate at each number of shots. "
        f"{by_rate(dataset, config)} {two_readings(dataset, config)} Our models' risk, "
        f"unclipped, is that of ridge regression times {ratios} shots; they were trained at "
        f"{config.n} alone. Of {edits} edits the interval of a change lies "
        f"below zero for {better} shots; luck alone puts {tail * edits:.0f} there. "
        f"{dataset.sizes['run']} runs ({left_out(dataset)} diverged and left out), each with "
        f"{config.prompts} prompts of its own; d = {config.d}."
    )


def by_rate(dataset, config):
    """How shallow and deep layers compare at each drastic rate, a layer's part dropped the last."""
    logs = np.log10(1 + relative(dataset)).sel(shots=config.n, rate=slice(config.high, None))
    listed = []
    for part in PARTS:
        shallow, deep = shallow_and_deep(logs.sel(part=part), config.ends)
        ratios = 10 ** (shallow - deep).mean("run")
        names = ["dropped" if rate == DROPPED else f"{rate:g}" for rate in ratios.rate.values]
        by_name = zip(names, ratios.values, strict=True)
        listed.append(f"{part}, {', '.join(f'{ratio:.3g} ({name})' for name, ratio in by_name)}")
    return f"Shallow over deep by rate: {'; '.join(listed)}."


def two_readings(dataset, config):
    """What fewer shots do to the collapse, as a factor and as a share of the risk of a guess."""
    shots = [min(config.shots), config.n]
    factors, _ = over_ends(np.log10(1 + relative(dataset)), config)
    rises, _ = over_ends(dataset.change / config.d, config)
    factors, rises = (each.sel(part="attention").mean("run") for each in (factors, rises))
    room = config.d / dataset.unclipped.mean("run")
    factors, rises, room = (each.sel(shots=shots).values for each in (10**factors, rises, room))
    return (
        f"Few shots, two readings: clipping shallow attention multiplies the risk by "
        f"{factors[0]:.2f} at {shots[0]} shots and {factors[1]:.2f} at {shots[1]}, and adds "
        f"{rises[0]:.1%} and {rises[1]:.1%} of the risk of predicting 0, which is {room[0]:.1f} "
        f"and {room[1]:.0f} times the risk unclipped: a factor has less room at few shots."
    )
