"""Risks by where heads stand, every seed a dot, between the sparse Bayes rule and ridge."""

import numpy as np

from experiments.heads.head_placement import claims
from experiments.heads.head_placement.claims import PATTERN, log_risks
from experiments.heads.head_placement.config import specs
from experiments.heads.rule_names import RIDGE, SPARSE_BAYES
from lsa_lab.harness.draw import style
from lsa_lab.store import results

LINEAR, RULE = style.METHOD["linear, narrow keys"], style.METHOD[RIDGE]["color"]
HIGHLIGHT = style.COLOURS[1]  # A4's pattern


def plot(dataset):
    return style.panels(dataset, 3.0, by_placement, by_length)


def ordered(dataset) -> list[str]:
    """Placements from the least risk to the most, averaged over seeds."""
    means = log_risks(dataset).mean("seed")
    return [str(name) for name in means.sortby(means).heads.values]


def color_of(name: str) -> str:
    return HIGHLIGHT if name == PATTERN else LINEAR["color"]


def by_placement(ax, dataset):
    """A row for each placement: seeds, their geometric mean and its interval."""
    logs, names = log_risks(dataset), ordered(dataset)
    for row, name in enumerate(names):
        own, color = logs.sel(heads=name).values, color_of(name)
        own, labels = own[np.isfinite(own)], ("a seed", "mean") if row == 0 else (None, None)
        ends = np.exp(np.concatenate(style.mean_ends(own[:, None])))
        ax.plot(ends, [row, row], "-", color=color)
        ax.plot(np.exp(own), [row] * len(own), ".", color="grey", ms=4, label=labels[0])
        ax.plot(np.exp(own.mean()), row, "|", color=color, ms=11, mew=1.6, label=labels[1])
    ax.axvline(ridge_level(dataset), color=RULE, lw=0.8, ls=":", label="ridge")
    ax.set_yticks(range(len(names)), names)
    ax.set(ylim=(len(names) - 0.4, -0.6), xlabel="risk / sparse Bayes rule's")
    ax.set(ylabel="heads of layers 1, 2, 3")
    low, high = spread_ends(dataset)
    rank = f"Heads {PATTERN} are number {names.index(PATTERN) + 1} of {len(names)}"
    ax.set_title("Placements differ as seeds do" if low <= 1 <= high else rank)
    ax.legend(loc="best")


def spread_ends(dataset) -> tuple[float, float]:
    """The interval of what placements differ by over what seeds of one do."""
    low, high = style.mean_ends(np.log(claims.spread_ratio(dataset))[:, None])
    return float(np.exp(low[0])), float(np.exp(high[0]))


def ridge_level(dataset) -> float:
    """Ridge's risk over the sparse Bayes rule's, averaged as those of models are."""
    spec, *_ = specs(results.config_of(dataset)).values()
    rules = dataset.rule_risk.isel(shots=dataset.shots.isin(spec.task.lengths).values)
    return float(np.exp(np.log(rules.sel(rule=RIDGE) / rules.sel(rule=SPARSE_BAYES)).mean()))


def by_length(ax, dataset):
    """Geometric means over seeds against n; the best, A4's and the worst have names."""
    names, bayes = ordered(dataset), dataset.rule_risk.sel(rule=SPARSE_BAYES)
    means, shots = means_of(claims.finite_risks(dataset) / bayes), dataset.shots.values
    looks = {names[0]: "-", names[-1]: ":", PATTERN: "--"}
    for name in names:
        look = dict(color="lightgrey", zorder=1)
        if name in looks:
            look = dict(color=color_of(name), ls=looks[name], label=name, zorder=2)
        ax.plot(shots, means.sel(heads=name), **look)
    style.line(ax, shots, dataset.rule_risk.sel(rule=RIDGE) / bayes, "ridge", RULE, ":")
    style.log_axes(ax, x=True, ticks=shots)
    ax.set(xlabel="demonstrations n", ylabel="risk / sparse Bayes rule's", ylim=(0, None))
    most = float((means.max("heads") / means.min("heads") - 1).max())
    ax.set_title(f"Means differ by {most:.0%} at most")
    ax.legend(loc="lower right")


def means_of(ratios):  # (heads, seed, shots) -> (heads, shots)
    return np.exp(np.log(ratios).mean("seed"))


def caption(dataset) -> str:
    names, means = ordered(dataset), np.exp(log_risks(dataset).mean("seed"))
    moves = [np.exp(np.log(claims.factor_of_move(dataset, to)).mean()) for to in ("2", "3")]
    least, most = (float(means.sel(heads=names[end])) for end in (0, -1))
    spec = specs(results.config_of(dataset))[PATTERN]
    better = int((means < ridge_level(dataset)).sum())
    over = means_of(claims.finite_risks(dataset) / dataset.rule_risk.sel(rule=RIDGE))
    worse = dataset.shots.values[(over.min("heads") >= 1).values]
    none = " or ".join(map(str, worse)) or "no length"
    seeds = np.exp(np.log(claims.spread_ratio(dataset)).mean())
    low, high = spread_ends(dataset)
    return (
        f"After {spec.training.steps} steps the spread of risks over placements is {seeds:.2f} "
        f"[{low:.2f}, {high:.2f}] times that over seeds. {PATTERN} is number "
        f"{names.index(PATTERN) + 1} of {len(names)} placements by mean risk. {better} placements "
        f"beat ridge on average over lengths, but none does at n = {none}. A head that moves from "
        f"layer 1 to 2 multiplies the risk by {moves[0]:.3f}, to 3 by {moves[1]:.3f}. The best "
        f"placement, {names[0]}, has {least:.2f} times the sparse Bayes rule's risk, the worst, "
        f"{names[-1]}, {most:.2f} times. {int((dataset.taken < spec.training.steps).sum())} "
        "trainings diverged."
    )
