"""What depth does to two flows in a language model, and what a single demonstration is worth."""

import numpy as np

from experiments.language.data_sets import cell_ids
from experiments.language.lm_flow import claims, flow_sizes
from experiments.language.lm_flow.config import MODES, READS
from lsa_lab.harness.draw import judged_panel, marks, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

LINES = {  # flows: name, colour, marker, fill
    "alone": ("alone", style.COLOURS[0], "o", None),
    "shared": ("one prompt", style.COLOURS[1], "s", None),
    "untrained": ("untrained", style.BLACK, "^", "white"),
}
TITLES = {"margin": "flow of the label margin", "row": "flow of the query's row"}
UNEQUAL = ("disparity", "untrained", "gini", "gini_untrained")
LEADS = ("lead margin", "lead row", "order", "recency")
TICKS = (0.25, 0.5, 1, 2, 4, 8)
CLASSES = ("low", "middle", "high")  # thirds of a run's demonstrations and queries


def plot(dataset):
    config, judged = results.config_of(dataset), evidence(claims, dataset)
    name = config.tasks[0][0]
    first = dataset.sel(task=name)
    figure, axes = style.stacked(6.75, (2.5, 2.4, 2.4), ((1, 1), (1, 1), (1, 1)))
    _draw_layers(axes[:2], first)
    axes[0].set_ylabel("|log ratio| / that of layer 1")
    style.log_axes(axes[2], x=True, ticks=TICKS)
    unequal = [f"{family} {read}" for read in READS for family in UNEQUAL]
    _draw_rows(axes[2], judged, name, unequal, (0.2, 10))
    axes[2].set(title="more unequal?", xlabel="last layer / first")
    _draw_rows(axes[3], judged, name, LEADS, (-1, 1))
    axes[3].set(title="does the lead grow?", xlabel="log ratio, last less first, or as named")
    _draw_worth(axes[4], first)
    _draw_rows(axes[5], judged, name, ("worth",), (-0.4, 0.6))
    axes[5].set(title="what predicts worth", xlabel="rank correlation")
    return figure


def caption(dataset) -> str:
    config, (statements, samples) = results.config_of(dataset), evidence(claims, dataset)
    name, task = config.tasks[0]

    def span(place, mean=np.mean):
        means = [mean(samples[id]) for id in cell_ids(statements, name, [place])]
        low, high = (f"{end:.2f}" for end in (min(means), max(means)))
        return f"{low} to {high}".replace("-", "\u2212")

    alone, shared = (span(f"disparity {mode}", _geometric) for mode in MODES)
    lead, untrained = span("lead"), span("untrained", _geometric)
    first = dataset.sel(task=name)
    ends = np.abs(flow_sizes.ratios(flow_sizes.flows(first, "shared", "margin"))).mean((0, 1, 2))
    return (
        f"Depth multiplies the log ratio of two flows in {config.model_name} by {alone} alone, and "
        f"by {shared} in one prompt (there untrained {untrained}). The lead of the one ahead after "
        f"layer 1 changes by {lead}. "
        f"On {task.title}. a, b: mean |log ratio| of two demonstrations' flows, geometric means "
        f"over runs, {level()} intervals; grey: no change; in one prompt each stands once at every "
        "place, and log flows are averaged; untrained: the same prompts, random weights. Of "
        f"margins in one prompt it is {ends[0]:.2f} after layer 1 and {ends[-1]:.2f} after "
        f"{config.layers[-1]}. c, d, f: {judged_panel.KEY}; d: on top the larger flow of layer 1 "
        "to another query. e: what a single demonstration adds to the log-probability of the "
        "query's label, by thirds of its similarity to the query (rows of layer "
        f"{config.middle}) and of the loss of its own label; with the query's label it adds "
        f"{flow_sizes.label_effect(first).mean():.2f} more than without. {config.runs} runs of "
        f"{config.shots} demonstrations and {config.queries} queries ({config.pool} and "
        f"{config.fresh} in e, f)."
    )


def _geometric(runs):
    return np.exp(np.log(runs).mean())


def _draw_layers(axes, dataset):
    """Geometric means over runs, as they are judged, and their intervals."""
    layers, ends, named = dataset.layer.values, [0.5, 2.0], []
    for ax, read in zip(axes, READS, strict=True):
        middles = {}
        for i, (mode, (text, color, marker, fill)) in enumerate(LINES.items()):
            x = layers + 0.35 * (i - 1) * (layers > layers[0])
            look = {"color": color, "marker": marker, "mfc": fill or color, "ms": 4, "lw": 0.8}
            runs = flow_sizes.disparities(flow_sizes.flows(dataset, mode, read))
            points = style.ratio_points(ax, x, runs, capsize=1.5, elinewidth=0.8, **look)
            middles[text] = points[0, -1]
            ends += points[1:].ravel().tolist()
        ax.axhspan(1 / claims.FACTOR, claims.FACTOR, color="grey", alpha=0.2, lw=0)
        style.log_axes(ax, y=True)
        ax.set(xlabel="layers", title=TITLES[read], xticks=layers)
        ax.set_xlim(layers[0] - 0.8, layers[-1] + 0.8)
        named.append(middles)
    limits = max(0.9 * min(ends), 0.1), min(1.1 * max(ends), 30)
    ticks = [tick for tick in TICKS if limits[0] <= tick <= limits[1]]
    for ax, middles in zip(axes, named, strict=True):
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.set_ylim(limits)
        marks.end_labels(ax, middles, [color for _, color, *_ in LINES.values()])


def _draw_rows(ax, judged, name, places, span):
    statements, samples = judged
    judged_panel.rows(ax, statements, samples, span, cell_ids(statements, name, places))


def _draw_worth(ax, dataset):
    """Means over runs of what one is worth, in thirds of similarity and of loss within each run."""
    worth = flow_sizes.worths(dataset)
    thirds = [_thirds(values) for values in list(flow_sizes.factors(dataset).values())[:2]]
    cells = np.array(
        [
            [worth[(thirds[0] == i) & (thirds[1] == j)].mean() for i in range(len(CLASSES))]
            for j in range(len(CLASSES))
        ]
    )
    limit = max(0.05, np.abs(cells).max())
    ax.imshow(cells, cmap="RdBu", vmin=-limit, vmax=limit, origin="lower", aspect="auto")
    for (j, i), value in np.ndenumerate(cells):
        shade = "white" if abs(value) > 0.6 * limit else style.BLACK
        text = f"{value:+.2f}".replace("-", "\u2212")
        ax.text(i, j, text, ha="center", va="center", color=shade, fontsize=8)
    ax.set_xticks(range(len(CLASSES)), CLASSES)
    ax.set_yticks(range(len(CLASSES)), CLASSES)
    ax.set(xlabel="similarity to the query", ylabel="loss of its own label")
    ax.set_title("nats that one is worth")


def _thirds(values):  # [R, ...] -> 0, 1, 2
    flat = values.reshape(len(values), -1)
    ranks = flat.argsort(1).argsort(1)
    return (len(CLASSES) * ranks // flat.shape[1]).reshape(values.shape)
