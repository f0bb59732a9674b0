"""Accuracy by the rate at which a part of a layer is clipped, and what is judged."""

import numpy as np

from experiments.clipping.label_clipping.claims import changes, chosen_by_others, drastic, samples
from experiments.clipping.label_clipping.config import DROPPED, statements
from experiments.clipping.label_clipping.statements import PARTS, shots
from experiments.clipping.layer_ends import shades, shallow_and_deep
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.harness.marks import end_labels

PARTED = {
    "deep_is_flat": "change, last layers",
    "deep_tolerates_more": "last less first layers",
    "shallow_collapses": "first clipped sharply, less .5",
    "few_shots_fall_less": "fall, few less {n} shots",
    "few_shots_lose_less": "share lost, few less {n} shots",
}
OTHERS = {
    "helps_few": "best edit, {few} shots",
    "helps_trained": "best edit, {n} shots",
    "threshold": "moved threshold less best edit",
    "near_bayes_few": "Bayes less model, {few} shots",
    "near_bayes_trained": "Bayes less model, {n} shots",
    "more_shots_are_better": "accuracy, {n} less {few} shots",
    "more_shots_narrow": "entropy, {n} less {few} shots",
    "untrained_guesses": "untrained, less .5",
}


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.stacked(6.75, (2.3, 2.1, 2.2), ((1, 1), (1, 1), (1, 1)))
    for ax, part in zip(axes, dataset.part.values, strict=False):
        by_layer(ax, dataset, part)
    for ax, part in zip(axes[2:], dataset.part.values, strict=False):
        by_shots(ax, dataset, part)
    low, high = zip(*(ax.get_ylim() for ax in axes[2:4]), strict=True)
    for ax in axes[2:4]:
        ax.set_ylim(min(low), max(high))
    few, n = shots(config)
    judged, bounds = samples(dataset), statements(config)
    parted = {
        f"{part}_{id}": f"{'MLP' if part == 'mlp' else part}: {text.format(few=few, n=n)}"
        for id, text in PARTED.items()
        for part in PARTS
    }
    others = {id: text.format(few=few, n=n) for id, text in OTHERS.items()}
    for ax, rows in ((axes[4], parted), (axes[5], others)):
        judged_panel.rows(ax, bounds, judged, rows, (-0.1, 0.1))
        ax.axvline(0, color="grey", lw=0.8)
        ax.set_xticks((-0.1, 0, 0.1))
        ax.set(xlabel="accuracy, or a share", title="what is judged")
    return figure


def by_layer(ax, dataset, part):
    """One curve a layer, with the most shots."""
    rows = dataset.accuracy.isel(shots=-1).sel(part=part)
    base = float(dataset.unclipped_accuracy.isel(shots=-1).mean())
    places, layers, ends = np.arange(dataset.sizes["rate"]), dataset.layer.values, {}
    colors = shades(len(layers))
    for layer, color, marker in zip(layers, colors, style.MARKERS * 3, strict=False):
        runs = rows.sel(layer=layer).transpose("run", "rate")
        style.mean_band(ax, places, runs, None, color, marker)
        ends[f"layer {layer}"] = float(runs.mean("run")[-1])
    ax.axhline(base, color=style.BLACK, lw=0.8, ls="--")
    ax.axhline(0.5, color="grey", lw=0.8)
    labels = [
        "drop" if rate == DROPPED else f"{rate:g}".lstrip("0") for rate in dataset.rate.values
    ]
    ax.set_xticks(places, labels)
    ax.set(xlabel="clipping rate", ylabel="accuracy", ylim=(0.45, 1))
    ax.set_title(f"{part}, {int(dataset.shots[-1])} shots")
    end_labels(ax, ends, colors)


def by_shots(ax, dataset, part):
    """The change of accuracy, averaged over drastic rates, in the first layers and in the last."""
    config = results.config_of(dataset)
    pair = shallow_and_deep(drastic(changes(dataset).sel(part=part), config), config.ends)
    x, names = dataset.shots.values, ("first", "last")
    for runs, name, color, marker in zip(pair, names, shades(2), "os", strict=True):
        style.mean_band(ax, x, runs.transpose("run", "shots"), None, color, marker)
        ax.plot([], [], marker=marker, color=color, label=f"{name} {config.ends} layers")
    ax.axhline(0, color=style.BLACK, lw=0.8, ls="--")
    ax.legend(loc="lower right")
    ax.set(xlabel="shots", ylabel="change of accuracy")
    ax.set_xticks(x)
    ax.set_title(f"{part}, rates ≥ {config.high:g}")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    few, n = shots(config)
    base = dataset.unclipped_accuracy.mean("run")
    bayes = dataset.bayes.mean("run")
    sharply, deeply = shallow_and_deep(
        dataset.accuracy.sel(shots=n, rate=max(config.rates)).mean("run"), config.ends
    )
    change, average = changes(dataset), float(dataset.average.sel(shots=n).mean())
    auc = (dataset.auc - dataset.unclipped_auc).sel(shots=n)
    best = float(chosen_by_others(change.sel(shots=n)).mean())
    first, last = (
        " and ".join(f"{float(each.sel(part=part)):.2f} ({part})" for part in dataset.part.values)
        for each in (sharply, deeply)
    )
    return (
        f"Clipped sharply, a shallow layer leaves accuracies of {first}, a deep one of {last}, at "
        f"{n} shots; unclipped it is {float(base.sel(shots=n)):.2f}. "
        f"The best edit of the other runs changes it by {best:+.4f}; the largest mean change of "
        f"AUC by any edit is {float(auc.mean('run').max()):+.4f}. Unclipped our models reach "
        f"{float(base.sel(shots=few)):.3f} at {few} shots and {float(base.sel(shots=n)):.3f} at "
        f"{n}; the Bayes rule, by Gibbs sampling on the same prompts, "
        f"{float(bayes.sel(shots=few)):.3f} and {float(bayes.sel(shots=n)):.3f}. The sign of one "
        f"average, Σ y x·x_query, is right in {average:.3f} at {n} shots, and one layer can form "
        f"it. Labels are signs of a linear rule with noise, d = {config.model.task.d}. a, b: one "
        f"part of one layer clipped; dashes: unclipped; grey: a guess. c, d: averaged over drastic "
        f"rates. Bands: 95 % intervals of {dataset.sizes['run']} runs, each with {config.prompts} "
        "prompts of its own. "
        f"e, f: {judged_panel.KEY}."
    )
