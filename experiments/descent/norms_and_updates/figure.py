"""Risks along the training, sizes by layer, writes shrunk on noisier labels; sizes by shots, what
clipping changes of them; what is judged."""

import numpy as np

from experiments.descent.norms_and_updates import claims
from experiments.descent.norms_and_updates.claims import ratio_to_ridge, shrunk_ratios
from experiments.descent.norms_and_updates.config import NORMS
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.store import parts, results

LOOKS = dict(zip(NORMS, ((style.BLACK, "s"), (style.COLOURS[0], "o")), strict=True))
BARS = {"ms": 4, "lw": 0.8, "elinewidth": 0.8, "capsize": 1.5}
CEILING = 1.04  # of c, above which answers shrunk too far would hide the rest
COLOURS = [style.METHOD[name]["color"] for name in ("linear", "softmax", "descent", "GD++")]
KINDS = {  # the sizes of softmax attention in a panel
    ("sizes", "softmax attention"): {"paper": "Z |ΔW|", "update": "|ΔW|", "written": "|ΔW φ|"},
    ("changes", "W_V clipped, softmax"): {"change": "change", "relative change": "relative"},
}
RATIOS = ("helps", "smaller_updates", "smaller_writes")
RATIOS += ("shrinking_helps_noisy", "shrinking_beats_answers")


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.4, 2.4), ((1, 1), (1, 1)))
    training_curves(axes[0], dataset)
    layer_points(axes[1], dataset)
    shrinkage_curves(axes[2], dataset)
    judged_panel.rows(axes[3], *evidence(claims, dataset), (0.4, 1.5), RATIOS)
    axes[3].set(title="what is judged", xlabel="with norms / without, or shrunk / not")
    return figure


def appendix(dataset):
    figure, axes = style.stacked(6.75, (2.3, 2.3), ((1, 1), (1, 1)), first="e")
    shots = parts.part(dataset, "by_shots")
    layers = {f"layer {i}": shots.linear.sel(linear_layer=i) for i in shots.linear_layer.values}
    size_curves(axes[0], layers, "|G_t|", "linear stack, by layer")
    logs = np.log(shots["size"]).mean("layer")
    for ax, (texts, kinds) in zip(axes[1:], KINDS.items(), strict=False):
        sizes = {words: np.exp(logs.sel(kind=kind)) for kind, words in kinds.items()}
        size_curves(ax, sizes, *texts)
    statements, samples = evidence(claims, dataset)
    slopes = [id for id in samples if id not in RATIOS]
    judged_panel.rows(axes[3], statements, samples, (-1, 1.5), slopes)
    axes[3].set(title="what is judged", xlabel="d log size / d log n")
    return figure


def training_curves(ax, dataset):
    for norm, (color, marker) in LOOKS.items():
        ratio = ratio_to_ridge(dataset).sel(norm=norm).isel(step=slice(1, None))
        runs = ratio.transpose("run", "step").values
        thousands = ratio.step.values / 1000
        look = {"color": color, "marker": marker, "label": f"{norm} norms", **BARS}
        style.ratio_points(ax, thousands, runs, **look)
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="thousands of steps", ylabel="excess risk / ridge's", title="risk")
    ax.legend()


def layer_points(ax, dataset):
    layers = dataset.layer.values
    for i, (norm, (color, marker)) in enumerate(LOOKS.items()):
        for name, face in (("update", color), ("written", "white")):
            runs = dataset[name].sel(norm=norm).transpose("run", "layer").values
            look = {"color": color, "marker": marker, "mfc": face, **BARS, "ls": "none"}
            style.ratio_points(ax, layers + 0.16 * (i - 0.5), runs, **look)
    style.log_axes(ax, y=True)
    ax.set_xticks(layers)
    ax.set(xlabel="layer", ylabel="|ΔW| / |h|; open: |ΔW φ| / |h|", title="sizes of updates")


def shrinkage_curves(ax, dataset):
    factors = dataset.shrinkage.values[1:]
    for norm, (color, marker) in LOOKS.items():
        for what, face in (("shrunk", color), ("answers", "white")):
            look = {"color": color, "marker": marker, "mfc": face, **BARS}
            style.ratio_points(ax, factors, shrunk_ratios(dataset, norm, what), **look)
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="all writes (open: answers alone), times", ylabel="risk / that unshrunk")
    ax.set_ylim(top=CEILING)
    ax.set_title(f"shrunk, on {results.config_of(dataset).noisier:g} times the noise")


def size_curves(ax, sizes, ylabel, title):  # {words: (runs, factor)}
    """Sizes by the number of shots, over those at the shots of training."""
    from matplotlib.ticker import NullLocator

    ends = {}
    for (words, values), color, marker in zip(sizes.items(), COLOURS, "osD^", strict=False):
        own = (values / values.sel(factor=1.0)).transpose(..., "factor")
        style.mean_points(ax, own.factor, own, color=color, marker=marker, lw=0.8, capsize=2)
        ends[words] = float(own[:, -1].mean())
    style.log_axes(ax, x=True, y=True, ticks=own.factor.values)
    low, high = ax.get_ylim()
    ticks = [tick for tick in (0.25, 0.5, 0.7, 1, 1.5, 2, 4) if low <= tick <= high]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set(
        xlabel="shots / shots in training", ylabel=f"{ylabel} over that in training", title=title
    )
    end_labels(ax, ends, COLOURS[: len(ends)])


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    ratios = {id: float(np.exp(np.log(samples[id]).mean())) for id in RATIOS}
    linear, softmax = (samples[f"{stack}_grows"].mean() for stack in ("linear", "softmax"))
    ends = np.exp(np.log(ratio_to_ridge(dataset).isel(step=-1)).mean("run"))
    risk = np.log(parts.part(dataset, "by_shots").risk).mean("run")
    near = float(np.exp(risk.sel(rule="model") - risk.sel(rule="ridge")))
    return (
        f"A norm before each layer multiplies the excess risk by {ratios['helps']:.2f}, and "
        f"updates, beside their tokens, by {ratios['smaller_updates']:.2g}. On labels "
        f"{config.noisier:g} times as noisy, shrinking all writes of models without norms "
        f"multiplies the risk by {ratios['shrinking_helps_noisy']:.2f}. Risks end at "
        f"{float(ends.sel(norm='without')):.3g} times ridge's without norms and at "
        f"{float(ends.sel(norm='with')):.3g} with. Appendix: with n "
        f"demonstrations updates change as n^{linear:.2g} (linear) and n^{softmax:.2g} (softmax, "
        f"with {near:.3g} times ridge's risk). W_V is clipped at {config.by_shots.rate:g} in g."
    )
