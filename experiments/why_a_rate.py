"""Why is there a best clipping rate, and can the spectrum tell it unsearched?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments import style
from experiments.configs.why_a_rate import CLAIMS, CONDITIONS, PREDICTORS, TIERS, Config
from experiments.parts import stacks
from experiments.parts.edited_risks import batches, curves, gains
from experiments.parts.rate_rules import (
    MATRICES,
    MODULES,
    SEARCHES,
    best_edits,
    best_rates,
    predicted_ranks,
    rank_correlations,
    regrets,
)
from lsa_lab import results
from lsa_lab.analyses import clipping
from lsa_lab.claims import about_the_mean

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]

RIVALS = ("prune", "project")


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    stack, key = stacks.clipped_stack(config), jax.random.key(config.seed)
    many = (config.runs, config.training_seed, "models to clip", progress)
    run = stacks.trained(stack, *many, looks=config.looks)
    key_prompts, key_directions = jax.random.split(key)
    rates = (*config.rates, clipping.DROP)
    splits = (clipping.by_magnitude, partial(clipping.by_random_direction, key_directions))
    found = {"change": [], "risk": [], "rival": [], "predicted": [], "gain": []}
    for condition, (validation, test, judges) in batches(key_prompts, stack, config).items():
        look = config.early if condition == "under-trained" else -1
        params = jax.tree.map(lambda leaf, at=look: jnp.asarray(leaf[:, at]), run.history["watch"])

        both = [curves(stack, params, batch, rates) for batch in (validation, test)]
        found["risk"].append([risk for risk, _ in both])
        found["change"].append([change for _, change in both])
        rivals = [curves(stack, params, test, config.rival_rates, split) for split in splits]
        found["rival"].append([change for _, change in rivals])
        change = both[0][1]
        searched = {name: best_edits(change, modules) for name, modules in SEARCHES.items()}
        if condition == "matched":
            matched = searched["of all"]
        edits = (*searched.values(), matched)
        found["gain"].append([gains(stack, params, judges, one, rates) for one in edits])
        pieces = clipping.by_singular_value(params, MATRICES)
        spectra = np.stack([np.asarray(pieces[name].values) for name in MATRICES], axis=2)
        found["predicted"].append(predicted_ranks(spectra, config.energy))
    axes = {
        "change": ("condition", "prompts", "run", "layer", "module", "rate"),
        "risk": ("condition", "prompts", "run"),
        "rival": ("condition", "way", "run", "layer", "module", "rival_rate"),
        "predicted": ("condition", "run", "layer", "matrix", "predictor"),
        "gain": ("condition", "search", "run"),
    }
    data = {name: (dims, np.array(found[name], float)) for name, dims in axes.items()}
    kept = [clipping.kept_rank(config.width, rate) for rate in config.rates]
    data["kept"] = (("rate",), [*kept, 0])
    data["status"] = (("run",), [str(one) for one in run.status])
    coordinates = {
        "condition": list(CONDITIONS),
        "prompts": ["validation", "test"],
        "layer": np.arange(1, config.depth + 1),
        "module": list(MODULES),
        "matrix": list(MATRICES),
        "rate": [*config.rates, 1.0],  # 1: dropped
        "way": list(RIVALS),
        "rival_rate": list(config.rival_rates),
        "predictor": list(PREDICTORS),
        "search": [*SEARCHES, "of all, matched"],
    }
    return xr.Dataset(data, coordinates)


def draw(ax, places, samples, label, i, of):
    """The i-th of several bands side by side; how many of its numbers are not finite."""
    x = np.asarray(places) + 0.14 * (i - (of - 1) / 2)
    return style.band(ax, x, samples, label, style.COLOURS[i], style.MARKERS[i])


def over_cells(values):
    """The geometric mean over layers and modules."""
    return np.exp(np.log(values).mean(("layer", "module")))


def risk_axis(ax):
    from matplotlib.ticker import LogLocator

    ax.set(ylabel="risk / unclipped")
    style.log_axes(ax, y=True)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")


def plot_harm(one, whole, dataset):
    """The risk after one matrix is clipped, and after a whole layer is dropped."""
    test = 1 + dataset.change.sel(prompts="test")
    first = np.unique(-dataset.kept.values, return_index=True)[1]  # one of the rates of a rank
    ranks, lost = dataset.kept.values[first], 0
    for i, name in enumerate(CONDITIONS):
        there = over_cells(test.sel(condition=name, module=list(MATRICES)).isel(rate=first))
        lost += draw(one, range(len(ranks)), there.transpose("run", "rate"), name, i, 4)
        layers = test.sel(condition=name, module="layer").isel(rate=-1).transpose("run", "layer")
        lost += draw(whole, dataset.layer.values, layers, name, i, 4)
    one.set(xlabel="rank kept of one matrix (0: dropped)", title="clipping one matrix")
    one.set_xticks(range(len(ranks)), [str(rank) for rank in ranks])
    whole.set(xlabel="layer dropped", xticks=dataset.layer.values, title="dropping a whole layer")
    risk_axis(one)
    risk_axis(whole)
    one.legend()
    return lost


def plot_best(ax, dataset, settings):
    """The gain by the best edit, on the prompts that chose it and on others."""
    there, lost = dataset.change.sel(prompts="validation").isel(rate=slice(None, -1)), 0
    hoped = -there.min(("layer", "module", "rate"))
    both = {"on the prompts that chose": hoped, "on others": dataset.gain.sel(search="of all")}
    for i, (name, values) in enumerate(both.items()):
        values = values.transpose("run", "condition")
        lost += draw(ax, range(len(CONDITIONS)), values, name, i, 2)
    ax.axhline(settings.worthwhile, color="grey", lw=0.8, ls="--")
    ax.set_xticks(range(len(CONDITIONS)), CONDITIONS, rotation=20)
    ax.set(ylabel="gain / risk", title="the best edit of all")
    ax.legend()
    return lost


def plot_rivals(ax, dataset, settings):
    """Clipping beside other edits that keep equally many numbers."""
    test, lost = 1 + dataset.change.sel(prompts="test"), 0
    rivals = {"clip": test.sel(rate=list(dataset.rival_rate.values))}
    rivals |= {way: 1 + dataset.rival.sel(way=way) for way in RIVALS}
    for i, (way, values) in enumerate(rivals.items()):
        values = over_cells(values).mean("condition").transpose("run", ...)
        lost += draw(ax, range(len(dataset.rival_rate)), values, way, i, 3)
    ax.set_xticks(range(len(dataset.rival_rate)), [f"{x:g}" for x in settings.rival_rates])
    ax.set(xlabel="rate", title="rivals of equal size")
    risk_axis(ax)
    ax.legend()
    return lost


def plot_rules(ranks, regret, dataset, settings):
    """The ranks that the rules predict beside the searched ones, and what they cost."""
    own = dataset.kept.isel(rate=best_rates(dataset)).mean(("layer", "module")).values
    rules = dataset.predicted.mean(("layer", "matrix"))
    places, extra, lost = range(len(PREDICTORS) + 1), regrets(dataset), 0
    for i, name in enumerate(CONDITIONS):
        predicted = rules.sel(condition=name).transpose("run", "predictor").values
        both = np.concatenate([own[i][:, None], predicted], axis=1)
        lost += draw(ranks, places, both, name, i, 4)
        lost += draw(regret, places, extra[i], name, i, 4)
    ranks.set_xticks(places, ["searched", *PREDICTORS], rotation=20)
    ranks.set(ylabel="rank, mean over matrices", ylim=(0, None))
    ranks.set_title("best ranks, predicted ranks")
    regret.axhline(settings.regret, color="grey", lw=0.8, ls="--")
    regret.set_xticks(places, [*PREDICTORS, "not cut"], rotation=20)
    regret.set(ylabel="extra risk / risk", title="regret of the predicted rank")
    regret.set_yscale("symlog", linthresh=settings.regret)
    return lost


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(9.0, 5.6, (2, 3))
    lost = plot_harm(axes[0], axes[3], dataset)
    lost += plot_best(axes[1], dataset, settings)
    lost += plot_rivals(axes[2], dataset, settings)
    lost += plot_rules(axes[4], axes[5], dataset, settings)
    correlations = rank_correlations(dataset).mean((0, 1))
    listed = ", ".join(f"{name} {x:.2f}" for name, x in zip(PREDICTORS, correlations, strict=True))
    diverged = sum("diverged" in str(one) for one in dataset.status.values)
    style.caption(
        drawn,
        f"b: layer, module and rate are chosen on {settings.prompts} prompts and judged on "
        f"{settings.more_prompts} others. Elsewhere every edit stands for itself. Rank "
        f"correlation of predicted and searched rank: {listed}. Geometric means over layers and "
        f"modules; median of {settings.runs} trained models ({diverged} diverged), each with its "
        f"own prompts, and the middle 80 %; {lost} left out as not finite. "
        f"Dashes: what counts as a gain, and as a regret.",
    )
    return drawn


def claims(dataset):
    settings = results.settings(dataset)
    shifted = [name for name in CONDITIONS if name != "matched"]
    searched, single, transferred = (dataset.gain.sel(search=one) for one in dataset.search)
    found = {
        f"gain_{name.replace('-', '_')}": searched.sel(condition=name).values for name in CONDITIONS
    }
    found["single_module"] = max(single.transpose("condition", "run").values, key=np.mean)

    place = ("layer", "module")
    ranks, again = (
        dataset.kept.isel(rate=best_rates(dataset, prompts)) for prompts in ("validation", "test")
    )
    by_chance = (ranks != again).mean(place)
    differs = (ranks != ranks.sel(condition="matched", drop=True)).mean(place)
    beyond = differs - (by_chance + by_chance.sel(condition="matched", drop=True)) / 2
    found["rate_varies"] = beyond.sel(condition=shifted).mean("condition").values
    found["same_rate"] = -transferred.sel(condition=shifted).mean("condition").values

    test = dataset.change.sel(prompts="test")
    dropped = test.isel(rate=-1)
    whole = abs(dropped.sel(module="layer")).median("layer")
    found["dropping_is_harmless"] = whole.mean("condition").values
    clipped = test.isel(rate=best_rates(dataset, modules=tuple(MODULES)))
    difference = np.log1p(dropped) - np.log1p(clipped)
    found["clip_or_drop"] = difference.mean(("condition", *place)).values
    same = test.sel(rate=list(settings.rival_rates)).rename(rate="rival_rate")
    for way in RIVALS:
        difference = np.log1p(dataset.rival.sel(way=way)) - np.log1p(same)
        others = ("condition", *place, "rival_rate")
        found[f"clip_or_{way}"] = difference.mean(others).values
    correlations, extra = rank_correlations(dataset), regrets(dataset)
    found["no_search_regret"] = extra[..., -1].mean(0)
    for i, name in enumerate(PREDICTORS):
        key = name.replace(" ", "_")
        found[f"{key}_ranks"] = correlations[..., i].mean(0)
        found[f"{key}_regret"] = extra[..., i].mean(0)
    made = []
    for name, (source, statement, measured, bounds) in CLAIMS.items():
        ((side, bound),) = bounds.items()
        bound = getattr(settings, bound) if isinstance(bound, str) else bound
        criterion = f"{measured} {'<=' if side == 'at_most' else '>='} {bound:g}"
        row = (f"why_a_rate.{name}", source, statement, criterion, found[name])
        made.append(about_the_mean(*row, **{side: bound}))
    return made
