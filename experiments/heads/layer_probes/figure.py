"""What can be read after each layer, and what descent makes of the first layer's tokens."""

import numpy as np

from experiments.heads.cases import of_case
from experiments.heads.layer_probes.claims import held_by_the_first, over_ridge, samples
from experiments.heads.layer_probes.config import FEATURES, RULES
from experiments.heads.layer_probes.statements import statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

LOOKS = {  # model: colour, marker
    "full": (style.BLACK, "o"),
    "single head": (style.COLOURS[0], "^"),
}
COLOURS = (style.BLACK, *(style.COLOURS[i] for i in (0, 3, 4, 2)))  # of FEATURES


JUDGED = {
    "steady": "reader, a layer / before",
    "not_yet": "layer 1 / ridge",
    "at_last": "last layer / ridge",
    "single": "single head / full",
    "descent_raw": "descent, layer 1 / raw",
    "descent_single": "  / single head's",
    "descent_formula": "  / r_j x_j",
    "descent_control": "labels shuffled / raw",
    "held": "R² of r_j x_j",
    "held_by_more": "  minus single head's",
}


def plot(dataset):
    config = results.config_of(dataset)
    dissected = config.dissected
    ends = dissected[0], dissected[-1]
    figure, axes = style.figure(10.5, 6.4, (2, 3))
    for ax, case in zip(axes[:2], ends, strict=True):
        readers(ax, dataset, case)
    for ax, case in zip(axes[3:5], ends, strict=True):
        descent(ax, dataset, case)
    first_layers(axes[2], dataset, dissected)
    style.log_axes(axes[5], x=True, ticks=(0.25, 0.5, 1, 2))
    judged_panel.rows(axes[5], statements(config), samples(dataset), JUDGED, (0.2, 3))
    axes[5].set(xlabel="ratio of risks, or R²")
    axes[5].set_title("judged, at the worst model")
    axes[0].legend(loc="upper right")
    axes[3].legend(loc="upper right")
    return figure


def rules(ax, dataset, case: str):
    for rule, dash in zip(RULES, ("--", ":"), strict=True):
        level = float(dataset.known.sel(case=case, rule=rule))
        ax.axhline(level, color=style.BLACK, lw=1.0, ls=dash, label=rule)


def by_layer(ax, values, model: str):  # [run, layer]
    """Points with bars, joined by a line, the models a little apart."""
    color, marker = LOOKS[model]
    x = values.layer.values + 0.08 * (list(LOOKS).index(model) - 1)
    ax.plot(x, values.median("run"), "-", color=color, lw=0.8)
    style.band(ax, x, values.transpose("run", "layer"), model, color, marker)
    ax.set(xlabel="layer", xticks=values.layer.values)


def readers(ax, dataset, case: str):
    for model, (color, marker) in LOOKS.items():
        by_layer(ax, of_case(dataset.reader.sel(model=model), case), model)
        own = of_case(dataset.own.sel(model=model), case).median("run")[1:]
        ax.plot(own.layer, own, marker, color=color, mfc="none", ms=6, lw=0)
    rules(ax, dataset, case)
    style.log_axes(ax, y=True)
    ax.set(ylabel="excess risk")
    ax.set_title(f"{case}, σ = {float(dataset.noise.sel(case=case)):g}")


def descent(ax, dataset, case: str):
    risks = of_case(dataset.descent, case).mean("half")
    steps = np.arange(1, risks.sizes["step"])
    for feature, color in zip(FEATURES, COLOURS, strict=True):
        runs = risks.sel(feature=feature).isel(step=steps).transpose("run", "step")
        style.band(ax, steps, runs, feature, color, None)
    rules(ax, dataset, case)
    style.log_axes(ax, x=True, y=True, ticks=[4**k for k in range(6) if 4**k <= steps[-1]])
    ax.set(xlabel="steps of descent", ylabel="excess risk", ylim=(None, 1.5))
    ax.set_title(f"descent on layer 1, {case}")


def first_layers(ax, dataset, cases: list[str]):
    first = dataset.sel(layer=1)
    measured = first.held.sel(case=cases).notnull().any(["case", "run"])
    order = [name for name in dataset.model.values if measured.sel(model=name)]
    order = [name for name in order if name not in ("full", "random")]
    order += ["full", "random"]
    places = np.arange(len(order))
    for i, case in enumerate(cases):
        color, x = style.COLOURS[i], places + 0.2 * (i - (len(cases) - 1) / 2)
        runs = of_case(first.held, case).reindex(model=order).transpose("run", "model")
        style.band(ax, x, runs, case, color, style.MARKERS[i])
        ax.plot(x, first.control.sel(case=case, model=order).mean("run"), "x", color=color, ms=4)
        share = first.share.sel(case=case, model=order[:-1])
        ax.plot(places[:-1], share, "_", color=style.BLACK, ms=14, mew=0.8)
    ax.set_xticks(places, order, rotation=35, ha="right")
    ax.set(ylabel="R² of r_j x_j", ylim=(-0.05, 1.05))
    ax.set_title("what layer 1 holds")
    ax.legend(loc="center right")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    first, last = (
        [np.exp(np.log(over_ridge(dataset, case, layer)).mean()) for case in config.panels]
        for layer in (1, -1)
    )
    shares = [held_by_the_first(dataset, case)[0].mean() for case in config.dissected]
    return (
        f"In the last ones: from {min(first):.2g} times ridge's risk or more after layer 1 to "
        f"{max(last):.2g} or less; layer 1 holds {min(shares):.0%} to {max(shares):.0%} of the "
        "variance of r_j x_j. "
        "a, b: excess risk of the best linear reader of the query's token after each layer "
        f"(filled) and of the model's own read-out (hollow), n = {config.n}. c: by the heads of "
        "each layer; dashes: one of the d coordinates for each head of layer 1; crosses: r_j x_j "
        "of other prompts; random: untrained weights. d, e: descent inside each prompt on tokens "
        "without the label slot, each asked as a query, made white over prompts: else descent "
        "would depend on the basis of the stream. "
        f"f: {judged_panel.KEY}; over {', '.join(config.panels)} (descent and R²: "
        f"{', '.join(config.dissected)}). Elsewhere medians of seeds and the middle 80 % of them; "
        f"trainings that have not finished are left out: {int(dataset.lost.sum())}. Our setting, "
        "modelled on A4 (2408.04532)."
    )
