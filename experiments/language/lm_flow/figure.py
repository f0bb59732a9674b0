"""What depth does to two flows in a language model, and what a single demonstration is worth."""

import numpy as np

from experiments.language.lm_flow import claims
from experiments.language.lm_flow.config import MODES, READS, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.harness.marks import direct_label
from lsa_lab.statistics import median_interval

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
    "{}_gini": "{}, Gini",
    "{}_untrained": "{}, untrained",
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
    for ax, read in zip(axes[:2], READS, strict=True):
        _draw_layers(ax, first, read, config)
    axes[0].set_ylabel("|log ratio| / that of layer 1")
    unequal = {id.format(r): text.format(r) for r in READS for id, text in UNEQUAL.items()}
    style.log_axes(axes[2], x=True, ticks=TICKS)
    _draw_rows(axes[2], rows, numbers, name, unequal, (0.2, 10))
    axes[2].set(title="more unequal?", xlabel="last layer / first")
    _draw_rows(axes[3], rows, numbers, name, LEADS, (-1, 2))
    axes[3].set(title="does the lead grow?", xlabel="log ratio, last less first, or as named")
    _draw_worth(axes[4], first)
    _draw_rows(axes[5], rows, numbers, name, WORTH, (-0.4, 0.6))
    axes[5].set(title="what predicts worth", xlabel="rank correlation")
    return figure


def caption(dataset) -> str:
    config, numbers = results.config_of(dataset), claims.samples(dataset)
    name, task = config.tasks[0]
    middle = {id: np.exp(np.log(numbers[f"{name}_{id}"]).mean()) for id in _disparity_ids()}
    alone, shared = ([middle[f"{mode}_{read}_disparity"] for read in READS] for mode in MODES)
    label = numbers[f"{name}_label"].mean()
    logs = claims.flows(dataset.sel(task=name), "shared", "margin")
    first = np.abs(claims.ratios(logs)[..., 0]).mean()
    return (
        f"In {config.model_name}, {config.layers[-1]} layers multiply the log ratio of two flows "
        f"by {alone[0]:.1f} (label margin) and {alone[1]:.1f} (row) alone, {shared[0]:.1f} and "
        f"{shared[1]:.1f} in one prompt. "
        f"On {task.title}. a, b: mean |log ratio| of two demonstrations' flows, medians over runs "
        f"and 95 % intervals; grey: no change; in one prompt each stands once at every place, and "
        f"log flows are averaged; untrained: the same prompts, random weights. The mean |log "
        f"ratio| after layer 1 is {first:.2f} (margin, one prompt). c, d, f: {judged_panel.KEY}; "
        "d: on top the larger flow of layer 1 to another query. e: what a single demonstration "
        "adds to the log-probability of the query's label, in nats, by thirds of its similarity "
        f"to the query (rows of layer {config.middle}) and of the loss of its own label; one with "
        f"the query's label adds {label:.2f} more than another. {config.runs} runs of "
        f"{config.shots} demonstrations and {config.queries} queries, {config.pool} and "
        f"{config.fresh} in e, f."
    )


def _disparity_ids():
    return [f"{mode}_{read}_disparity" for mode in MODES for read in READS]


def _draw_layers(ax, dataset, read, config):
    layers = dataset.layer.values
    for i, (mode, (text, color, marker, fill)) in enumerate(LINES.items()):
        change = claims.disparities(claims.flows(dataset, mode, read))
        x = layers + 0.35 * (i - 1) * (layers > layers[0])
        look = {"color": color, "marker": marker, "mfc": fill or color, "ms": 4, "lw": 0.8}
        style.median_points(ax, x, change, capsize=1.5, elinewidth=0.8, **look)
        direct_label(ax, layers[-1], np.median(change[:, -1]), text, color, (8, 0))
    ax.axhspan(1 / config.factor, config.factor, color="grey", alpha=0.2, lw=0)
    style.log_axes(ax, y=True)
    ends = [
        median_interval(claims.disparities(claims.flows(dataset, mode, r))[:, layer])
        for mode in LINES
        for r in READS
        for layer in range(len(layers))
    ]
    ends = np.array([end for end in ends if np.isfinite(end).all()] or [(0.5, 2)])
    low, high = min(0.45, 0.9 * ends.min()), max(2.2, 1.1 * ends.max())
    ticks = [tick for tick in TICKS if low <= tick <= high]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    room = 0.35 * (layers[-1] - layers[0])
    ax.set(xlim=(layers[0] - 0.8, layers[-1] + room), ylim=(low, high), xticks=layers)
    ax.set(xlabel="layers", title=TITLES[read])


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
