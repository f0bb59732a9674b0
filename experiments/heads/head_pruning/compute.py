"""Risks of every model with heads taken away, mixed first where they can be, and importances."""

import jax
import numpy as np

from experiments.heads import fewer_heads
from experiments.heads.head_pruning import importances, masked_models
from experiments.heads.head_pruning.config import (
    CHOSEN,
    FULL,
    MIXED,
    RANDOM,
    TRAINED,
    TREATMENTS,
    Config,
    can_be_mixed,
)
from experiments.heads.head_pruning.masked_models import SEARCH, judging_batch, risks
from lsa_lab.store import parts


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    names, cases = [name for name, _ in config.models], []
    for name in names:
        case = masked_models.finished_case(models[name])
        measure = measure_mixed if can_be_mixed(case.spec) else measure_own
        columns = [measure(config, case).get(kind, missing(case)) for kind in TREATMENTS]
        arrays = {"risk": (("run", "treatment"), np.stack(columns, axis=1)), "lost": case.lost}
        coords = {"run": np.arange(case.runs), "treatment": list(TREATMENTS)}
        cases.append(xr.Dataset(arrays, coords).expand_dims(case=[name]))
    whole = xr.merge(cases, join="outer", compat="no_conflicts").sel(case=names)
    return parts.join(whole, importance=importances.measure(config, models))


def missing(case) -> np.ndarray:  # [R]
    """A treatment that a model does not get has no number."""
    return np.full(case.runs, np.nan)


def measure_mixed(config, case) -> dict:  # {treatment: [R]}
    """A model whose heads can be mixed, with one head in each later layer over all mixings."""
    models = jax.vmap(lambda model: model.plain())(case.models)
    searched = masked_models.batch_of(config, case, SEARCH, config.search)
    key = jax.random.key_data(jax.random.key(config.seed))
    best = fewer_heads.best_mixed(models, searched, key, config.starts, config.climbs)
    return {
        FULL: masked_models.risks_as_they_are(config, case, models),
        MIXED: masked_models.risks_as_they_are(config, case, best),
        TRAINED: masked_models.risks_of_fewer(config, case),
    }


def measure_own(config, case) -> dict:  # {treatment: [R]}
    """A model whose heads cannot be mixed, under masks."""
    treated = masked_models.treatment_masks(config, case, masked_models.importances(config, case))
    each = risks(case.models, judging_batch(config, case), treated)
    chosen, random = np.split(each, [len(CHOSEN)], axis=1)
    # The draws of a random treatment count as one, by geometric mean.
    random = np.exp(np.log(random).reshape(case.runs, len(RANDOM), config.draws).mean(2))
    risk = dict(zip((*CHOSEN, *RANDOM), [*chosen.T, *random.T], strict=True))
    return risk | {TRAINED: masked_models.risks_of_fewer(config, case)}
