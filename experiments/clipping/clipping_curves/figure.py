"""The change of the risk by the rate at which a part of a layer is clipped, and what is judged."""

import numpy as np

from experiments.clipping.clipping_curves import claims
from experiments.clipping.clipping_curves.config import DROPPED
from experiments.clipping.clipping_curves.curves import end_curves, layer_curves, shots_curves
from experiments.clipping.diverged_runs import left_out
from experiments.clipping.layer_ends import shades, shallow_and_deep
from experiments.clipping.transformers import PARTS
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import CONFIDENCE, level, mean_interval

# The judged rows, from the top: changes as shares of the risk, and ratios.
SHARES = (
    *("attention_deep_is_flat", "mlp_deep_is_flat"),
    *("attention_shallow_collapses", "mlp_shallow_collapses"),
    *("attention_few_shots_rise_less", "mlp_few_shots_rise_less"),
    *("helps_few", "helps_trained", "helps_many"),
)
RATIOS = (
    *("attention_deep_bears_more", "mlp_deep_bears_more"),
    *("attention_few_shots_collapse_less", "mlp_few_shots_collapse_less"),
)


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.4, 2.6, 2.3), ((1, 1), (1, 1), (1, 1)))
    plot_judged(axes[0], axes[1], dataset)
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


def plot_judged(shares_ax, ratios_ax, dataset):
    """What is judged: changes of the risk, and ratios."""
    statements, samples = evidence(claims, dataset)
    shares_ax.set_xscale("symlog", linthresh=0.01)
    judged_panel.rows(shares_ax, statements, samples, (-0.15, 15), SHARES)
    ticks = (-0.1, 0, 0.1, 1, 10)
    shares_ax.set_xticks(ticks, [f"{tick:g}".replace("-", "\u2212") for tick in ticks])
    shares_ax.set(xlabel="change as a share of the risk", title="judged changes")
    judged_panel.rows(ratios_ax, statements, samples, np.log10((0.15, 60)), RATIOS)
    ticks = (0.2, 1, 5, 20)
    ratios_ax.set_xticks(np.log10(ticks), [f"{tick:g}" for tick in ticks])
    ratios_ax.set(xlabel="ratio of risks or of factors", title="judged ratios")


def caption(dataset) -> str:
    clipped, (_, samples) = claims.numbers(dataset), evidence(claims, dataset)
    config, change = clipped.config, clipped.change
    flat = [samples[id].mean() for id in ("attention_deep_is_flat", "mlp_deep_is_flat")]
    apart = [
        "{:.2f} [{:.2f}, {:.2f}]".format(*10 ** np.array([logs.mean(), *mean_interval(logs)]))
        for logs in (samples["attention_deep_bears_more"], samples["mlp_deep_bears_more"])
    ]
    side, tail, edits = claims.sides(change), (1 - CONFIDENCE) / 2, change[0, 0].size
    shots = dataset.shots.values
    better = ", ".join(f"{int((side.sel(shots=s) < 0).sum())} at {s}" for s in shots)
    far = np.exp(np.log(dataset.unclipped / dataset.ridge).mean("run"))
    ratios = ", ".join(f"{float(ratio):.2g} at {s}" for s, ratio in zip(shots, far, strict=True))
    return (
        f"Drastic clipping of the last {config.ends} layers raises our models' risk by "
        f"{flat[0]:.0%} (attention) and {flat[1]:.0%} (MLP); with the first {config.ends} it is "
        f"{apart[0]} and {apart[1]} times as high. "
        f"Drastic: rates >= {config.high:g}, averaged. a, b: {judged_panel.KEY}; few: "
        f"{min(config.shots)} shots. c, d: means; e, f: geometric means; bands: {level()} "
        f"intervals. Appendix: g, h: by rate at each number of shots. "
        f"{by_rate(dataset, clipped)} {two_readings(dataset, clipped)} Our models' risk, "
        f"unclipped, is that of ridge regression times {ratios} shots; they were trained at "
        f"{clipped.n} alone. Of {edits} edits the interval of a change lies "
        f"below zero for {better} shots; luck alone puts {tail * edits:.0f} there. "
        f"{dataset.sizes['run']} runs ({left_out(dataset)} diverged and left out), each with "
        f"{config.prompts} prompts of its own; d = {clipped.spec.task.d}."
    )


def by_rate(dataset, clipped):
    """How shallow and deep layers compare at each drastic rate, a layer's part dropped the last."""
    logs = clipped.logs.sel(shots=clipped.n, rate=slice(clipped.config.high, None))
    listed = []
    for part in PARTS:
        shallow, deep = shallow_and_deep(logs.sel(part=part), clipped.config.ends)
        ratios = 10 ** (shallow - deep).mean("run")
        names = ["dropped" if rate == DROPPED else f"{rate:g}" for rate in ratios.rate.values]
        by_name = zip(names, ratios.values, strict=True)
        listed.append(f"{part}, {', '.join(f'{ratio:.3g} ({name})' for name, ratio in by_name)}")
    return f"Shallow over deep by rate: {'; '.join(listed)}."


def two_readings(dataset, clipped):
    """What fewer shots do to the collapse, as a factor and as a share of the risk of a guess."""
    shots = [clipped.shots["few"], clipped.n]
    factors, rises = (
        clipped.ends(values, part="attention")[0].mean("run")
        for values in (clipped.logs, clipped.rises)
    )
    room = clipped.spec.task.d / dataset.unclipped.mean("run")
    factors, rises, room = (each.sel(shots=shots).values for each in (10**factors, rises, room))
    return (
        f"Few shots, two readings: clipping shallow attention multiplies the risk by "
        f"{factors[0]:.2f} at {shots[0]} shots and {factors[1]:.2f} at {shots[1]}, and adds "
        f"{rises[0]:.1%} and {rises[1]:.1%} of the risk of predicting 0, which is {room[0]:.1f} "
        f"and {room[1]:.0f} times the risk unclipped: a factor has less room at few shots."
    )
