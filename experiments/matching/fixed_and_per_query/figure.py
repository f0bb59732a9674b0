"""Errors by how many demonstrations are fixed, for queries of one task and of several."""

import numpy as np

from experiments.matching.fixed_and_per_query import claims
from experiments.matching.fixed_and_per_query.claims import best_share
from experiments.matching.fixed_and_per_query.config import LEARNERS, MIXED
from lsa_lab.harness.draw import style

LOOKS = (("descent", "^"), ("ridge", "v"), ("softmax", "s"))  # of learners, in their order
TITLES = {
    "one task": "one task: most are best fixed",
    "own tasks": "own tasks: some for each query help",
}


def plot(dataset):
    prompts = claims.numbers(dataset)
    figure, axes = style.figure(6.75, 2.6, (1, 2))
    random = prompts.logs.sel(rule="random", fixed=prompts.n)
    relative = np.exp(prompts.logs.sel(rule="matching") - random)
    for ax, (kind, title) in zip(axes, TITLES.items(), strict=True):
        learner_lines(ax, relative.sel(kind=kind))
        ax.set(title=title, xlabel=f"fixed for all queries, of {prompts.n}")
    axes[0].set_ylabel("error relative to random")
    axes[0].legend(loc="best")
    return figure


def learner_lines(ax, relative):  # [run, learner, fixed]
    fixed = relative.fixed.values
    for i, (learner, (method, marker)) in enumerate(zip(MIXED, LOOKS, strict=True)):
        runs, look = relative.sel(learner=learner).values, style.METHOD[method] | {"marker": marker}
        style.band(ax, fixed + 0.4 * (i - 1), runs, learner, **look)
    ax.axhline(1, color="grey", lw=0.8)
    ax.set(yscale="log", ylim=(0.1, 1.3), xticks=fixed)
    ax.set_yticks([0.1, 0.2, 0.5, 1], ["0.1", "0.2", "0.5", "1"])
    ax.minorticks_off()


def caption(dataset) -> str:
    prompts = claims.numbers(dataset)
    config = prompts.config
    shares = best_share(prompts.logs.sel(rule="matching"), config.n).median("run")
    common, own = (shares.sel(kind=kind) for kind in TITLES)
    gained = np.exp(prompts.noisy_gain(LEARNERS[0]).mean("run"))
    picked = prompts.outlier_ratio().mean("run")
    return (
        f"The best prompt takes {_span(common)} of its demonstrations for its own query if all "
        f"queries have one task, and {_span(own)} if each cluster has its own. "
        f"The rest of {config.n} are matched once for all queries. In pools with wrong labels or "
        f"heavy tails, matching leaves descent {_span(gained)} of the error of random subsets, and "
        f"it picks {_span(picked)} times the outliers' share. Lines show medians and middle 80 % "
        f"of {config.runs} runs."
    )


def _span(values) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:.2g}" if low == high else f"{low:.2g} to {high:.2g}"
