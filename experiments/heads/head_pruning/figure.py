"""What it costs to take heads away, over mixings where these are free, and head by head."""

import numpy as np

from experiments.heads.cases import of_case
from experiments.heads.head_pruning.claims import (
    agreement,
    geometric_mean,
    names_of_own,
    ratios,
    refitted,
    samples,
)
from experiments.heads.head_pruning.statements import (
    ANY,
    FIRST,
    MIXED,
    OTHERS,
    PRUNED,
    TRAINED,
    TREATMENTS,
    controls,
    statements,
    ways,
)
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

COLOURS = (style.BLACK, *(style.COLOURS[i] for i in (1, 4, 0, 5, 3, 1, 2)))
LOOKS = dict(zip(TREATMENTS, zip(COLOURS, "osDXvPs^", strict=True), strict=True))


def plot(dataset):
    config, own = results.config_of(dataset), names_of_own(dataset)
    figure, axes = style.figure(10.5, 6.4, (2, 3))
    what_is_judged(axes[0], dataset, config)
    all_treatments(axes[1], dataset, own)
    for name, color in zip(config.fitted, style.COLOURS[2:], strict=False):
        fitted(axes[2], dataset, name, color)
    for name, color in zip(own, style.COLOURS, strict=False):
        greedy(axes[3], dataset, name, color)
        left(axes[4], dataset, name, color)
        best_subsets(axes[5], dataset, name, color)
    for ax in (axes[2], axes[3], axes[5]):
        ax.axhspan(1 / config.unchanged, config.unchanged, color="grey", alpha=0.2, lw=0)
        style.log_axes(ax, y=True)
        ax.set(ylabel="risk / that of the full model")
    axes[2].set_yticks([1, 1.2, 1.5, 2], ["1", "1.2", "1.5", "2"])
    for ax in axes[3:5]:
        ax.invert_xaxis()
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="heads left in the network")
    axes[4].set(ylabel="heads left in a layer")
    axes[2].set(xlabel="heads of later layers, fitted anew")
    axes[5].set(xlabel="heads kept in one layer, others whole")
    titles = {2: "mixed heads, refitted", 3: "greedy pruning", 4: "where greed leaves heads"}
    for place, title in (titles | {5: "the best subset of one layer"}).items():
        axes[place].set_title(title)
        if place < 5 and axes[place].get_legend_handles_labels()[0]:
            axes[place].legend()
    return figure


def what_is_judged(ax, dataset, config):
    """Ratios of risks with one head in each later layer, and the controls over the pruned model."""
    words = {MIXED: "best mixed", PRUNED: "most important", TRAINED: "trained so"}
    labels = {
        id: f"{name}: {words.get(treatment, 'best choice')}"
        for id, (name, treatment) in ways(config).items()
    }
    words = {FIRST: "top of layer 1", OTHERS: "random later", ANY: "random"}
    beside = controls(config).items()
    labels |= {id: f"{name}: {words[way]} / pruned" for id, (name, way) in beside}
    style.log_axes(ax, x=True, ticks=(0.1, 1, 10, 100))
    judged_panel.rows(ax, statements(config), samples(dataset), labels, (0.05, 100))
    ax.set(xlabel=f"risk / that of the full model, n = {config.n}")
    ax.set_title("judged: one head a later layer")


def all_treatments(ax, dataset, own: list[str]):
    """Geometric means over seeds, with their intervals."""
    names, y = own[::-1], None
    for i, treatment in enumerate(TREATMENTS[1:]):
        color, marker = LOOKS[treatment]
        label = treatment
        for row, case in enumerate(names):
            logs = np.log(ratios(dataset, case, treatment))
            if len(logs):
                ends = np.exp(np.concatenate(style.mean_ends(logs[:, None])))
                y = row + 0.12 * (3 - i)
                ax.plot(ends, [y, y], "-", color=color, lw=0.8)
                ax.plot(np.exp(logs.mean()), y, marker, color=color, label=label)
                label = None
    ax.set_yticks(np.arange(len(names)), names)
    style.log_axes(ax, x=True, ticks=(1, 3, 10, 30, 100, 300))
    ax.set(xlabel="risk / that of the full model", ylim=(-0.7, len(names)))
    ax.set_title("heads that cannot be mixed")
    ax.legend(ncols=2, loc="upper left")


def fitted(ax, dataset, case: str, color):
    over = refitted(dataset, case)
    style.band(ax, over.heads.values, over.values, case, color, "o")
    ax.set_xticks(over.heads.values)
    trained = ratios(dataset, case, TRAINED)
    if len(trained):
        ax.plot(1, geometric_mean(trained), "^", color=color, mfc="none", ms=6)


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
    ax.plot(heads.kept, later, "--", color=color, label=f"{case}: later")


def best_subsets(ax, dataset, case: str, color):
    risks = of_case(dataset.subset, case)
    logs, sizes = np.log(risks / risks.isel(size=-1)), risks["size"].values
    first = np.exp(logs.sel(layer=1).median("run"))
    later = np.exp(logs.sel(layer=slice(2, None)).mean("layer").median("run"))
    ax.plot(sizes, first, "o-", color=color, label=f"{case}: layer 1")
    ax.plot(sizes, later, "s--", color=color, label=f"{case}: later")
    ax.set_xticks(sizes)


def caption(dataset) -> str:
    config, own = results.config_of(dataset), names_of_own(dataset)
    costs = {
        treatment: sorted(
            geometric_mean(ratios(dataset, name, way))
            for name, way in ways(config).values()
            if way == treatment and name != "dense"
        )
        for treatment in (PRUNED, MIXED, TRAINED)
    }
    words = {
        treatment: f"{values[0]:.2g} to {values[-1]:.2g}"
        for treatment, values in costs.items()
        if values
    }
    yes = all(values[-1] <= config.unchanged for values in costs.values() if values)
    answer = f"{'Yes' if yes else 'No'}: with the top head of each later layer the risk is "
    answer += f"{words[PRUNED]} times the full model's"
    if MIXED in words:
        answer += f", with the best that mixing can give {words[MIXED]} times"
    if TRAINED in words:
        answer += f", in models trained so {words[TRAINED]}"
    fits = (
        f"c: all heads of later layers fitted anew by {config.fit_steps} steps of descent, upper "
        "bounds on the least; hollow: trained so. "
        if config.fitted
        else ""
    )
    return (
        f"{answer}. Importance is judged where heads cannot be mixed (narrow keys, softmax); else "
        "the head is the best of all mixings, an upper bound on the least by search. a: "
        f"{judged_panel.KEY}; b: geometric means of seeds and their 95 % intervals, for every "
        f"treatment. {fits}d: hollow, as many heads chosen by importance (squares) or trained so "
        "(triangles). e, f: layer 1, and dashed the mean of later layers. c to f: medians and the "
        "middle 80 %; grey: what counts as unchanged. Heads are chosen on other prompts than those "
        "judged on; importance and "
        f"Shapley's value name the same top head in {agreement(dataset, own):.0%} of later layers. "
        f"Trainings that have not finished are left out: {int(dataset.lost.sum())}. Our setting, "
        "modelled on A4 (2408.04532)."
    )
