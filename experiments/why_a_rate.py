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


def plot(dataset):
    from matplotlib.ticker import LogLocator

    settings = results.settings(dataset)
    drawn, axes = style.figure(9.0, 5.6, (2, 3))
    test = 1 + dataset.change.sel(prompts="test")
    first = np.unique(-dataset.kept.values, return_index=True)[1]  # one of the rates of a rank
    ranks, lost = dataset.kept.values[first], 0
    looks = list(zip(style.COLOURS, style.MARKERS, strict=True))

    def draw(ax, places, samples, label, i, of):
        x = np.asarray(places) + 0.14 * (i - (of - 1) / 2)
        return style.band(ax, x, samples, label, *looks[i])

    def over_cells(values):  # geometric mean
        return np.exp(np.log(values).mean(("layer", "module")))

    for i, name in enumerate(CONDITIONS):
        there = over_cells(test.sel(condition=name, module=list(MATRICES)).isel(rate=first))
        lost += draw(axes[0], range(len(ranks)), there.transpose("run", "rate"), name, i, 4)
        layers = test.sel(condition=name, module="layer").isel(rate=-1).transpose("run", "layer")
        lost += draw(axes[3], dataset.layer.values, layers, name, i, 4)
    axes[0].set(xlabel="rank kept of one matrix (0: dropped)", ylabel="risk / unclipped")
    axes[0].set_xticks(range(len(ranks)), [str(rank) for rank in ranks])
    axes[0].set_title("clipping one matrix")
    axes[3].set(xlabel="layer dropped", xticks=dataset.layer.values, ylabel="risk / unclipped")
    axes[3].set_title("dropping a whole layer")
    there = dataset.change.sel(prompts="validation").isel(rate=slice(None, -1))
    hoped = -there.min(("layer", "module", "rate"))
    both = {"on the prompts that chose": hoped, "on others": dataset.gain.sel(search="of all")}
    for i, (name, values) in enumerate(both.items()):
        values = values.transpose("run", "condition")
        lost += draw(axes[1], range(len(CONDITIONS)), values, name, i, 2)
    axes[1].axhline(settings.worthwhile, color="grey", lw=0.8, ls="--")
    axes[1].set(ylabel="gain / risk")
    axes[1].set_title("the best edit of all")
    rivals = {"clip": test.sel(rate=list(dataset.rival_rate.values))}
    rivals |= {way: 1 + dataset.rival.sel(way=way) for way in RIVALS}
    for i, (way, values) in enumerate(rivals.items()):
        values = over_cells(values).mean("condition").transpose("run", ...)
        lost += draw(axes[2], range(len(dataset.rival_rate)), values, way, i, 3)
    axes[2].set_xticks(range(len(dataset.rival_rate)), [f"{x:g}" for x in settings.rival_rates])
    axes[2].set(xlabel="rate", ylabel="risk / unclipped")
    axes[2].set_title("rivals of equal size")
    own = dataset.kept.isel(rate=best_rates(dataset)).mean(("layer", "module")).values
    rules = dataset.predicted.mean(("layer", "matrix"))
    rules_and_none, extra = [*PREDICTORS, "not cut"], regrets(dataset)
    for i, name in enumerate(CONDITIONS):
        predicted = rules.sel(condition=name).transpose("run", "predictor").values
        both = np.concatenate([own[i][:, None], predicted], axis=1)
        lost += draw(axes[4], range(len(PREDICTORS) + 1), both, name, i, 4)
        lost += draw(axes[5], range(len(rules_and_none)), extra[i], name, i, 4)
    axes[4].set_xticks(range(len(PREDICTORS) + 1), ["searched", *PREDICTORS], rotation=20)
    axes[4].set(ylabel="rank, mean over matrices", ylim=(0, None))
    axes[4].set_title("best ranks, predicted ranks")
    axes[5].axhline(settings.regret, color="grey", lw=0.8, ls="--")
    axes[5].set_xticks(range(len(rules_and_none)), rules_and_none, rotation=20)
    axes[5].set(ylabel="extra risk / risk")
    axes[5].set_yscale("symlog", linthresh=settings.regret)
    axes[5].set_title("regret of the predicted rank")
    axes[1].set_xticks(range(len(CONDITIONS)), CONDITIONS, rotation=20)
    for ax in (axes[0], axes[2], axes[3]):
        style.log_axes(ax, y=True)
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:g}")
    for ax in (axes[0], axes[1], axes[2]):
        ax.legend()
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
