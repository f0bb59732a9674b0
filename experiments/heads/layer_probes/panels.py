"""The panels of ``layer_probes``."""

import numpy as np

from experiments.heads.layer_probes.first_layer_descent import FEATURES
from experiments.heads.layer_probes.probing import RULES
from lsa_lab.harness import style

LOOKS = {  # of a model: colour, marker
    "full": (style.BLACK, "o"),
    "pruned": (style.COLOURS[1], "s"),
    "single head": (style.COLOURS[0], "^"),
}
COLOURS = dict(
    zip(FEATURES, (style.BLACK, *(style.COLOURS[i] for i in (0, 4, 2, 3, 5))), strict=True)
)


def there(found, case: str):
    """For one case, without the runs, layers, ... that only others have."""
    found = found.sel(case=case)
    for axis in {"run", "layer", "model"} & set(found.dims):
        found = found.dropna(axis, how="all")
    return found


def rules(ax, dataset, case: str):
    for rule, dash in zip(RULES, ("--", ":"), strict=True):
        level = float(dataset.known.sel(case=case, rule=rule))
        ax.axhline(level, color=style.BLACK, lw=1.0, ls=dash, label=rule)


def by_layer(ax, found, model: str):  # [run, layer]
    """Points with bars, joined by a line, the models a little apart."""
    color, marker = LOOKS[model]
    x = found.layer.values + 0.08 * (list(LOOKS).index(model) - 1)
    ax.plot(x, found.median("run"), "-", color=color, lw=0.8)
    style.band(ax, x, found.transpose("run", "layer"), model, color, marker)
    ax.set(xlabel="layer", xticks=found.layer.values)


def readers(ax, dataset, case: str):
    for model, (color, marker) in LOOKS.items():
        by_layer(ax, there(dataset.reader.sel(model=model), case), model)
        own = there(dataset.own.sel(model=model), case).median("run")[1:]
        ax.plot(own.layer, own, marker, color=color, mfc="none", ms=6, lw=0)
    rules(ax, dataset, case)
    style.log_axes(ax, y=True)
    ax.set(ylabel="excess risk")
    ax.set_title(f"{case}, σ = {float(dataset.noise.sel(case=case)):g}")


def descent(ax, dataset, case: str):
    found = there(dataset.descent, case).mean("half")
    steps = np.arange(1, found.sizes["step"])
    for feature, color in COLOURS.items():
        runs = found.sel(feature=feature).isel(step=steps).transpose("run", "step")
        style.band(ax, steps, runs, feature, color, None)
    rules(ax, dataset, case)
    style.log_axes(ax, x=True, y=True, ticks=[4**k for k in range(6) if 4**k <= steps[-1]])
    ax.set(xlabel="steps of descent", ylabel="excess risk", ylim=(None, 4))
    ax.set_title(f"descent on layer 1, {case}")


def first_layers(ax, dataset, cases: list[str]):
    first = dataset.sel(layer=1)
    known = first.held.sel(case=cases).notnull().any(["case", "run"])
    order = [name for name in dataset.model.values if known.sel(model=name)]
    order = [name for name in order if name not in ("full", "pruned", "random")]
    order += ["full", "random"]
    places = np.arange(len(order))
    for i, case in enumerate(cases):
        x = places + 0.2 * (i - (len(cases) - 1) / 2)
        runs = there(first.held, case).reindex(model=order).transpose("run", "model")
        style.band(ax, x, runs, case, style.COLOURS[i], style.MARKERS[i])
        control = first.control.sel(case=case, model=order).mean("run")
        ax.plot(x, control, "x", color=style.COLOURS[i], ms=4)
        share = first.share.sel(case=case, model=order[:-1])
        ax.plot(places[:-1], share, "_", color=style.BLACK, ms=14, mew=0.8)
    ax.set_xticks(places, order, rotation=35, ha="right")
    ax.set(ylabel="R² of r_j x_j", ylim=(-0.05, 1.05))
    ax.set_title("what layer 1 holds")
    ax.legend(loc="upper left")


def held(ax, dataset, case: str):
    for model in LOOKS:
        by_layer(ax, there(dataset.held.sel(model=model), case), model)
    ax.set(ylabel="R² of r_j x_j", ylim=(-0.05, 1.05))
    ax.set_title(f"and later layers, {case}")
