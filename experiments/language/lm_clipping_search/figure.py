"""Gains of each search on validation and on fresh sentences, its rivals, and what is judged."""

import numpy as np

from experiments.language.lm_clipping_search import claims
from experiments.language.lm_clipping_search.config import ALGORITHM, SEARCHES, WIDE
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

NAMES = {name: name.replace(", ", ",\n") for name in SEARCHES}
JUDGED = (
    *("algorithm_gains", "algorithm_wins", "algorithm_auc"),
    *("wider_gains", "wider_gains_more", "wider_auc"),
    *("threshold", "calibration", "calibration_wider", "beside_a_threshold"),
    *("selection", "wider_is_more_optimistic"),
)


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.stacked(6.75, (3.2, 2.7), ((1, 1), (1, 1)))
    plot_gains(axes[0], dataset)
    judged_panel.rows(axes[1], *evidence(claims, dataset), (-0.2, 0.3), JUDGED)
    axes[1].set(xlabel="gain of accuracy or AUC, or share", title="what is judged")
    plot_rivals(axes[2], dataset)
    plot_conditions(axes[3], dataset, config)
    return figure


def plot_gains(ax, dataset):
    """A row for each search: what the edit that it chooses gains on validation, and on test."""
    test = claims.numbers(dataset).test.sel(reading="accuracy")
    for values, words, marker, color, shift in (
        (dataset.validation_gain, "on validation", "s", "grey", -0.13),
        (test, "on fresh sentences", "o", style.COLOURS[0], 0.13),
    ):
        runs = values.mean("task").transpose("run", "search").values
        row(ax, runs, shift, color, marker)
        offset = (0, 4) if shift < 0 else (0, -5)
        direct_label(ax, runs.mean(0)[-1], len(SEARCHES) - 1 + shift, words, color, offset)
    finish(ax, list(NAMES.values()), "gain of accuracy", "validation and test")


def plot_rivals(ax, dataset):
    """What searches gain on fresh sentences, and what rivals do without touching the weights."""
    gains = claims.numbers(dataset)
    test = gains.test.mean("task").sel(reading="accuracy")
    rows = {name: test.sel(search=name).values for name in SEARCHES}
    rows |= {name: values.mean("task").values for name, values in gains.rivals.items()}
    row(ax, np.transpose(list(rows.values())), 0.0, style.COLOURS[0], "o")
    names = [NAMES.get(name, name) for name in rows]
    finish(ax, names, "gain of accuracy on fresh sentences", "searches and rivals")


def plot_conditions(ax, dataset, config):
    """Condition numbers by layer, and the layer that Algorithm 1 takes."""
    layers = np.arange(dataset.sizes["depth"])
    looks = zip(dataset.part.values, style.COLOURS, style.MARKERS, strict=False)
    for part, color, marker in looks:
        values = dataset.condition.sel(part=part).values
        ax.plot(layers, values, "-", marker=marker, color=color, lw=0.8, label=part)
        taken = max(np.argsort(values, kind="stable")[-config.top_k :])
        ax.plot(taken, values[taken], "o", ms=9, mfc="none", color=color)
    ax.legend(loc=(0.6, 0.3))
    style.log_axes(ax, y=True)
    ax.set(xlabel="layer", ylabel="condition number", title="what Algorithm 1 goes by")


def row(ax, runs, shift, color, marker):
    """Means of the runs [R, C] and their intervals, a row each."""
    y = np.arange(runs.shape[1]) + shift
    ax.plot(style.mean_ends(runs), [y, y], color=color, lw=0.8)
    ax.plot(runs.mean(0), y, marker, color=color)


def finish(ax, names, xlabel, title):
    ax.axvline(0, color=style.BLACK, lw=0.8, ls="--", zorder=0)
    ax.set_yticks(range(len(names)), names)
    ax.set(ylim=(len(names) - 0.5, -0.6), xlabel=xlabel, title=title)


def caption(dataset) -> str:
    config, gains = results.config_of(dataset), claims.numbers(dataset)
    _, judged = evidence(claims, dataset)
    algorithm = round(judged["algorithm_gains"].mean(), 3) + 0.0  # no -0.000
    wide = float(gains.test.sel(reading="accuracy", search=WIDE).mean())
    every = {name: float(values.mean()) for name, values in gains.rivals.items()}
    chosen = dataset.layer.sel(search=list(ALGORITHM))
    edits, searches = int((chosen >= 0).sum()), chosen.size
    test = gains.test.sel(reading="accuracy", search=list(ALGORITHM)).values
    wins, losses = int((test > 0).sum()), int((test < 0).sum())
    titles = " and ".join(task.title for _, task in config.tasks)
    return (
        f"{config.model_name}: A2's Algorithm 1 changes accuracy on fresh sentences by "
        f"{algorithm:+.3f}, a search of more layers by {wide:+.3f}. A threshold fitted on the same "
        f"labels gains {every['threshold fitted']:+.3f}. "
        f"a: mean gains, {level()} intervals over sets. b: {judged_panel.KEY}. c: calibrated needs "
        f"no label, the threshold is fitted on the validation sentences. d: the largest condition "
        f"number of a part's matrices; ring: the deeper of the top {config.top_k}. Of {searches} "
        f"runs of Algorithm 1 {edits} clip, {wins} win and {losses} lose. {titles}; "
        f"{config.runs} sets of {config.shots} demonstrations, "
        f"{config.validation} sentences to search with and {config.fresh} to test on each."
    )
