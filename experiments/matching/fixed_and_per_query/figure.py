"""Errors by how many demonstrations are fixed, for each kind of pool, and what is judged."""

import numpy as np

from experiments.matching.fixed_and_per_query import claims
from experiments.matching.fixed_and_per_query.claims import best_share, logs
from experiments.matching.fixed_and_per_query.config import KINDS
from experiments.matching.learners import learners
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.store import results

LOOKS = ("descent", "ridge", "softmax", "softmax, norm, MLP")  # of learners, in their order
MARKERS = ("^", "v", "s", "P")


def plot(dataset):
    config = results.config_of(dataset)
    count = len(learners(config))
    figure, axes = style.stacked(6.75, (2.3, 1.4 + 0.4 * count), ((1, 1, 1), (1, 1)))
    relative = by_kind(dataset)
    for ax, kind in zip(axes, KINDS, strict=False):
        learner_lines(ax, dataset, relative.sel(kind=kind))
        ax.set_title(kind)
    axes[0].set_ylabel("error relative to random")
    axes[0].legend(loc="best")
    rule_lines(axes[3], dataset, relative)
    judged(axes[4], dataset)
    return figure


def by_kind(dataset):  # [run, learner, kind, fixed, rule]
    """Errors over those of as many random demonstrations."""
    every = logs(dataset)
    return np.exp(every - every.sel(rule="random", fixed=max(every.fixed.values)))


def learner_lines(ax, dataset, relative):  # [run, learner, fixed, rule]
    config = results.config_of(dataset)
    for i, learner in enumerate(learners(config)):
        runs = relative.sel(learner=learner, rule="matching").values
        look = style.METHOD[LOOKS[i]] | {"marker": MARKERS[i]}
        style.band(ax, relative.fixed.values + 0.4 * (i - 1), runs, learner, **look)
    axes_of(ax, config)


def rule_lines(ax, dataset, relative):
    """Descent, in the median kind, by what chooses the fixed ones."""
    config = results.config_of(dataset)
    descent = np.exp(np.log(relative.sel(learner="descent")).mean("kind"))
    for i, rule in enumerate(dataset.rule.values):
        runs = descent.sel(rule=rule).values
        look = style.METHOD[rule]
        style.band(ax, relative.fixed.values + 0.4 * (i - 1), runs, rule, **look)
    axes_of(ax, config)
    ax.set(ylabel="relative to random", title="descent, by who is fixed")
    ax.legend(loc="best")


def axes_of(ax, config):
    ax.axhline(1, color="grey", lw=0.8)
    ax.set_yscale("log")
    ax.set_ylim(0.1, 1.3)
    ax.set_yticks([0.1, 0.2, 0.5, 1], ["0.1", "0.2", "0.5", "1"])
    ax.minorticks_off()
    ax.set_xticks(config.fixed)
    ax.set(xlabel=f"fixed for all queries, of {config.n}")


def judged(ax, dataset):
    """The rows of one learner after the other."""
    names = learners(results.config_of(dataset))
    statements, samples = evidence(claims, dataset)
    kept = [cell for cell in cells_of(statements) if cell.label]
    kept.sort(key=lambda cell: names.index(cell.case["learner"]))
    style.log_axes(ax, x=True, ticks=(0.2, 0.5, 1, 2))
    judged_panel.rows(ax, statements, samples, (0.2, 2.0), [cell.id for cell in kept])
    ax.axvline(1, color="grey", lw=0.8)
    ax.set(xlabel="ratio of errors", title="what is judged")


def caption(dataset) -> str:
    config, every = results.config_of(dataset), logs(dataset).sel(rule="matching")
    shares = best_share(every, config.n).median("run")
    spans = [f"{_span(shares.sel(kind=kind))} ({kind})" for kind in KINDS]
    prompts = claims.numbers(dataset)
    moved = [
        f"{learner} {float(prompts.moved(learner).mean()):+.2f}" for learner in learners(config)
    ]
    return (
        f"The best share of demonstrations of each query's own is {', '.join(spans)}. "
        f"{config.n} of {config.m} demonstrations, some matched once for all queries, the rest the "
        f"most similar to the query; {config.clusters} clusters, noise {config.noise_std:g}, "
        f"d = {config.d}. a to c: median of {config.runs} runs of {config.pools} pools and the "
        "middle 80 % of runs; d: mean of the kinds; what fills the fixed part. "
        f"e: {judged_panel.KEY}. Share per query, tasks of their own less one task: "
        f"{', '.join(moved)}. {style.missing(dataset.error)} errors left out as not finite."
    )


def _span(shares) -> str:  # [learner]
    low, high = float(shares.min()), float(shares.max())
    return f"{low:.2g}" if low == high else f"{low:.2g} to {high:.2g}"
