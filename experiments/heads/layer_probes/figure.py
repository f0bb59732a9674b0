"""What can be read after each layer, and what first layers hold."""

import numpy as np

from experiments.heads.layer_probes.claims import held_by_the_first, ridge_ratio
from experiments.heads.layer_probes.config import RULES
from experiments.heads.looks import levels
from experiments.heads.rule_names import RIDGE, SPARSE_BAYES, select_case
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.store import results

LINEAR = style.METHOD["linear"]
LOOKS = {"full": LINEAR, "single head": LINEAR | {"linestyle": ":", "mfc": "white"}}  # models


def plot(dataset):
    return style.panels(dataset, 2.8, readers, first_layers)


def readers(ax, dataset):
    """Risks of readers after each layer, and of the model's own read-out, over ridge's."""
    case = results.config_of(dataset).dissected[0]
    ridge, bayes = (float(dataset.known.sel(case=case, rule=rule)) for rule in RULES)
    for i, (model, look) in enumerate(LOOKS.items()):
        reader = select_case(dataset.reader.sel(model=model), case) / ridge
        own = select_case(dataset.own.sel(model=model), case).median("run")[1:] / ridge
        x, runs = reader.layer.values + 0.08 * (i - 0.5), reader.transpose("run", "layer")
        ax.plot(x, reader.median("run"), ls=look.get("linestyle", "-"), color=look["color"], lw=0.8)
        style.band(ax, x, runs, None, look["color"], look["marker"])
        ax.containers[-1][0].set(mfc=look.get("mfc", look["color"]))
        ax.plot(own.layer, own, "x", color=look["color"], ms=5, alpha=1 - 0.5 * i)
        place = (x[-2], float(reader.median("run")[-2]))
        direct_label(ax, *place, model, look["color"], (6, 4) if i else (-6, -4))
    levels(ax, {RIDGE: 1.0, SPARSE_BAYES: bayes / ridge})
    style.log_axes(ax, y=True)
    low, high = ax.get_ylim()
    ticks = [tick for tick in (0.3, 1, 3, 10) if low <= tick <= high]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set(ylabel="risk / ridge's", ylim=(low, high), title="The answer gets more readable")
    ax.set(xlabel="layer", xticks=reader.layer.values)


def first_layers(ax, dataset):
    """R² by the heads of each layer, a row for each, and where that of the full model is to be."""
    first, cases = dataset.sel(layer=1), results.config_of(dataset).dissected
    measured = first.held.sel(case=cases).notnull().any(["case", "run"])
    order = [str(name) for name in dataset.model.values if measured.sel(model=name)]
    order = ["full", *(name for name in order if name not in ("full", "random")), "random"]
    for i, case in enumerate(cases):
        rows = np.arange(len(order)) + 0.3 * (i - (len(cases) - 1) / 2)
        runs = select_case(first.held, case).reindex(model=order)
        low, middle, high = runs.quantile((0.1, 0.5, 0.9), "run").values
        color, fill = LINEAR["color"], "white" if i else LINEAR["color"]
        ax.hlines(rows, low, high, color=color, lw=1)
        ax.plot(middle, rows, LINEAR["marker"], color=color, mfc=fill, ms=4.5, label=case)
        ax.plot(first.share.sel(case=case, model=order[:-1]), rows[:-1], "|", color="k", ms=7)
    ax.set_yticks(range(len(order)), [_in_words(name) for name in order], fontsize=7)
    ax.legend(loc="lower right")
    ax.set(xlabel="R² of $r_j x_j$", xlim=(-0.05, 1.05), ylim=(len(order) - 0.5, -0.6))
    ax.set_title("First layers hold part of $r_j x_j$")


def _in_words(name: str) -> str:
    """The heads of each layer of a model: "4 1…" is "4, then 1"."""
    if not name.endswith("…"):
        return name
    *first, last = name[:-1].split()
    return f"{', '.join(first)}, then {last}" if first else f"{last} a layer"


def caption(dataset) -> str:
    config = results.config_of(dataset)
    first, last = (
        [np.exp(np.log(ridge_ratio(dataset, case, layer)).mean()) for case in config.panels]
        for layer in (1, -1)
    )
    shares = [held_by_the_first(dataset, case).mean() for case in config.dissected]
    return (
        "The answer becomes readable in the last layers: a linear probe of full models has at "
        f"least {min(first):.3g} times ridge's risk after layer 1, and at most {max(last):.3g} "
        f"after the last. The full model's layer 1 holds {min(shares):.0%} or more of the "
        "variance of r_j x_j, a covariate times its correlation with the labels. Crosses are the "
        "models' own answers. Rows name each layer's heads; strokes mark one coordinate a head. "
        f"{int(dataset.lost.sum())} trainings diverged."
    )
