"""Condition numbers and stable ranks by layer, what clipping does, and what disturbances do."""

import numpy as np

from experiments.clipping.condition_numbers import claims
from experiments.clipping.condition_numbers.claims import rank_correlation, tilt
from experiments.clipping.condition_numbers.config import KINDS, MODULES
from experiments.clipping.diverged_runs import left_out
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import mean_interval
from lsa_lab.store import parts, results

MEASURES = {"condition": "condition number", "stable_rank": "stable rank"}
# The judged rows, from the top.
RATIOS = ("deep_is_larger", "random_is_level", "last_is_largest")
RATIOS += ("training_tilts", "training_raises", "stable_rank_falls")
CORRELATIONS = ("condition_tells", "stable_rank_tells")
DISTURBED = ("input_spreads", "weights_spread", "clipping_removes", "size_explains")
FACTORS = (0.5, 0.7, 1, 1.4, 2, 2.8)


def plot(dataset):
    config, (statements, samples) = results.config_of(dataset), evidence(claims, dataset)
    figure, axes = style.stacked(6.75, (2.1, 2.6, 2.6), ((1.3, 1), (1, 1), (1, 1)))
    judged_panel.rows(axes[0], statements, samples, np.log10((0.45, 3)), RATIOS)
    axes[0].set_xticks(np.log10(FACTORS), [f"{factor:g}" for factor in FACTORS])
    axes[0].set(xlabel="ratio of condition numbers or stable ranks", title="mean over matrices")
    judged_panel.rows(axes[1], statements, samples, (-0.6, 0.6), CORRELATIONS)
    axes[1].set(xlabel="rank correlation", title="harm by clipping")
    for ax, (name, label) in zip(axes[2:4], MEASURES.items(), strict=True):
        plot_layers(ax, dataset, name, label)
    for ax, (name, label) in zip(axes[4:], MEASURES.items(), strict=True):
        plot_tolerance(ax, dataset, name, label, config)
    return figure


def appendix(dataset):
    return by_module(dataset), disturbances(dataset)


def by_module(dataset):
    """Deep over shallow, by module."""
    config = results.config_of(dataset)
    figure, (ax,) = style.figure(3.25, 2.4, first="g")
    runs = tilt(np.log10(dataset.condition), config.ends).transpose("run", "module", "steps")
    for i, (when, color) in enumerate((("before training", "grey"), ("after", style.BLACK))):
        middle = runs.isel(steps=-i).values
        y = np.arange(len(MODULES)) + 0.2 * i - 0.1
        bars = [mean_interval(column) for column in middle.T]
        ax.plot(np.transpose(bars), [y, y], color=color, lw=0.8)
        ax.plot(middle.mean(0), y, style.MARKERS[i], color=color)
        direct_label(ax, middle.mean(0)[0], y[0], when, color, (9, -3) if i else (0, 4))
    ax.axvline(0, color="grey", lw=0.8, ls="--")
    ax.set(yticks=range(len(MODULES)), yticklabels=list(MODULES))
    ax.set(ylim=(len(MODULES) - 0.5, -0.8), xlabel="log₁₀ condition number, deep less shallow")
    return figure


def disturbances(dataset):
    """What disturbed inputs and weights do to answers, and what clipping changes of it."""
    figure, axes = style.stacked(6.75, (2.6, 2.4), ((1, 1), (1, 1)), first="h")
    disturbed = parts.part(dataset, "disturbed")
    for ax, kind in zip(axes, KINDS, strict=False):
        plot_moves(ax, disturbed, kind)
    axes[0].legend(fontsize=7, ncols=2)
    plot_clipped(axes[2], disturbed)
    judged_panel.rows(axes[3], *evidence(claims, dataset), (-1, 1), DISTURBED)
    axes[3].set(title="what is judged", xlabel="correlation, or log₁₀ ratio")
    return figure


def plot_moves(ax, dataset, kind):
    """Every matrix of every run."""
    looks = zip(MODULES, style.COLOURS, style.MARKERS, strict=True)
    for module, color, marker in looks:
        own = dataset.sel(module=module)
        x, y = own.condition.values.ravel(), own.move.sel(kind=kind).values.ravel()
        ax.plot(x, y, marker, color=color, ms=2.5, mfc="none", mew=0.6, label=module)
    style.log_axes(ax, x=True, y=True)
    ax.set(xlabel="condition number", ylabel="move of answers, relative")
    ax.set_title(f"{kind} disturbed")


def plot_clipped(ax, dataset):
    """Clipped over whole by module, beside the ratio of |W|_F²."""
    ratio = claims.removed_share(dataset).mean("layer")
    share = np.log10(dataset["share"]).mean("layer")
    x = np.arange(len(MODULES))
    for values, words, color, aside in (
        (ratio, "disturbance", style.COLOURS[0], -0.1),
        (share, "|W|²", style.COLOURS[1], 0.1),
    ):
        rows = values.transpose("run", "module").values
        style.mean_points(ax, x + aside, rows, words, fmt="o", color=color, capsize=2)
    ax.axhline(0, color="grey", lw=0.8, ls="--")
    ax.set_xticks(x, list(MODULES), fontsize=7)
    ax.set(ylabel="log₁₀ clipped / whole", title="W clipped, input disturbed")
    ax.legend()


def module_looks():
    """A colour and a marker for each module."""
    return dict(zip(MODULES, zip(style.COLOURS, style.MARKERS, strict=True), strict=True))


def plot_layers(ax, dataset, name, label):
    """One measure of every matrix by its layer, after training and before."""
    layers, ends = dataset.layer.values, {}
    before = dataset[name].isel(steps=0).median("run")
    for i, (module, (color, marker)) in enumerate(module_looks().items()):
        x, values = layers + 0.07 * (i - (len(MODULES) - 1) / 2), dataset[name].sel(module=module)
        runs = values.isel(steps=-1).transpose("run", "layer")
        style.band(ax, x, runs, None, color, marker)
        style.line(ax, layers, before.sel(module=module), color="grey", style=":")
        ends[module] = float(runs.median("run")[-1])
    if name == "condition":
        style.log_axes(ax, y=True)
        ax.set_ylim(bottom=0.4 * ax.get_ylim()[0])
        direct_label(ax, layers[0], float(before[0].min()), "before training", "dimgrey", (1, -4))
    ax.set(xlabel="layer", xticks=layers, title=label)
    end_labels(ax, ends, [color for color, _ in module_looks().values()])


def plot_tolerance(ax, dataset, name, label, config):
    """The risk ratio of every matrix against a measure of it, medians over runs; the larger the
    marker, the deeper the layer."""
    sizes = np.linspace(3.5, 8, dataset.sizes["layer"])
    for module, (color, marker) in module_looks().items():
        middle = dataset.isel(steps=-1).sel(module=module).median("run")
        ax.plot(middle[name], middle.ratio, "-", color=color, lw=0.6, alpha=0.5)
        ax.plot([], [], marker, color=color, label=module)  # for a panel by itself
        for x, y, size in zip(middle[name].values, middle.ratio.values, sizes, strict=True):
            ax.plot(x, y, marker, color=color, ms=size, mec="white", mew=0.5)
    style.log_axes(ax, x=name == "condition", y=True)
    ticks = [tick for tick in (1, 1.5, 2, 5, 10, 20, 50) if tick <= 1.5 * ax.get_ylim()[1]]
    ax.set_yticks(ticks, [f"{tick}" for tick in ticks])
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    ax.set(xlabel=label, ylabel="risk clipped / unclipped")
    ax.set_title(f"harm by clipping {config.rate:g}")


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    larger, factor = samples["deep_is_larger"], 10 ** samples["deep_is_larger"].mean()
    low, high = (10**end for end in mean_interval(larger))
    harm = samples["condition_tells"].mean()
    depth = rank_correlation(dataset.layer.broadcast_like(dataset.ratio), dataset.ratio).mean()
    spread = samples["input_spreads"].mean()
    far = float(np.exp(np.log(dataset.unclipped / dataset.ridge).mean()))
    return (
        f"Deep layers have {factor:.2f} ({low:.2f} to {high:.2f}) times the condition number of "
        f"shallow layers. Condition number and harm by clipping have a rank correlation of "
        f"{harm:.2f}; depth alone has {depth:.2f}. Deep means the last {config.ends} layers. "
        "In e and f larger marks are deeper layers. "
        f"In h to k one matrix, or what it reads, is "
        f"disturbed by {config.disturbed.level:g} of its size, and moves of answers correlate with "
        f"condition numbers by {spread:.2f}. {dataset.sizes['run']} runs ({left_out(dataset)} "
        f"diverged) have {far:.2g} times ridge's risk. "
    )
