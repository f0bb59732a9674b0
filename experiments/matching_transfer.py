"""Do subsets that match gradients on a small model teach larger ones better than random ones?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments import style
from experiments.configs.matching_transfer import TIERS, Config
from experiments.parts import stacks
from experiments.parts.transferring import (
    RULES,
    SMALL,
    choose,
    descents,
    draw,
    errors,
    names,
    prefixes,
    targets,
)
from lsa_lab import results
from lsa_lab.claims import about_the_median

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr
    from scipy.stats import rankdata

    root = jax.random.key(config.seed)
    keys = [jax.random.fold_in(root, tag) for tag in range(3)]
    pool, asked = jax.jit(partial(draw, config))(keys[0])
    learners = jnp.asarray(prefixes(config, pool, keys[1], progress))
    chosen = np.asarray(choose(config, pool, learners, jax.random.split(keys[2], len(pool.y))))
    rows, split = np.arange(len(chosen))[:, None, None], (config.runs, config.pools)

    def by_run(values, dtype=float):
        return jnp.asarray(np.asarray(values).reshape(*split, *np.shape(values)[1:]), dtype)

    picked = [np.asarray(part)[rows, chosen] for part in (pool.x, pool.y)]
    parts = [*picked, asked.x, asked.clean]
    found, status = [], {}
    x, y, *queries = map(by_run, parts)
    found.extend(np.asarray(descents(config, x, y, queries)))
    x, y, *queries = (by_run(part, jnp.float32) for part in parts)
    for name, stack in targets(config).items():
        label = f"matching_transfer: {name}"
        run = stacks.trained(stack, config.runs, config.seed, label, progress)
        found.append(
            np.asarray(errors(stacks.predictions(stack), run.params, x, y, queries), float)
        )
        status[name] = [one.kind for one in run.status]
    error = np.stack(found)  # [targets, R, P, S]
    ranks = rankdata(error, axis=-1)
    alone = rankdata(error[..., len(RULES) :], axis=-1)
    correlations = [np.einsum("trps,urps->turp", a, a) for a in map(_standard, (ranks, alone))]
    axes = ("target", "run", "pool")
    return xr.Dataset(
        {
            "chosen": ((*axes, "rule"), error[..., : len(RULES)]),
            "random": ((*axes, "subset"), error[..., len(RULES) :]),
            "spearman": (("subsets", "target", "other", "run"), np.array(correlations).mean(-1)),
            "status": (("trained", "run"), np.array(list(status.values()))),
        },
        {
            "target": names(config),
            "other": names(config),
            "trained": list(status),
            "rule": list(RULES),
            "subsets": ["all", "random"],
        },
    )


def _standard(ranks):  # [..., S] -> of mean 0 and, with unequal ranks, length 1
    centred = ranks - ranks.mean(-1, keepdims=True)
    return centred / np.maximum(np.linalg.norm(centred, axis=-1, keepdims=True), 1e-12)


def ratios(dataset):  # [target, run, rule]
    """Error of the chosen subset over that of the median random one, in each run's median pool."""
    return (dataset.chosen / dataset.random.median("subset")).median("pool")


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(9.6, 4.2, (1, 2))
    ratio, targets, lost = ratios(dataset), list(dataset.target.values), 0
    places = np.arange(len(targets))
    for i, rule in enumerate(RULES):
        runs = ratio.sel(rule=rule).transpose("run", "target")
        spot = places + 0.13 * (i - (len(RULES) - 1) / 2)
        lost += style.band(axes[0], spot, runs, rule, style.COLOURS[i], style.MARKERS[i])
    top, off = 1000.0, ratio.sel(rule="mismatched").median("run")
    for place in places[off.values > top]:
        axes[0].annotate("↑", (place + 0.26, top), ha="center", va="top", color=style.COLOURS[4])
    axes[0].axhline(1, color="grey", lw=0.8)
    axes[0].set_ylim(0.02, top)
    style.log_axes(axes[0], y=True)
    axes[0].set_xticks(places, targets, rotation=40, ha="right", rotation_mode="anchor")
    axes[0].set(ylabel="error over that of the median random subset")
    axes[0].set_title("below 1 the choice transfers")
    axes[0].legend(loc="upper right")
    ax, rank = axes[1], dataset.spearman.median("run")
    both = np.tril(rank.sel(subsets="all")) + np.triu(rank.sel(subsets="random"), 1)
    image = ax.imshow(both, vmin=-1, vmax=1, cmap="RdBu_r")
    for i, j in np.ndindex(both.shape):
        ink = "white" if abs(both[i, j]) > 0.7 else "black"
        ax.text(j, i, f"{both[i, j]:.2f}", ha="center", va="center", fontsize=6, color=ink)
    ax.set_xticks(places, targets, rotation=40, ha="right", rotation_mode="anchor")
    ax.set_yticks(places, targets)
    ax.set_title("rank correlation")
    drawn.colorbar(image, ax=ax, shrink=0.8)
    finished = int((dataset.status != "diverged").sum())
    spans = {
        rule: [float(end(ratio.sel(rule=rule).median("run"))) for end in (np.min, np.max)]
        for rule in ("prefix", "linear proxy")
    }
    said = ", ".join(f"{low:.2f} to {high:.2f} ({rule})" for rule, (low, high) in spans.items())
    style.caption(
        drawn,
        f"Left: {settings.n} of {settings.m} noisy demonstrations, chosen to match the pool's "
        "gradients on a small model, used on others: the error is that of the median random subset "
        f"times {said}. Median of {settings.runs} runs and the middle 80 % of them; {lost} left "
        f"out as not finite; {finished} of {dataset.status.size} trainings finished; arrows: off "
        "the top. Right: do subsets rank alike? Spearman's correlation in the median run, random "
        "subsets above the diagonal, all below. "
        f"d = {settings.d}, noise {settings.noise_std:g}.",
    )
    return drawn


def claims(dataset):
    settings = results.settings(dataset)
    ratio, rank = ratios(dataset), dataset.spearman.sel(target=SMALL, drop=True)
    others = [name for name in dataset.target.values if name != SMALL]

    def worst(samples, sign=1):  # [target, run] -> [R], of the target with the worst median
        samples = samples.sel(target=others) * sign
        return sign * samples.isel(target=int(samples.median("run").argmax("target"))).values

    paper, source = "A3, transfer to larger models", "A3; modelled on its rank correlation"
    over = "error over that of the median random subset"
    median = f"median over runs, at the worst of {len(others)} targets, of the"
    proxy, literal = (ratio.sel(rule=rule) for rule in ("linear proxy", "prefix"))
    found = [
        about_the_median(
            f"matching_transfer.{name}",
            paper,
            f"Subsets that match gradients of {what} help every larger model",
            f"{median} {over} <= {settings.gain:g}",
            worst(samples),
            at_most=settings.gain,
        )
        for name, what, samples in (
            ("proxy", "the linear proxy", proxy),
            ("prefix", "a prefix of one-layer attention", literal),
        )
    ]
    found += [
        about_the_median(
            "matching_transfer.mismatching",
            "A3, figure 4",
            "Subsets that mismatch gradients harm every larger model",
            f"median over runs, at the least harmed target, of the {over} >= {settings.gain:g}",
            worst(ratio.sel(rule="mismatched"), sign=-1),
            at_least=settings.gain,
        ),
        about_the_median(
            "matching_transfer.literal",
            "derived here",
            "A prefix's gradients, a linear map of the proxy's, choose as well as these",
            f"{median} prefix's error over the linear proxy's <= {settings.no_loss:g}",
            worst(literal / proxy),
            at_most=settings.no_loss,
        ),
    ]
    for subsets, what in (("all", "Chosen, mismatched and random"), ("random", "Random")):
        correlation = rank.sel(subsets=subsets).rename(other="target")
        found.append(
            about_the_median(
                f"matching_transfer.rank_{subsets}",
                source,
                f"{what} subsets rank alike on one layer and on every larger model",
                f"{median} mean over pools of Spearman's correlation >= {settings.rank:g}",
                worst(correlation, sign=-1),
                at_least=settings.rank,
            )
        )
    return found
