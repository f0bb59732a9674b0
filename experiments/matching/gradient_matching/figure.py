"""The figure of `gradient_matching`, drawn from its result alone."""

import numpy as np

from experiments.matching.gradient_matching.claims import relative
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(10.0, 6.2, (2, 3))
    sizes, lost = dataset.n.values, 0
    shown = ("mismatching", "random", "best of 5", "matching", "matching, prefix", "moments")
    for rule, color, marker in zip(shown, style.COLOURS[::-1], style.MARKERS, strict=True):
        for ax, values in ((axes[0], dataset.error), (axes[1], dataset.gap / dataset.expected)):
            runs = values.sel(rule=rule).transpose("run", "n")
            x = sizes * 1.05 ** (shown.index(rule) - 2.5)
            lost += style.band(ax, x, runs, rule, color, marker)
    rest = float(dataset.pool_error.median())
    axes[0].axhline(rest, color=style.BLACK, lw=1.2, label="the whole pool")
    axes[1].axhline(1, color=style.BLACK, lw=1.2)
    axes[0].set(ylabel="error on queries", ylim=(rest / 2, 30 * settings.d))
    axes[1].set(ylabel="objective / expected of a random subset")
    axes[0].set_title("error against n")
    axes[1].set_title("objective against n")
    for ax in axes[:2]:
        style.log_axes(ax, x=True, y=True, ticks=sizes)
        ax.set(xlabel="n of a pool of " + str(settings.m))
    axes[0].legend(loc="upper right")
    lost += rank(axes[2], dataset)
    lost += lesser(axes[3:], dataset)
    low = relative(dataset).sel(rule="matching").median("run")
    style.caption(
        drawn,
        f"A stack of {settings.depth} steps of descent learns from n of {settings.m} noisy "
        f"demonstrations (d = {settings.d}, noise {settings.noise_std:g}). Matched gradients leave "
        f"{float(low.min()):.2g} to {float(low.max()):.2g} of the error of random subsets. "
        f"Median of {settings.runs} runs and the middle 80 % of them; random is the median of "
        f"{settings.random_draws} draws; {lost} numbers left out as not finite. "
        f"e, f: n = {settings.ablation_size}.",
    )
    return drawn


def rank(ax, dataset):
    """All rules at three sizes, the best on average at the top."""
    ratio, lost = relative(dataset), 0
    average = np.log(ratio.median("run")).mean("n")
    order = average.sortby(average).rule.values[::-1]
    sizes = dataset.n.values
    for i, n in enumerate(sizes[len(sizes) > 1 :: max(1, len(sizes) // 3)][:3]):
        runs = ratio.sel(n=n, rule=order).transpose("run", "rule").values
        low, mid, high = np.quantile(runs, [0.1, 0.5, 0.9], axis=0)
        y = np.arange(len(order)) + 0.22 * (1 - i)
        ax.errorbar(
            mid,
            y,
            xerr=[mid - low, high - mid],
            fmt=style.MARKERS[i],
            color=style.COLOURS[i],
            label=f"n = {n}",
            elinewidth=0.8,
        )
        lost += int(np.sum(~np.isfinite(runs)))
    ax.axvline(1, color="grey", lw=0.8, ls="--")
    ax.set_yticks(np.arange(len(order)), order)
    style.log_axes(ax, x=True, ticks=(0.03, 0.1, 0.3, 1, 3, 10))
    ax.set(xlabel="error / that of a random subset", xlim=(0.03, 30))
    ax.set_title("all rules")
    ax.legend(loc="upper right")
    return lost


def lesser(axes, dataset):
    """Small pools, and the three ablations."""
    settings, lost = results.config_of(dataset), 0
    ratio = dataset.small / dataset.small.sel(how="exact")
    for how, color, marker in zip(
        ("swaps", "greedy", "random"), style.COLOURS, style.MARKERS, strict=False
    ):
        runs = ratio.sel(how=how).transpose("run", "pool")
        lost += style.band(axes[0], dataset.pool.values, runs, how, color, marker)
    axes[0].axhline(1, color=style.BLACK, lw=1.2, label="the best subset")
    axes[0].set(xlabel="pool", ylabel="objective / least possible", xticks=dataset.pool.values)
    axes[0].set_title(f"all subsets of {settings.small_size} tried")
    axes[0].legend(loc="upper left")
    base = dataset.pool_error
    for name, axis, label, color, marker in (
        ("by_used", "used", "checkpoints used", style.COLOURS[0], "o"),
        ("by_length", "length", "prefix tokens", style.COLOURS[1], "s"),
    ):
        runs = (dataset[name] / base).transpose("run", axis)
        lost += style.band(axes[1], dataset[axis].values, runs, label, color, marker)
    axes[1].axhline(1, color=style.BLACK, lw=1.2, label="the whole pool")
    axes[1].set(xlabel="how many", ylabel="error / that of the whole pool")
    axes[1].set_title("what is trained")
    axes[1].legend()
    places = np.arange(len(dataset.swaps))
    gap = dataset.gap_by_swaps / dataset.gap_by_swaps.isel(swaps=0)
    error = dataset.by_swaps / dataset.by_swaps.isel(swaps=0)
    for values, label, color, marker in (
        (gap, "objective", style.COLOURS[0], "o"),
        (error, "error", style.COLOURS[1], "s"),
    ):
        runs = values.transpose("run", "swaps")
        lost += style.band(axes[2], places, runs, label, color, marker)
    axes[2].set_xticks(places, [str(count) for count in dataset.swaps.values])
    axes[2].set(xlabel="swaps allowed", ylabel="over that of greed alone")
    axes[2].set_title("swaps")
    axes[2].legend()
    return lost
