"""The change of the risk by the rate at which a part of a layer is clipped, and what is judged."""

import numpy as np

from experiments.clipping.clipping_curves import claims
from experiments.clipping.clipping_curves.curves import end_curves, layer_curves, shots_curves
from experiments.clipping.diverged_runs import left_out
from experiments.clipping.layer_ends import shades
from experiments.clipping.transformers import PARTS
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import CONFIDENCE, level

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
    apart = [10 ** samples[f"{part}_deep_bears_more"].mean() for part in ("attention", "mlp")]
    better, edits = int((claims.sides(change) < 0).sum()), change[0].size
    far = np.exp(np.log(dataset.unclipped / dataset.ridge).mean("run")).sel(shots=clipped.n)
    return (
        f"Drastic clipping of one of the last {config.ends} layers raises our models' risk by "
        f"{flat[0]:.0%} (attention) and {flat[1]:.0%} (MLP). Clipping one of the first "
        f"{config.ends} instead gives {apart[0]:.3g} times that risk (attention), or "
        f"{apart[1]:.3g} times (MLP). Drastic rates are {config.high:g} or more, few shots "
        f"{min(config.shots)}. Of {edits} edits and numbers of shots {better} lower the risk by a "
        f"{level()} interval; luck puts {(1 - CONFIDENCE) / 2 * edits:.0f} there. "
        f"{dataset.sizes['run']} runs ({left_out(dataset)} diverged) have "
        f"{float(far):.2g} times ridge's risk at {clipped.n} shots. "
    )
