"""Errors by how many demonstrations are fixed, and what matching leaves of them in spoilt pools."""

import numpy as np

from experiments.matching import rows
from experiments.matching.fixed_and_per_query import claims
from experiments.matching.fixed_and_per_query.claims import best_share
from experiments.matching.fixed_and_per_query.config import LEARNERS, MIXED, NOISY_KINDS
from lsa_lab.harness.draw import style
from lsa_lab.judging.statistics import level

LOOKS = (("descent", "^"), ("ridge", "v"), ("softmax", "s"))  # of learners, in their order
LINES = {"one task": ("--", "white"), "own tasks": ("-", None)}  # a task a cluster: filled


def plot(dataset):
    prompts = claims.numbers(dataset)
    figure, axes = style.figure(6.75, 2.9, (1, 2))
    random = prompts.logs.sel(rule="random", fixed=prompts.n)
    fixed_curves(axes[0], np.exp(prompts.logs.sel(rule="matching") - random))
    axes[0].set(title="All mix where tasks differ", ylabel="error / random subsets'")
    axes[0].set_xlabel(f"fixed for all queries, of {prompts.n}")
    spoilt_map(axes[1], prompts)
    return figure


def fixed_curves(ax, relative):  # [run, learner, kind, fixed]
    """Medians of each learner; open and dashed where all clusters have one task."""
    fixed = relative.fixed.values
    for kind, (dashes, face) in LINES.items():
        for i, (learner, (method, marker)) in enumerate(zip(MIXED, LOOKS, strict=True)):
            runs = relative.sel(learner=learner, kind=kind).values
            look = style.METHOD[method] | {"marker": marker, "mfc": face, "ls": dashes}
            look["mfc"] = face or look["color"]
            label = None if face else learner
            style.median_points(ax, fixed + 0.4 * (i - 1), runs, label, lw=0.8, **look)
        ax.plot([], [], dashes, color="grey", marker="o", mfc=face, label=kind)
    ax.axhline(1, color="grey", lw=0.8)
    ax.set(yscale="log", ylim=(0.06, 5), xticks=fixed)
    ax.set_yticks([0.1, 0.2, 0.5, 1, 2, 4], ["0.1", "0.2", "0.5", "1", "2", "4"])
    ax.minorticks_off()
    ax.legend(loc="lower center", ncols=2)


def spoilt_map(ax, prompts):
    """What matching leaves of the error of random subsets, by learner and kind of pool."""
    logs = np.stack([prompts.noisy_gain(learner).mean("run").values for learner in LEARNERS])
    ax.imshow(-logs, cmap="PuOr", vmin=-2, vmax=2, aspect="auto")
    for (row, column), log in np.ndenumerate(logs):
        color = "white" if abs(log) > 1.2 else "black"
        ax.text(column, row, f"{np.exp(log):.2g}", color=color, ha="center", va="center", size=7)
    kinds = [kind.replace(" ", "\n") for kind in NOISY_KINDS]
    ax.set_xticks(range(len(kinds)), kinds, fontsize=7)
    ax.set_yticks(range(len(LEARNERS)), [name.replace(" ", "\n") for name in LEARNERS], fontsize=7)
    ax.set_title("Matching helps in spoilt pools too")


def caption(dataset) -> str:
    prompts = claims.numbers(dataset)
    shares = best_share(prompts.logs.sel(rule="matching"), prompts.n).median("run")
    common, own = (rows.span(shares.sel(kind=kind)) for kind in LINES)
    picked = rows.span(prompts.outlier_ratio().mean("run"))
    return (
        f"Where each cluster has its own task, the best prompts choose {own} of their "
        f"demonstrations for the query, in the median; where all have one task, {common}. "
        "The rest are matched once for all queries. Panel b shows errors "
        "with matched demonstrations over those with random ones. Of outliers matching picks "
        f"{picked} times their share of the pool. Points are medians with {level()} intervals."
    )
