"""How many matched checkpoints make a set equal to its pool, and for which models?"""

import operator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments import style
from experiments.configs.matching_is_exact import TIERS, Config
from experiments.parts import matching, stacks
from experiments.parts.twins import bound_of, gaps, linear_stacks, subsets, twins
from lsa_lab import estimators, prompts, results
from lsa_lab.claims import about_the_median
from lsa_lab.models import linear_attention
from lsa_lab.selection import prefix
from lsa_lab.tasks import pools

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]

PATHS = ("proxy", "descent")  # minibatches of Adam; the stack's own full-batch steps
SQUARES = ("free", "matched")  # the mean of y², of which no gradient knows


def softmax_stacks(config, progress):  # -> Params [R, ...] twice, a few of them in turn
    """Before and after training."""
    stack, label = stacks.stack_of("softmax", config), "matching_is_exact: softmax"
    run = stacks.trained(stack, config.trained, config.seed, label, progress)
    turns = np.arange(config.runs) % config.trained
    watched = jax.tree.map(lambda leaf: np.asarray(leaf[turns], float), run.history["watch"])
    return [jax.tree.map(operator.itemgetter((slice(None), look)), watched) for look in (0, -1)]


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    root = jax.random.key(config.seed)
    keys = [jax.random.split(jax.random.fold_in(root, tag), config.runs) for tag in range(5)]
    covariance = jnp.diag(jnp.linspace(*config.spectrum, config.d))
    task = pools.PoolTask(
        config.m + config.n, config.d, covariances=covariance[None], noise_std=config.noise_std
    )
    both, queries = matching.draw(task, config.queries, keys[0])
    pool = jax.tree.map(lambda leaf: leaf[:, : config.m], both)
    recipe = prefix.Recipe(batch=config.batch, learning_rate=config.rate, saves=config.most)
    label = "matching_is_exact"
    proxy = matching.linear_checkpoints(pool, recipe, keys[1], label, progress)

    @jax.jit
    def make(both, pool, proxy, keys):  # -> [R, P, C+1, 2, n, e], [R, m, e]
        def one(both, pool, proxy, key):
            whole = prompts.Prompt(pool.x, pool.y, pool.x[0], pool.y[0])
            steps = jnp.full(config.most - 1, config.step)
            paths = (proxy, estimators.gradient_descent(whole, steps))
            others = pools.tokens(both)[config.m :]
            sets = [twins(config, pools.tokens(pool), others, path, key) for path in paths]
            return jnp.stack(sets), pools.tokens(pool)

        return jax.vmap(one)(both, pool, proxy, keys)

    sets, rows = make(both, pool, proxy, keys[2])
    if not np.isfinite(sets).all():
        raise ValueError("a twin's second moment is not positive definite: raise n")
    linear = linear_stacks(config, keys[3][0])
    flat = sets.reshape(config.runs, -1, *sets.shape[-2:])
    run = partial(gaps, linear_attention.forward)
    by_linear = np.stack([run(weights, flat, rows, queries.x) for weights in linear.values()])
    forward, proxied = stacks.forward(stacks.stack_of("softmax", config)), sets[:, 0, :, 1]
    by_softmax = np.stack(
        [gaps(forward, some, proxied, rows, queries.x) for some in softmax_stacks(config, progress)]
    )
    chosen = jax.vmap(partial(subsets, config))(pool, proxy, keys[4])
    picked = jax.vmap(lambda rows, indices: rows[indices])(rows, chosen)
    deep = linear[f"descent, {max(config.depths)}"]
    of_subsets = run(deep, picked, rows, queries.x)
    one_layer = jax.vmap(partial(bound_of, config, covariance))(pool, chosen, queries.x)
    shape = (len(linear), config.runs, len(PATHS), config.most + 1, len(SQUARES))
    counts = np.arange(config.most + 1)
    picked_dims = ("run", "pick")
    return xr.Dataset(
        {
            "linear": (("model", "run", "path", "matched", "square"), by_linear.reshape(shape)),
            "softmax": (("weights", "run", "matched"), by_softmax),
            "subset": (picked_dims, np.asarray(of_subsets)),
            "tight": (picked_dims, np.asarray(one_layer[0])),
            "one_layer": (picked_dims, np.asarray(one_layer[1])),
            "bound": (picked_dims, np.asarray(one_layer[2])),
        },
        {
            "model": list(linear),
            "path": list(PATHS),
            "square": list(SQUARES),
            "matched": counts,
            "weights": ["random", "trained"],
        },
    )


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(9.0, 6.4, (2, 2))
    counts, knee, lost = dataset.matched.values, settings.d + 1, 0
    floor = np.finfo(float).eps / 10
    for ax, path in zip(axes[:2], PATHS, strict=True):
        for i, depth in enumerate(settings.depths):
            there = dataset.linear.sel(model=f"descent, {depth}", path=path, square="free")
            runs = np.maximum(there.transpose("run", "matched"), floor)
            label = f"{depth} layer{'s' * (depth > 1)}"
            x = counts + 0.08 * (i - 1.5)
            lost += style.band(ax, x, runs, label, style.COLOURS[i], style.MARKERS[i])
    axes[0].set_title("checkpoints of a proxy trained on batches")
    axes[1].set_title("checkpoints of the stack's own descent")
    deepest = dataset.linear.sel(model=f"random, {max(settings.random_depths)}", path="proxy")
    shown = [(f"random linear, y² {square}", deepest.sel(square=square)) for square in SQUARES]
    shown += [(f"softmax {kind}", dataset.softmax.sel(weights=kind))
              for kind in dataset.weights.values]  # fmt: skip
    for i, (name, there) in enumerate(shown):
        runs = np.maximum(there.transpose("run", "matched"), floor)
        x = counts + 0.06 * (i - 2)
        lost += style.band(axes[2], x, runs, name, style.COLOURS[i], style.MARKERS[i])
    axes[2].set_title("other weights, other attention")
    for ax in axes[:3]:
        ax.axvline(knee, color="grey", lw=0.8, ls="--")
        ax.axhspan(floor, settings.exact, color="grey", alpha=0.12, lw=0)
        ax.set(xlabel="matched checkpoints", ylabel="gap / size of predictions", xticks=counts)
        ax.set_ylim(floor / 2, 30)
        style.log_axes(ax, y=True)
        ax.legend(loc="center left", bbox_to_anchor=(0, 0.42))
    lost += chosen_panel(axes[3], dataset)
    soft = dataset.softmax.isel(matched=-1).median("run")
    style.caption(
        drawn,
        f"Sets with the pool's mean gradients at some checkpoints, otherwise drawn anew (d = "
        f"{settings.d}, dashed: d + 1). Descent of L layers cannot tell them from the pool from "
        f"d + 1 checkpoints on (a), or from L of its own path (b); any linear stack if y² agrees "
        f"too; softmax still moves by {float(soft.min()):.2g} to {float(soft.max()):.2g} (c). d: "
        f"{settings.n} chosen from {settings.m} match only nearly. Median of {settings.runs} runs "
        f"and the middle 80 %; {lost} numbers left out as not finite. Shaded: rounding.",
    )
    return drawn


def chosen_panel(ax, dataset):
    """Subsets of the pool, matched as well as they can be."""
    settings, lost = results.settings(dataset), 0
    most, depth = settings.most, max(settings.depths)
    rows = (
        (dataset.subset, f"{depth} layers"),
        (dataset.one_layer, "one layer"),
        (dataset.bound, "bound for one layer"),
    )
    for i, (values, name) in enumerate(rows):
        random = values[:, most:].median("pick")
        runs = np.concatenate([random.values[:, None], values[:, :most].values], axis=1)
        x = np.arange(most + 1) + 0.08 * (i - 1)
        lost += style.band(ax, x, runs, name, style.COLOURS[i], style.MARKERS[i])
    ax.axvline(settings.d + 1, color="grey", lw=0.8, ls="--")
    ax.set_xticks(np.arange(most + 1), ["random", *map(str, range(1, most + 1))])
    ax.set(xlabel="checkpoints used", ylabel="gap / size of predictions")
    ax.set_title("subsets chosen from the pool")
    style.log_axes(ax, y=True)
    ax.legend()
    return lost


def worst(values, sign=1.0):  # [..., run] -> [R], where the median over runs is largest
    flat = values.transpose("run", ...).values.reshape(values.sizes["run"], -1)
    return flat[:, np.argmax(sign * np.median(flat, axis=0))]


def claims(dataset):
    settings = results.settings(dataset)
    knee, most = settings.d + 1, settings.most
    linear, names = dataset.linear, dataset.model.values
    descent = [name for name in names if name.startswith("descent")]
    deep = [f"descent, {depth}" for depth in settings.depths if depth > 1]
    other = [name for name in names if not name.startswith("descent")]
    proxy = linear.sel(path="proxy")
    own = linear.sel(path="descent", square="free")
    own_at = np.stack(
        [own.sel(model=f"descent, {depth}", matched=min(depth, knee)).values
         for depth in settings.depths]
    )  # fmt: skip
    before = np.stack(
        [own.sel(model=f"descent, {depth}", matched=min(depth, knee) - 1).values
         for depth in settings.depths]
    )  # fmt: skip
    own_worst = own_at[np.argmax(np.median(own_at, axis=1))]
    own_before = before[np.argmin(np.median(before, axis=1))]
    subset = dataset.subset[:, knee - 1] / dataset.subset[:, most:].median("pick")
    here, a3 = "derived here", "derived here; A3 (CLG)"
    gap = "median over runs of the gap at the"
    rows = (
        ("knee", a3, "d + 1 matched checkpoints make any depth of descent answer as for the pool",
         f"{gap} worst depth",
         worst(proxy.sel(model=descent, matched=knee, square="free")), "at_most", "exact"),
        ("before_the_knee", a3, "d checkpoints do not, behind more than one layer",
         f"{gap} best depth above one",
         worst(proxy.sel(model=deep, matched=knee - 1, square="free"), -1.0),
         "at_least", "clear"),
        ("own_path", here, "On its own path descent of L layers needs only min(L, d + 1)",
         f"{gap} worst depth", own_worst, "at_most", "exact"),
        ("own_path_before", here, "One checkpoint less of its own path is clearly not enough",
         f"{gap} best depth (reworded after a first run)", own_before, "at_least", "clear"),
        ("any_stack", here, "With y² matched too, no random linear stack sees a change",
         f"{gap} worst stack",
         worst(proxy.sel(model=other, matched=knee, square="matched")), "at_most", "exact"),
        ("square", here, "No gradient knows of y²: without it random stacks see a change",
         f"{gap} best random stack",
         worst(proxy.sel(model=other, matched=knee, square="free"),
               -1.0), "at_least", "clear"),
        ("softmax", here, "Softmax departs: equal moments are not enough",
         f"{gap} better of random and trained weights",
         worst(dataset.softmax.sel(matched=knee), -1.0), "at_least", "departs"),
        ("bound", here, "One layer's gap is at most |Γ⁻¹x| times the gap of mean gradients at 0",
         "median over runs of the gap over its bound, at the worst subset and query",
         dataset.tight.max("pick").values, "at_most", "bound"),
        ("subset", a3, "A subset chosen to match d + 1 checkpoints comes near to its pool",
         f"median over runs of the gap of {max(settings.depths)} layers over that of a random one",
         subset.values, "at_most", "subset"),
    )  # fmt: skip
    return [
        about_the_median(
            f"matching_is_exact.{name}",
            source,
            statement,
            f"{criterion} {'<=' if side == 'at_most' else '>='} {getattr(settings, limit):g}",
            samples,
            **{side: getattr(settings, limit)},
        )
        for name, source, statement, criterion, samples, side, limit in rows
    ]
