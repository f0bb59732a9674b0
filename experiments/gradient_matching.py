"""Does a subset that matches the pool's gradients teach better than its rivals?"""

from functools import partial

import jax
import numpy as np

from experiments import style
from experiments.configs.gradient_matching import TIERS, Config
from experiments.parts import matching
from experiments.parts.matching_rules import (
    FIXED,
    OWN,
    RIVALS,
    ablate,
    by_rule,
    choose,
    exactly,
    judge,
    learned,
    rank_all,
)
from lsa_lab import results
from lsa_lab.claims import about_the_median
from lsa_lab.selection import gradient_matching
from lsa_lab.tasks import pools

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    root = jax.random.key(config.seed)
    keys = [jax.random.split(jax.random.fold_in(root, tag), config.runs) for tag in range(5)]
    task = pools.PoolTask(config.m, config.d, noise_std=config.noise_std)
    pool, asked = matching.draw(task, config.queries + config.validation, keys[0])
    asked = asked.replace(law=None)
    queries = jax.tree.map(lambda leaf: leaf[:, : config.queries], asked)
    validation = jax.tree.map(lambda leaf: leaf[:, config.queries :], asked)
    noise = jax.random.normal(jax.random.fold_in(root, 5), validation.y.shape)
    validation = validation.replace(y=validation.y + config.noise_std * noise)
    linear, prefixes, features = learned(config, pool, keys, progress)
    weighed = jax.jit(jax.vmap(partial(judge, config)))

    def judged(indices):  # [R, S, n], filled up to one S for all
        chosen = matching.members(indices, config.m)
        most = len(FIXED) + config.tries + config.random_draws + config.queries
        full = np.concatenate([chosen, np.ones((config.runs, most - chosen.shape[1], config.m))], 1)
        found = jax.device_get(weighed(pool, queries, validation, features[:, 0], full))
        return [values[:, : chosen.shape[1]] for values in found]

    orders = jax.vmap(partial(rank_all, config))(pool, queries.x, keys[4])
    found = [
        by_rule(config, judged(choose(config, size, pool, features, orders, keys[3])))
        for size in config.sizes
    ]
    expected = jax.vmap(gradient_matching.random_expectation, (0, None))
    small = [jax.lax.map(partial(exactly, config, m), linear) for m in config.small_pools]
    squares, _, gap = judged(jax.vmap(partial(ablate, config))(linear, prefixes))
    parts = np.cumsum([len(config.used), len(config.prefix_lengths)])
    by_used, by_length, by_swaps = np.split(squares.mean(2), parts, axis=1)
    everyone = judged(np.tile(np.arange(config.m), (config.runs, 1, 1)))[0]
    dims = ("run", "n", "rule")
    return xr.Dataset(
        {
            "error": (dims, np.stack([error for error, _ in found], axis=1)),
            "gap": (dims, np.stack([gap for _, gap in found], axis=1)),
            "expected": (
                dims[:2],
                np.stack([np.sqrt(expected(features[:, 0], n)) for n in config.sizes], axis=1),
            ),
            "by_used": (("run", "used"), by_used),
            "by_length": (("run", "length"), by_length),
            "by_swaps": (("run", "swaps"), by_swaps),
            "gap_by_swaps": (("run", "swaps"), gap[:, parts[1] :]),
            "pool_error": ("run", everyone.mean((1, 2))),
            "small": (("run", "pool", "how"), np.stack(small, axis=1)),
        },
        {
            "n": list(config.sizes),
            "rule": [*FIXED, *OWN],
            "length": list(config.prefix_lengths),
            "used": list(config.used),
            "swaps": list(config.budgets),
            "pool": list(config.small_pools),
            "how": ["exact", "swaps", "greedy", "random"],
        },
    )


def relative(dataset):  # [run, n, rule]
    """Errors over that of the median random subset."""
    return dataset.error / dataset.error.sel(rule="random")


def plot(dataset):
    settings = results.settings(dataset)
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
    settings, lost = results.settings(dataset), 0
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


def worst(ratio, sign=1.0):  # [run, n, ...] -> [R], the largest median of all places
    flat = ratio.transpose("run", ...).values.reshape(ratio.sizes["run"], -1)
    return flat[:, np.argmax(sign * np.median(flat, axis=0))]


def claims(dataset):
    settings = results.settings(dataset)
    ratio, size = relative(dataset), settings.ablation_size
    matched = dataset.error.sel(rule="matching")
    others = [rule for rule in dataset.rule.values if rule in RIVALS]
    log = np.log(dataset.error.sel(rule=others)).mean("n").median("run")
    best = str(log.rule.values[int(np.argmin(log.values))])
    by_length = dataset.by_length / matched.sel(n=size)
    of_small = dataset.small / dataset.small.sel(how="exact")
    of_swaps = (dataset.gap_by_swaps / dataset.gap_by_swaps.isel(swaps=0)).isel(swaps=-1)
    first = (dataset.by_used.isel(used=0) / dataset.by_used.isel(used=-1)).values
    a3, here = "A3 (CLG)", "derived here; A3 (CLG)"
    over = "median over runs of the error over that of a random subset, at the"
    rows = (
        ("random", a3, "Matched demonstrations teach better than random ones at every size",
         f"{over} worst size", worst(ratio.sel(rule="matching")), "at_most", "clear"),
        ("mismatched", f"{a3}, figure 4", "Mismatched demonstrations teach worse than random ones",
         f"{over} size where it is least (random subsets redrawn after a first run, in which it "
         "failed)", worst(ratio.sel(rule="mismatching"), -1.0),
         "at_least", "worse"),
        ("rivals", a3, f"No rival teaches better; the best of them on average is {best!r}",
         "median over runs of the error over that of this rival, at the worst size",
         worst(matched / dataset.error.sel(rule=best)), "at_most", "best"),
        ("pool", here, f"{size} matched demonstrations teach nearly as the whole pool does",
         f"median over runs of the error over that of all {settings.m}",
         (matched.sel(n=size) / dataset.pool_error).values, "at_most", "like_the_pool"),
        ("prefix", here, "A prefix of any length is as good a learner as the linear proxy",
         f"median over runs of the error over that of the proxy's choice, n = {size}, at the worst "
         "length", worst(by_length), "at_most", "same"),
        ("exact", here, "Greed with swaps comes near to the best subset of a small pool",
         "median over runs of the objective over the least possible, at the worst pool",
         worst(of_small.sel(how="swaps")), "at_most", "near_exact"),
        ("swaps", a3, "Swaps improve what greed has chosen",
         f"median over runs of the objective over that of greed alone, n = {size}",
         of_swaps.values, "at_most", "swaps"),
        ("checkpoints", a3, "Gradients along the whole training choose better than the first",
         f"median over runs of the error with one checkpoint over that with all, n = {size}",
         first, "at_least", "checkpoints"),
    )  # fmt: skip
    return [
        about_the_median(
            f"gradient_matching.{name}",
            source,
            statement,
            f"{criterion} {'<=' if side == 'at_most' else '>='} {getattr(settings, bound)}",
            samples,
            **{side: getattr(settings, bound)},
        )
        for name, source, statement, criterion, samples, side, bound in rows
    ]
