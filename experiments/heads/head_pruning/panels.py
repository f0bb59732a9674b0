"""The panels of ``head_pruning``."""

import numpy as np

from experiments.heads.head_pruning.pruning import RULES
from lsa_lab import results
from lsa_lab.harness import style

LOOKS = {  # of a treatment: colour, marker
    "full": (style.BLACK, "o"),
    "trained so": (style.COLOURS[2], "^"),
    "pruned": (style.COLOURS[1], "s"),
    "best later heads": (style.COLOURS[4], "D"),
    "random later heads": (style.COLOURS[5], "v"),
    "as many at random": (style.COLOURS[3], "P"),
    "top head of layer 1": (style.COLOURS[0], "X"),
}


def there(found, case: str):
    """For one case, without the runs, layers and heads that only others have."""
    found = found.sel(case=case)
    for axis in {"run", "layer", "kept"} & set(found.dims):
        found = found.dropna(axis, how="all")
    return found


def ratios(dataset, case: str, treatment: str, over: str = "full"):  # -> [R], empty without
    at_n = there(dataset.risk.sel(n=results.config_of(dataset).n), case)
    found = (at_n.sel(treatment=treatment) / at_n.sel(treatment=over)).values
    return found[np.isfinite(found)]


def middle(ratio) -> float:
    """The geometric mean."""
    return float(np.exp(np.log(ratio).mean()))


def over_lengths(ax, dataset, case: str):
    settings = results.config_of(dataset)
    lengths = np.array(settings.lengths)
    found = there(dataset.risk, case).sel(n=lengths)
    for i, (treatment, (color, marker)) in enumerate(LOOKS.items()):
        runs = found.sel(treatment=treatment).transpose("run", "n").values
        if np.isfinite(runs).any():
            x = lengths * 1.02 ** (i - 3)
            ax.plot(x, np.nanmedian(runs, axis=0), "-", color=color, lw=0.8)
            style.band(ax, x, runs, treatment, color, marker)
    for rule, dash in zip(RULES, ("--", ":"), strict=True):
        risk = there(dataset.known.sel(rule=rule), case).sel(n=lengths).mean("run")
        style.line(ax, lengths, risk, rule, style=dash)
    style.log_axes(ax, x=True, y=True, ticks=lengths)
    ax.set(xlabel="n", ylabel="excess risk")
    ax.set_title(case)


def of_all_cases(ax, dataset):
    settings = results.config_of(dataset)
    names = list(dataset.case.values)[::-1]
    shown = list(LOOKS)[1:]
    for i, treatment in enumerate(shown):
        color, marker = LOOKS[treatment]
        for row, case in enumerate(names):
            runs = ratios(dataset, case, treatment)
            if len(runs):
                low, mid, high = np.quantile(runs, [0.1, 0.5, 0.9])
                y = row + 0.14 * ((len(shown) - 1) / 2 - i)
                error = [[mid - low], [high - mid]]
                ax.errorbar(mid, y, xerr=error, fmt=marker, color=color, elinewidth=0.8)
    ax.axvline(settings.unchanged, color="grey", lw=0.8, ls="--")
    for row in range(1, len(names)):
        ax.axhline(row - 0.5, color="grey", lw=0.4, alpha=0.5)
    ax.set_yticks(np.arange(len(names)), names)
    style.log_axes(ax, x=True, ticks=(1, 3, 10, 30, 100, 300))
    ax.set(xlabel=f"risk / that of the full model, n = {settings.n}")
    ax.set_title("all families")


def greedy(ax, dataset, case: str, color):
    """Beside it, what is pruned by the rule, and what is trained with as many heads."""
    found = there(dataset.greedy, case)
    ratio = (found / found.sel(kept=found.kept.max())).transpose("run", "kept")
    style.band(ax, found.kept.values, ratio, case, color, None)
    heads = there(dataset.left, case).isel(run=0).sel(kept=found.kept.max())
    count = int(heads.sel(layer=1)) + heads.sizes["layer"] - 1
    for treatment in ("pruned", "trained so"):
        runs = ratios(dataset, case, treatment)
        if len(runs):
            ax.plot(count, middle(runs), LOOKS[treatment][1], color=color, mfc="none", ms=6)


def left(ax, dataset, case: str, color):
    found = there(dataset.left, case).mean("run")
    later = found.sel(layer=slice(2, None)).mean("layer")
    ax.plot(found.kept, found.sel(layer=1), "-", color=color, label=f"{case}: layer 1")
    ax.plot(found.kept, later, "--", color=color, label=f"{case}: mean of later layers")


def layers(ax, dataset, case: str, color):
    found = there(dataset.subset, case)
    ratio = np.log(found / found.isel(size=-1))
    sizes = found["size"].values
    first = np.exp(ratio.sel(layer=1).median("run"))
    later = np.exp(ratio.sel(layer=slice(2, None)).mean("layer").median("run"))
    ax.plot(sizes, first, "o-", color=color, label=f"{case}: layer 1")
    ax.plot(sizes, later, "s--", color=color, label=f"{case}: mean of later layers")
    ax.set_xticks(sizes)


def agreement(dataset, cases: list[str]) -> float:
    """The share of later layers in which importance and Shapley's value have the same top head."""
    same = []
    for case in cases:
        tops = [
            there(found, case).sel(layer=slice(2, None)).argmax("head").values
            for found in (dataset.importance, dataset.shapley)
        ]
        same.append((tops[0] == tops[1]).ravel())
    return float(np.concatenate(same).mean())
