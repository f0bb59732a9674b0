"""What clipping a layer of a language model does, what a search gains, and the share of a shift."""

import itertools

import numpy as np

from experiments.language.data_sets import cell_ids
from experiments.language.lm_clipping import claims
from experiments.language.lm_clipping.config import DROPPED, PARTS, SEARCHES, WIDE
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.store import parts, results

LINES = {"attention": "-", "MLP": "--"}
AUCS = ("deep_is_flat", "dropped", "deep_tolerates_more", "keys_alone")
OTHERS = ("helps", "few_shots", "more_shots")
SEARCHED = ("algorithm_gains", "wider_gains", "threshold", "calibration_wider")


def plot(dataset):
    first, numbers = parts.part(dataset).isel(task=0), claims.numbers(dataset)
    figure, axes = style.stacked(6.75, (2.6, 2.6), ((1, 1), (1, 1)))
    plot_layers(axes[0], first, "auc")
    axes[0].set(title="classes told apart", ylabel="change of AUC")
    plot_layers(axes[1], first, "accuracy")
    axes[1].set(title="accuracy", ylabel="change of accuracy")
    low, high = axes[1].get_ylim()
    axes[1].set_ylim(1.5 * low - 0.5 * high, high)  # room for the legend
    axes[1].legend(*axes[0].get_legend_handles_labels(), ncols=2, fontsize=7, loc="lower center")
    plot_gains(axes[2], numbers.gains)
    plot_shifts(axes[3], numbers.margins)
    return figure


def appendix(dataset):
    """What is judged: layers, by data set, then searches and shifts."""
    config, (statements, samples) = results.config_of(dataset), evidence(claims, dataset)
    bias = [id for id in samples if id.startswith(("a2_gain", "shift"))]
    rows = [
        (cell_ids(statements, name, ids), task.title)
        for (name, task), ids in itertools.product(config.tasks, (AUCS, OTHERS))
    ] + [(SEARCHED, "what a search gains"), (bias, "what a shift does")]
    heights = [0.8 + 0.17 * len(ids) for ids, _ in rows[::2]]
    figure, axes = style.stacked(6.75, heights, [(1, 1)] * len(heights), first="e")
    for ax, (ids, title) in zip(axes, rows, strict=True):
        judged_panel.rows(ax, statements, samples, (-0.2, 0.3), ids)
        ax.set(xlabel="change of accuracy or AUC", title=title)
    return figure


def plot_layers(ax, dataset, reading):
    """A curve for each part and rate: the change by clipping a layer, dropping it last."""
    change = (dataset.edited - dataset.unclipped).sel(reading=reading)
    rates, layers = dataset.rate.values, dataset.layer.values
    ax.axhline(0, color=style.BLACK, lw=0.8, zorder=0)
    looks = zip(rates, style.COLOURS, style.MARKERS, strict=False)
    for part, (rate, color, marker) in itertools.product(PARTS, looks):
        runs = change.sel(part=part, rate=rate).transpose("run", "layer")
        label = f"{part} {'dropped' if rate == DROPPED else f'{rate:g}'}"
        style.mean_band(ax, layers, runs, label, color, marker, LINES[part])
    ax.set(xticks=layers, xlabel="layer that is clipped")


def plot_gains(ax, gains):
    """What each search and its rivals gain on fresh sentences; squares: on validation."""
    test = gains.test.sel(reading="accuracy").mean("task")
    rows = {name: test.sel(search=name).values for name in SEARCHES} | gains.rivals
    for row, runs in enumerate(rows.values()):
        ax.plot(style.mean_ends(runs[:, None]), [row, row], color=style.COLOURS[0], lw=0.8)
        ax.plot(runs.mean(), row, "o", color=style.COLOURS[0])
    promised = gains.dataset.validation_gain.mean(("task", "run"))
    ax.plot(promised.sel(search=list(SEARCHES)), range(len(SEARCHES)), "s", color="grey")
    ax.axvline(0, color=style.BLACK, lw=0.8, ls="--", zorder=0)
    ax.set_yticks(range(len(rows)), [name.replace(", ", ",\n") for name in rows])
    ax.set(ylim=(len(rows) - 0.5, -0.6), xlabel="gain of accuracy")
    ax.set_title("searches and their rivals")


def plot_shifts(ax, margins):
    """A point for each set of demonstrations: the change of accuracy by the strongest clipping of
    the MLP over what the threshold, moved to give each label as often, does to the whole model."""
    edit = f"MLP {max(margins.config.rates):g}"
    changes, shifts, _ = (each.sel(edit=edit) for each in margins.changes)
    limit = 1.1 * max(0.05, float(np.abs(changes).max()), float(np.abs(shifts).max()))
    ax.plot([-limit, limit], [-limit, limit], color=style.BLACK, lw=0.8, ls="--", zorder=0)
    looks = zip(margins.config.tasks, style.COLOURS, style.MARKERS, strict=False)
    for (name, task), color, marker in looks:
        own = shifts.sel(task=name), changes.sel(task=name)
        ax.plot(*own, marker, color=color, label=task.title)
    ax.legend(loc="upper left", handletextpad=0.2)
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit), xlabel="change by a moved threshold")
    ax.set(ylabel=f"change by {edit}", title="what it does is a shift")


def caption(dataset) -> str:
    config, numbers = results.config_of(dataset), claims.numbers(dataset)
    (name, task), *_ = config.tasks
    changes, deep = numbers.changes[name], max(config.layers)
    attention, mlp = (changes.flatness(part).mean() for part in PARTS)
    wide = float(numbers.gains.test.sel(reading="accuracy", search=WIDE).mean())
    fitted = numbers.gains.rivals["threshold fitted"].mean()
    return (
        f"{config.model_name}, on {task.title}: clipping layer {deep} changes AUC by "
        f"{attention:+.3f} (attention) and {mlp:+.3f} (MLP). On fresh sentences the wider search "
        f"gains {wide:+.3f} of accuracy; a threshold fitted on the same labels gains "
        f"{fitted:+.3f}. Grey squares are gains on validation. "
        f"Bands are intervals over {config.runs} sets. "
    )
