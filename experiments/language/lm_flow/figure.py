"""What depth does to two flows in a language model, and what a single demonstration is worth."""

import numpy as np

from experiments.language.lm_flow import claims
from experiments.language.lm_flow.config import MODES, READS, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, marks, style

LINES = {  # flows: name, colour, marker, fill
    "alone": ("alone", style.COLOURS[0], "o", None),
    "shared": ("one prompt", style.COLOURS[1], "s", None),
    "untrained": ("untrained", style.BLACK, "^", "white"),
}
TITLES = {"margin": "flow of the label margin", "row": "flow of the query's row"}
UNEQUAL = {  # the rows of what gets more unequal, and their names
    "alone_{}_disparity": "{}, alone",
    "shared_{}_disparity": "{}, one prompt",
    "{}_per_token": "{}, per token",
    "{}_untrained": "{}, untrained",
    "{}_gini": "{}, Gini",
    "{}_gini_untrained": "{}, Gini, untrained",
}
LEADS = {
    "alone_margin_lead": "margin, alone",
    "shared_margin_lead": "margin, one prompt",
    "alone_row_lead": "row, alone",
    "shared_row_lead": "row, one prompt",
    "order": "share of pairs\nthat turn",
    "recency": "last place\nover first",
}
WORTH = {
    "relevance": "similarity",
    "relevance_within": "the same,\nlabels apart",
    "novelty": "loss of its label",
    "novelty_within": "the same,\nlabels apart",
    "both": "both",
    "both_within": "both,\nlabels apart",
}
TICKS = (0.25, 0.5, 1, 2, 4, 8)
CLASSES = ("low", "middle", "high")  # thirds of a run's demonstrations and queries


def plot(dataset):
    config, numbers = results.config_of(dataset), claims.samples(dataset)
    name, rows = config.tasks[0][0], statements(config)
    first = dataset.sel(task=name)
    figure, axes = style.stacked(6.75, (2.5, 2.4, 2.4), ((1, 1), (1, 1), (1, 1)))
    _draw_layers(axes[:2], first, config)
    axes[0].set_ylabel("|log ratio| / that of layer 1")
    unequal = {id.format(r): text.format(r) for r in READS for id, text in UNEQUAL.items()}
    style.log_axes(axes[2], x=True, ticks=TICKS)
    _draw_rows(axes[2], rows, numbers, name, unequal, (0.2, 10))
    axes[2].set(title="more unequal?", xlabel="last layer / first")
    _draw_rows(axes[3], rows, numbers, name, LEADS, (-1, 1))
    axes[3].set(title="does the lead grow?", xlabel="log ratio, last less first, or as named")
    _draw_worth(axes[4], first)
    _draw_rows(axes[5], rows, numbers, name, WORTH, (-0.4, 0.6))
    axes[5].set(title="what predicts worth", xlabel="rank correlation")
    return figure


def caption(dataset) -> str:
    config, numbers = results.config_of(dataset), claims.samples(dataset)
    name, task = config.tasks[0]

    def span(*ids):
        means = [numbers[f"{name}_{id}"] for id in ids]
        disparity = ids[0].endswith(("disparity", "untrained"))
        means = [np.exp(np.log(x).mean()) if disparity else x.mean() for x in means]
        low, high = (f"{end:.2f}" for end in (min(means), max(means)))
        return f"{low} to {high}".replace("-", "\u2212")

    alone, shared = (span(*(f"{mode}_{read}_disparity" for read in READS)) for mode in MODES)
    lead = span(*(f"{mode}_{read}_lead" for mode in MODES for read in READS))
    untrained = span(*(f"{read}_untrained" for read in READS))
    logs = claims.flows(dataset.sel(task=name), "shared", "margin")
    ends = np.abs(claims.ratios(logs)).mean((0, 1, 2))
    return (
        f"Depth multiplies the log ratio of two flows in {config.model_name} by {alone} alone, and "
        f"by {shared} in one prompt (there untrained {untrained}). The lead of the one ahead after "
        f"layer 1 changes by {lead}. "
        f"On {task.title}. a, b: mean |log ratio| of two demonstrations' flows, geometric means "
        "over runs, 95 % intervals; grey: no change; in one prompt each stands once at every "
        "place, and log flows are averaged; untrained: the same prompts, random weights. Of "
        f"margins in one prompt it is {ends[0]:.2f} after layer 1 and {ends[-1]:.2f} after "
        f"{config.layers[-1]}. c, d, f: {judged_panel.KEY}; d: on top the larger flow of layer 1 "
        "to another query. e: what a single demonstration adds to the log-probability of the "
        "query's label, by thirds of its similarity to the query (rows of layer "
        f"{config.middle}) and of the loss of its own label; with the query's label it adds "
        f"{numbers[f'{name}_label'].mean():.2f} more than without. {config.runs} runs of "
        f"{config.shots} demonstrations and {config.queries} queries ({config.pool} and "
        f"{config.fresh} in e, f)."
    )


def _draw_layers(axes, dataset, config):
    """Geometric means over runs, as they are judged, and their intervals."""
    layers, ends, named = dataset.layer.values, [0.5, 2.0], []
    for ax, read in zip(axes, READS, strict=True):
        middles = {}
        for i, (mode, (text, color, marker, fill)) in enumerate(LINES.items()):
            x = layers + 0.35 * (i - 1) * (layers > layers[0])
            look = {"color": color, "marker": marker, "mfc": fill or color, "ms": 4, "lw": 0.8}
            runs = claims.disparities(claims.flows(dataset, mode, read))
            points = style.ratio_points(ax, x, runs, capsize=1.5, elinewidth=0.8, **look)
            middles[text] = points[0, -1]
            ends += points[1:].ravel().tolist()
        ax.axhspan(1 / config.factor, config.factor, color="grey", alpha=0.2, lw=0)
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


def _draw_rows(ax, rows, numbers, name, labels, span):
    labels = {f"{name}_{id}": text for id, text in labels.items()}
    judged_panel.rows(ax, rows, numbers, labels, span)


def _draw_worth(ax, dataset):
    """Means over runs of what one is worth, in thirds of similarity and of loss within each run."""
    worth = dataset.worth.transpose("run", "single", "fresh").values
    thirds = [_thirds(values) for values in list(claims.factors(dataset).values())[:2]]
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
