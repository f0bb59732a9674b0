"""Which norms of the implicit updates does truncation lower, and which not?"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments import style
from experiments.configs.truncation_norms import CLAIMS, TIERS, Config
from experiments.parts import stacks
from experiments.parts.update_norms import (
    MODULES,
    NORMS,
    READINGS,
    as_weights,
    counterexample,
    growth,
    merge,
    mlp_growth,
    random_stack,
    summarise,
)
from lsa_lab import results
from lsa_lab.analyses import clipping
from lsa_lab.claims import about_the_mean

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    stack = replace(stacks.stack_of("linear", config), noise_std=config.noise_std, clip=config.clip)
    run = stacks.trained(stack, config.runs, config.training_seed, "linear stacks", progress)
    whole = np.array([one.kind != "diverged" for one in run.status])
    rates = jnp.asarray(clipping.every_rate(config.d + 1)[1:])

    @jax.jit
    def everything(key, params):
        key_random, key_mlp, key_prompts = jax.random.split(key, 3)
        each = (config.seeds, config.draws)
        make = jax.vmap(jax.vmap(lambda key: random_stack(key, config)))
        weights, prompts = make(jax.random.split(key_random, each))
        behind = jax.vmap(jax.vmap(lambda *row: mlp_growth(*row, rates, config)))
        behind = behind(jax.random.split(key_mlp, each), weights, prompts)

        law = partial(stacks.draw, law=stacks.task(stack), size=config.draws)
        asked = jax.vmap(law)(jax.random.split(key_prompts, whole.sum()))
        ours = as_weights(params.w_pv[:, :, 0], params.w_kq[:, :, 0])[:, None]
        ours = jnp.broadcast_to(ours, (len(ours), config.draws, *ours.shape[2:]))
        # Random stacks, the same with merged scores, and trained ones: one program for all.
        rows = (weights, prompts), (merge(weights), prompts), (ours, asked)
        rows = jax.tree.map(lambda *some: jnp.concatenate([x.astype(float) for x in some]), *rows)
        grown = jax.vmap(lambda *row: growth(*row, rates))
        found = jax.lax.map(lambda row: grown(*row), rows)  # [2S + R, B, 4, 3, L, Q]
        factored, merged, ours = jnp.split(found, [config.seeds, 2 * config.seeds])
        both = jnp.concatenate([factored, merged[:, :, :, 2:]], axis=3)
        found = [summarise(some, config.rounding) for some in (both, ours[:, :, :, ::2])]
        return *found, summarise(behind, config.rounding)[0], counterexample()

    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, float)[whole], run.params)
    key = jax.random.key(config.seed)
    on_random, on_trained, behind, example = everything(key, params)
    data = {
        "mlp_rises": (("seed", "reading", "rank"), np.asarray(behind)),
        "example": (("weights",), np.asarray(example)),
        "status": (("start",), [str(one) for one in run.status]),
    }
    names = ("rises", "typical", "largest")
    for name, ours, drawn in zip(names, on_trained, on_random, strict=True):
        data[f"random_{name}"] = (("seed", "norm", "module", "layer", "rank"), np.asarray(drawn))
        own = ("run", "norm", "trained_module", "layer", "rank")
        data[f"trained_{name}"] = (own, np.asarray(ours))
    coordinates = {
        "norm": list(NORMS),
        "module": list(MODULES),
        "trained_module": ["W_V", "merged"],
        "layer": np.arange(1, config.depth + 1),
        "rank": np.arange(config.d, 0, -1),
        "reading": list(READINGS),
        "weights": ["whole", "truncated"],
    }
    return xr.Dataset(data, coordinates)


def rows_of(dataset):  # -> {label: (provable, share of draws [S], of trained prompts [R] or None)}
    """The table of I.2.7: averaged over the ranks and, where there are several, the layers."""
    first, later, last = slice(0, 1), slice(1, None), slice(0, -1)

    def shares(norm, module, layers):
        found = dataset.random_rises.sel(norm=norm, module=module).isel(layer=layers)
        ours = None
        if module in dataset.trained_module:
            ours = dataset.trained_rises.sel(norm=norm, trained_module=module)
            ours = ours.isel(layer=layers).mean(("layer", "rank")).values
        return found.mean(("layer", "rank")).values, ours

    table = {f"UB, {name}": (True, *shares("bound", name, slice(None))) for name in MODULES}
    table["|G_t|, W_V, any t"] = (True, *shares("own", "W_V", slice(None)))
    table["|G_1|, W_Q"] = (True, *shares("own", "W_Q", first))
    table["|G_1|, merged"] = (True, *shares("own", "merged", first))
    for i, reading in enumerate(READINGS):
        behind = dataset.mlp_rises.sel(reading=reading).mean("rank").values
        table[f"|{reading}|"] = (i == 0, behind, None)
    table["|G_1|, W_K"] = (False, *shares("own", "W_K", first))
    for name in ("W_K", "W_Q", "merged"):
        table[f"|G_t|, {name}, t > 1"] = (False, *shares("own", name, later))
    for name in MODULES:
        table[f"a later |G|, {name}"] = (False, *shares("later", name, last))
    for name in MODULES:
        table[f"Σ|G|², {name}"] = (False, *shares("sum", name, last))
    return table


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(9.0, 4.6, (1, 3))
    ax, table = axes[0], rows_of(dataset)
    for i, (provable, *both) in enumerate(table.values()):
        color = style.COLOURS[0 if provable else 1]
        for shares, aside, looks in zip(both, (-0.15, 0.15), ("o", "s"), strict=True):
            if shares is not None:
                ax.plot(np.quantile(shares, style.QUANTILES), [i + aside] * 2, color=color, lw=0.8)
                face = color if looks == "o" else "white"
                ax.plot(np.median(shares), i + aside, looks, color=color, mfc=face)
    ax.set(yticks=range(len(table)), yticklabels=list(table), ylim=(len(table) - 0.4, -0.6))
    ax.tick_params(axis="y", labelsize=6.5)
    ax.axvline(settings.rarely, color="grey", lw=0.8, ls="--")
    ax.set(xlabel="share in which it rises", xlim=(-0.04, 1.04))
    ax.set_title("norm, matrix truncated")

    ax, series = axes[1], {}
    share = dataset.random_rises.sel(norm="sum").mean("rank")
    ours = dataset.trained_rises.sel(norm="sum").mean("rank")
    for name in MODULES:
        series[name] = dataset.layer, share.sel(module=name).transpose("seed", "layer")
    for name in ours.trained_module.values:
        values = ours.sel(trained_module=name).transpose("run", "layer")
        series[f"{name}, trained"] = dataset.layer, values
    for i, (text, (layers, values)) in enumerate(series.items()):
        looks = (text, style.COLOURS[i], style.MARKERS[i])
        style.band(ax, layers.values + 0.1 * (i - 2.5), values, *looks)
    ax.set(xlabel="layer truncated", xticks=dataset.layer.values, ylim=(-0.04, 1.4))
    ax.set(yticks=np.linspace(0, 1, 6))
    ax.set(ylabel="share in which it rises")
    ax.set_title("Σ|G|², the sum in Theorem 2")
    ax.legend(loc="upper right", ncols=2)

    ax, ranks = axes[2], dataset["rank"].values
    for i, (name, layer) in enumerate((("W_V", 1), ("W_K", 1), ("W_Q", 1), ("W_Q", 2))):
        there = dataset.sel(norm="own", module=name, layer=layer)
        typical, largest = there.random_typical.median("seed"), there.random_largest.max("seed")
        style.line(ax, ranks, np.exp(typical), f"{name}, layer {layer}", style.COLOURS[i])
        style.line(ax, ranks, np.exp(largest), None, style.COLOURS[i], ":")
    before, after = dataset.example.values
    ax.plot([1], [after / before], "*", color=style.BLACK, ms=8, label="written down")
    ax.axhline(1, color="grey", lw=0.8, ls="--")
    style.log_axes(ax, y=True)
    ax.set(xlabel="rank kept", xticks=ranks, ylabel="|G| after / before")
    ax.set_title("|G_t| of that layer")
    ax.legend()
    left_out = sum("diverged" in str(one) for one in dataset.status.values)
    style.caption(
        drawn,
        f"Blue: provable, and it never rises. Orange: not provable, and it does. Dots: "
        f"{settings.seeds} seeds of {settings.draws} random stacks; squares: "
        f"{dataset.sizes['run']} trained stacks of merged weights on {settings.draws} prompts "
        f"each, {left_out} diverged and left out; median and the middle 80 %. a: mean over ranks "
        f"and layers, without the last layer where later |G| count. c: the median (lines) and the "
        f"worst (dotted) of all random stacks; the star is {before:.2g} becoming {after:.2g}. "
        f"Dashes: what counts as rare, and no change.",
    )
    return drawn


def claims(dataset):
    settings, table = results.settings(dataset), rows_of(dataset)
    found = {}  # [S] or [R] of each claim
    found["bounds"] = np.max([row[1] for name, row in table.items() if "UB" in name], axis=0)
    found["mlp"], found["mlp_with_residuals"] = (table[f"|{name}|"][1] for name in READINGS)
    own = {name: row for name, row in table.items() if name.startswith("|G")}
    found["provable"] = np.max([random for yes, random, _ in own.values() if yes], axis=0)
    ours = [ours for yes, _, ours in table.values() if yes and ours is not None]
    found["provable_when_trained"] = np.max(ours, axis=0)
    found["unprovable"] = min((row[1] for row in own.values() if not row[0]), key=np.mean)
    factored = dataset.sel(module=["W_V", "W_K", "W_Q"])
    overall = factored.random_rises.mean(("module", "layer", "rank"))
    found["own"], found["sum"] = (overall.sel(norm=norm).values for norm in ("own", "sum"))
    rises = dataset.trained_rises.sel(norm="sum")
    found["sum_when_trained"] = rises.stack(cell=[*rises.dims[1:]]).mean("cell").values
    total = dataset.random_typical.sel(norm="sum")
    cells = total.stack(cell=[*total.dims[1:]]).transpose("cell", "seed").values
    found["typical"] = max(cells, key=np.mean)
    moved = abs(factored.random_typical.sel(norm="sum")).mean(("module", "rank"))
    found["deep_is_steady"] = (moved.isel(layer=-1) - moved.isel(layer=0)).values
    error = np.abs(dataset.example.values - [0.1, 1.0]).max()
    found["counterexample"] = np.array([error, error])  # nothing random
    made = []
    for name, (source, statement, measured, side, bound) in CLAIMS.items():
        bound = getattr(settings, bound) if isinstance(bound, str) else bound
        criterion = f"{measured} {'<=' if side == 'at_most' else '>='} {bound:g}"
        row = (f"truncation_norms.{name}", source, statement, criterion, found[name])
        made.append(about_the_mean(*row, **{side: bound}))
    return made
