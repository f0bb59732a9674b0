"""What it costs to take heads away, over mixings where these are free, and head by head."""

import numpy as np

from experiments.heads.cases import select_case
from experiments.heads.head_pruning import claims
from experiments.heads.head_pruning.claims import (
    UNCHANGED,
    agreement,
    geometric_mean,
    own_names,
    ratios,
    refitted,
)
from experiments.heads.head_pruning.config import ANY, BEST, FIRST, OTHERS, PRUNED, TRAINED
from experiments.heads.looks import look_of
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

OVER_FULL = "risk / full model's"
ROWS = (PRUNED, BEST, OTHERS, ANY, FIRST, TRAINED)  # rows of models whose heads cannot be mixed
MARKERS = {PRUNED: "D", TRAINED: "*"}  # beside greedy pruning
LAYERS = (
    {"linestyle": "-", "label": "layer 1"},
    {"linestyle": "--", "mfc": "white", "label": "mean of the later ones"},
)


def plot(dataset):
    config, own = results.config_of(dataset), own_names(dataset)
    figure, axes = style.stacked(6.75, (2.5, 2.2, 2.2), ((1, 1),) * 3)
    judged_ways(axes[0], dataset, config)
    all_treatments(axes[1], dataset, own)
    for name in own:
        greedy(axes[2], dataset, name)
        left(axes[3], dataset, name)
        best_subsets(axes[4], dataset, name)
    for name in config.fitted:
        fitted(axes[5], dataset, name)
    for ax in (axes[2], axes[4], axes[5]):
        ax.axhspan(1 / UNCHANGED, UNCHANGED, color="grey", alpha=0.2, lw=0)
        style.log_axes(ax, y=True)
        ax.set(ylabel=OVER_FULL)
    for ax in axes[2:4]:
        ax.invert_xaxis()
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="heads left in the network")
    axes[2].set_title("greedy pruning")
    axes[3].set(ylabel="heads left in a layer", title="where greed leaves heads")
    handles, words = axes[3].get_legend_handles_labels()
    axes[3].legend(handles[:2], words[:2], loc="lower left")
    axes[4].set(
        xlabel="heads kept in one layer, others whole", title="the best subset of one layer"
    )
    axes[5].set(xlabel="heads of later layers, fitted anew", title="mixable heads, refitted")
    axes[5].set_yticks([1, 1.2, 1.5, 2], ["1", "1.2", "1.5", "2"])
    axes[5].set_visible(bool(config.fitted))
    return figure


def appendix(dataset):
    """What is judged of other choices of heads, and of greed."""
    figure, (others, greed) = style.stacked(6.75, (1.8,), ((1, 1),), first="g")
    style.log_axes(others, x=True, ticks=(0.1, 1, 10, 100))
    judged(others, dataset, ["other_heads"], (0.05, 100))
    others.set(xlabel="risk / that of the most important heads", title="judged: other heads")
    judged(greed, dataset, ["greedy_first", "greedy_later"], (0, 4))
    greed.set(xlabel=f"left before the risk exceeds {UNCHANGED:g}", title="judged: greed")
    return figure


def judged(ax, dataset, names: list[str], span):
    """The rows of these statements, families cell by cell."""
    statements, samples = evidence(claims, dataset)
    kept = [statement for statement in statements if statement.id in names]
    judged_panel.rows(ax, kept, samples, span)


def judged_ways(ax, dataset, config):
    """One head in each later layer, over the full model."""
    style.log_axes(ax, x=True, ticks=(1, 3, 10, 30))
    judged(ax, dataset, ["pruned", "best", "best_mixed", "trained"], (0.8, 40))
    ax.set(xlabel=f"{OVER_FULL}, n = {config.n}", title="one head a later layer")


def all_treatments(ax, dataset, own: list[str]):
    """Geometric means over seeds, with their intervals, a row for each way to choose heads."""
    for i, case in enumerate(own):
        look = look_of(case)
        for row, treatment in enumerate(ROWS):
            logs, y = np.log(ratios(dataset, case, treatment)), row + 0.24 * (i - 0.5)
            if len(logs):
                ends = np.exp(np.concatenate(style.mean_ends(logs[:, None])))
                ax.plot(ends, [y, y], "-", color=look["color"])
                ax.plot(np.exp(logs.mean()), y, **look, ls="none", ms=5)
        top = geometric_mean(ratios(dataset, case, PRUNED))
        direct_label(ax, top, 0.24 * (i - 0.5), case, look["color"], (0, -7 if i else 5))
    ax.set_yticks(range(len(ROWS)), ROWS, fontsize=7)
    style.log_axes(ax, x=True, ticks=(1, 3, 10, 30, 100, 300))
    ax.set(xlabel=OVER_FULL, ylim=(len(ROWS) - 0.5, -0.9), title="heads that cannot be mixed")


def fitted(ax, dataset, case: str):
    over, look = refitted(dataset, case), look_of(case)
    style.band(ax, over.heads.values, over.values, case, **look)
    ax.set_xticks(over.heads.values)
    trained = ratios(dataset, case, TRAINED)
    if len(trained):
        y = geometric_mean(trained)
        ax.plot(1, y, MARKERS[TRAINED], color=look["color"], mfc="none", ms=7)
        direct_label(ax, 1, y, "trained so", look["color"], (6, -3))


def greedy(ax, dataset, case: str):
    """Beside it, what is pruned by importance, and what is trained with as many heads."""
    risks, color = select_case(dataset.greedy, case), look_of(case)["color"]
    ratio = (risks / risks.sel(kept=risks.kept.max())).transpose("run", "kept")
    style.band(ax, risks.kept.values, ratio, case, color, None)
    end = int(risks.kept.min())
    direct_label(ax, end, float(ratio.sel(kept=end).median()), case, color, (4, 0))
    heads = select_case(dataset.left, case).isel(run=0).sel(kept=risks.kept.max())
    count = int(heads.sel(layer=1)) + heads.sizes["layer"] - 1
    for treatment, marker in MARKERS.items():
        quotients = ratios(dataset, case, treatment)
        if len(quotients):
            y = geometric_mean(quotients)
            ax.plot(count, y, marker, color=color, mfc="none", ms=6)
            if case == own_names(dataset)[0]:
                words, up = ("trained so", -4) if treatment == TRAINED else ("by importance", 6)
                direct_label(ax, count, y, words, "dimgrey", (0, up))


def left(ax, dataset, case: str):
    heads, look = select_case(dataset.left, case).mean("run"), look_of(case)
    ax.plot(heads.kept, heads.sel(layer=1), **look | LAYERS[0])
    ax.plot(heads.kept, heads.sel(layer=slice(2, None)).mean("layer"), **look | LAYERS[1])


def best_subsets(ax, dataset, case: str):
    risks, look = select_case(dataset.subset, case), look_of(case)
    logs, sizes = np.log(risks / risks.isel(size=-1)), risks["size"].values
    first = np.exp(logs.sel(layer=1).median("run"))
    later = np.exp(logs.sel(layer=slice(2, None)).mean("layer").median("run"))
    ax.plot(sizes, first, **look | LAYERS[0])
    ax.plot(sizes, later, **look | LAYERS[1])
    direct_label(ax, sizes[0], float(first[0]), case, look["color"], (6, 2))
    ax.set_xticks(sizes)


def caption(dataset) -> str:
    config, own = results.config_of(dataset), own_names(dataset)
    statements, samples = evidence(claims, dataset)
    costs = {
        family: sorted(
            geometric_mean(samples[cell.id])
            for cell in cells_of(statements)
            if cell.family == family and cell.case["model"] != "dense"
        )
        for family in ("pruned", "best_mixed", "trained")
    }
    words = {
        family: f"{values[0]:.2g} to {values[-1]:.2g}" for family, values in costs.items() if values
    }
    yes = all(values[-1] <= UNCHANGED for values in costs.values() if values)
    answer = f"{'Yes' if yes else 'No'}: with the top head of each later layer the risk is "
    answer += f"{words['pruned']} times the full model's"
    if "best_mixed" in words:
        answer += f", with the best that mixing can give {words['best_mixed']} times"
    if "trained" in words:
        answer += f". In models trained so it is {words['trained']}"
    fits = (
        f"f: all heads of later layers fitted anew by {config.fit_steps} steps: upper bounds. "
        if config.fitted
        else ""
    )
    return (
        f"{answer}. a: the most important head where heads cannot be mixed; elsewhere the best of "
        f"all mixings, an upper bound on the least by search; {judged_panel.KEY}. b: geometric "
        f"means of seeds and their {level()} intervals. c: diamonds, as many heads chosen by "
        "importance; stars, trained so. d, e: full lines, layer 1; dashed, the mean of later ones. "
        f"{fits}d: means; marks in c, f: as in b; else medians, middle 80 %; grey: what "
        "counts as unchanged. Heads are "
        f"chosen on other prompts than those judged on, n = {config.n}; importance and Shapley's "
        f"value name the same top head in {agreement(dataset, own):.0%} of later layers. Trainings "
        f"left out as not finished: {int(dataset.lost.sum())}. Appendix (g, h): other heads "
        "and greed, as judged. Our setting, modelled on A4 (2408.04532)."
    )
