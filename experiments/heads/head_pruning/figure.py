"""What it costs to take heads away: against n, for every model, and head by head."""

import numpy as np

from experiments.heads.cases import of_case
from experiments.heads.head_pruning.claims import agreement, geometric_mean, ratios
from experiments.heads.head_pruning.config import RULES
from experiments.heads.head_pruning.statements import OTHERS, PRUNED, TRAINED, TREATMENTS
from lsa_lab import results
from lsa_lab.harness import style

COLOURS = (style.BLACK, *(style.COLOURS[i] for i in (1, 4, 0, 5, 3, 2)))
LOOKS = dict(zip(TREATMENTS, zip(COLOURS, "osDXvP^", strict=True), strict=True))


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(11.0, 6.4, (2, 3))
    for ax, case in zip(axes, (config.deep[0], config.deep[-1]), strict=False):
        over_lengths(ax, dataset, case)
        ax.set_ylim(None, 60 * ax.get_ylim()[1])  # room for the legend
    axes[0].legend(ncols=2, loc="upper right")
    all_models(axes[2], dataset)
    for case, color in zip(config.deep, style.COLOURS, strict=False):
        greedy(axes[3], dataset, case, color)
        left(axes[4], dataset, case, color)
        best_subsets(axes[5], dataset, case, color)
    for ax in (axes[3], axes[5]):
        ax.axhline(config.unchanged, color="grey", lw=0.8, ls="--")
        style.log_axes(ax, y=True)
        ax.set(ylabel="risk / that of the full model")
    for ax in axes[3:5]:
        ax.invert_xaxis()
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="heads left in the network")
    axes[4].set(ylabel="heads left in a layer")
    axes[5].set(xlabel="heads kept in one layer, the others whole")
    titles = ("greedy pruning", "where greed leaves heads", "the best subset of one layer")
    for ax, title in zip(axes[3:], titles, strict=True):
        ax.set_title(title)
        ax.legend()
    return figure


def over_lengths(ax, dataset, case: str):
    lengths = np.array(results.config_of(dataset).lengths)
    risks = of_case(dataset.risk, case).sel(n=lengths)
    for i, (treatment, (color, marker)) in enumerate(LOOKS.items()):
        runs = risks.sel(treatment=treatment).transpose("run", "n").values
        if np.isfinite(runs).any():
            x = lengths * 1.02 ** (i - 3)
            ax.plot(x, np.nanmedian(runs, axis=0), "-", color=color, lw=0.8)
            style.band(ax, x, runs, treatment, color, marker)
    for rule, dash in zip(RULES, ("--", ":"), strict=True):
        risk = of_case(dataset.known.sel(rule=rule), case).sel(n=lengths).mean("run")
        style.line(ax, lengths, risk, rule, style=dash)
    style.log_axes(ax, x=True, y=True, ticks=lengths)
    ax.set(xlabel="demonstrations n", ylabel="excess risk")
    ax.set_title(case)


def all_models(ax, dataset):
    """What is judged: geometric means over seeds, with their intervals."""
    config, names = results.config_of(dataset), list(dataset.case.values)[::-1]
    for i, treatment in enumerate(TREATMENTS[1:]):
        color, marker = LOOKS[treatment]
        for row, case in enumerate(names):
            logs = np.log(ratios(dataset, case, treatment))
            if len(logs):
                ends = np.exp(np.concatenate(style.mean_ends(logs[:, None])))
                y = row + 0.14 * (2.5 - i)
                ax.plot(ends, [y, y], "-", color=color, lw=0.8)
                ax.plot(np.exp(logs.mean()), y, marker, color=color)
    ax.axvline(config.unchanged, color="grey", lw=0.8, ls="--")
    ax.hlines(
        np.arange(1, len(names)) - 0.5,
        0,
        1,
        "grey",
        lw=0.4,
        alpha=0.5,
        transform=ax.get_yaxis_transform(),
    )
    ax.set_yticks(np.arange(len(names)), names)
    style.log_axes(ax, x=True, ticks=(1, 3, 10, 30, 100, 300))
    ax.set(xlabel=f"risk / that of the full model, n = {config.n}")
    ax.set_title("all models")


def greedy(ax, dataset, case: str, color):
    """Beside it, what is pruned by the rule, and what is trained with as many heads."""
    risks = of_case(dataset.greedy, case)
    ratio = (risks / risks.sel(kept=risks.kept.max())).transpose("run", "kept")
    style.band(ax, risks.kept.values, ratio, case, color, None)
    heads = of_case(dataset.left, case).isel(run=0).sel(kept=risks.kept.max())
    count = int(heads.sel(layer=1)) + heads.sizes["layer"] - 1
    for treatment in (PRUNED, TRAINED):
        quotients = ratios(dataset, case, treatment)
        if len(quotients):
            y, marker = geometric_mean(quotients), LOOKS[treatment][1]
            ax.plot(count, y, marker, color=color, mfc="none", ms=6)


def left(ax, dataset, case: str, color):
    heads = of_case(dataset.left, case).mean("run")
    later = heads.sel(layer=slice(2, None)).mean("layer")
    ax.plot(heads.kept, heads.sel(layer=1), "-", color=color, label=f"{case}: layer 1")
    ax.plot(heads.kept, later, "--", color=color, label=f"{case}: mean of later layers")


def best_subsets(ax, dataset, case: str, color):
    risks = of_case(dataset.subset, case)
    logs, sizes = np.log(risks / risks.isel(size=-1)), risks["size"].values
    first = np.exp(logs.sel(layer=1).median("run"))
    later = np.exp(logs.sel(layer=slice(2, None)).mean("layer").median("run"))
    ax.plot(sizes, first, "o-", color=color, label=f"{case}: layer 1")
    ax.plot(sizes, later, "s--", color=color, label=f"{case}: mean of later layers")
    ax.set_xticks(sizes)


def caption(dataset) -> str:
    config = results.config_of(dataset)
    pruned = [geometric_mean(ratios(dataset, case, PRUNED)) for case in config.deep]
    costs = [f"{cost:.2g} ({case})" for cost, case in zip(pruned, config.deep, strict=True)]
    others = min(geometric_mean(ratios(dataset, case, OTHERS, PRUNED)) for case in config.deep)
    answer = "No" if min(pruned) > config.unchanged else "Not at every depth"
    if max(pruned) <= config.unchanged:
        answer = "Yes"
    return (
        f"{answer}: with only the top head of each later layer the risk is {' and '.join(costs)} "
        f"times the full model's, with other heads at least {others:.2g} times that. "
        "Pruned: all heads of layer 1 and the most important of each later layer, "
        f"n = {config.n}. Dashed: {config.unchanged:g}, what counts as unchanged. c: geometric "
        "means of seeds and their 95 % intervals, colours as in a; "
        "elsewhere medians and the middle 80 %. d: hollow, as many heads chosen by that rule "
        "(squares) or trained so (triangles). Heads are chosen on other prompts than those judged "
        "on; importance and Shapley's value name the same top head in "
        f"{agreement(dataset, config.deep):.0%} of later layers. Heads of linear attention as wide "
        "as a token can be mixed without changing their layer, narrow and softmax ones cannot. "
        f"Trainings that have not finished are left out: {int(dataset.lost.sum())}. Our setting, "
        "modelled on Chen et al. 2408.04532."
    )
