"""What the statements of `why_a_rate` are judged by."""

import numpy as np

from experiments.clipping.why_a_rate.config import CLAIMS, CONDITIONS, PREDICTORS, RIVALS
from experiments.clipping.why_a_rate.rate_rules import (
    MODULES,
    best_rates,
    rank_correlations,
    regrets,
)
from lsa_lab import results
from lsa_lab.claims import about_the_mean


def claims(dataset):
    settings = results.config_of(dataset)
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
