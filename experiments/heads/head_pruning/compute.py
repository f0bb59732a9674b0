"""Risks of every model with heads taken away, mixed first where they can be, or fitted anew."""

import jax
import numpy as np

from experiments.heads import fewer_heads
from experiments.heads.head_pruning import masked_models, masks
from experiments.heads.head_pruning.config import (
    BEST,
    CHOSEN,
    FULL,
    MIXED,
    RANDOM,
    TRAINED,
    TREATMENTS,
    Config,
)
from experiments.heads.head_pruning.masked_models import FIT, SEARCH, judging_batch, risks
from experiments.heads.kinds import can_be_mixed


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    names, parts = [name for name, _ in config.models], []
    for name in names:
        case = masked_models.finished_case(models[name])
        mixed = can_be_mixed(case.spec)
        part = measure_mixed(config, case, name) if mixed else measure_own(config, case)
        parts.append(part.expand_dims(case=[name]))
    whole = xr.merge(parts, join="outer", compat="no_conflicts")
    return whole.sel(case=names, treatment=list(TREATMENTS))


def measure_mixed(config, case, name: str):
    """The Dataset of a model whose heads can be mixed: with one head over all mixings and, for some
    models, with few heads fitted anew."""
    models = jax.vmap(lambda model: model.plain())(case.models)
    searched = masked_models.batch_of(config, case, SEARCH, config.search)
    key = jax.random.key_data(jax.random.key(config.seed))
    best = fewer_heads.best_mixed(models, searched, key, config.starts, config.climbs)
    risk = {
        FULL: masked_models.risks_as_they_are(config, case, models),
        MIXED: masked_models.risks_as_they_are(config, case, best),
        TRAINED: masked_models.risks_of_fewer(config, case),
    }
    arrays, coords = {}, {}
    if name in config.fitted:
        counts = range(1, case.gates.shape[1])
        batches = fresh_batches(config, case)
        fits = (fewer_heads.refitted(models, count, batches) for count in counts)
        columns = [masked_models.risks_as_they_are(config, case, fit) for fit in fits]
        columns.append(risk[FULL])
        arrays["refitted"] = (("run", "heads"), np.stack(columns, axis=1))
        coords["heads"] = [*counts, case.gates.shape[1]]
    return dataset_of(case, risk, arrays, coords)


def fresh_batches(config, case):  # -> Prompt [R, steps, B]
    """Prompts to fit heads to, each seen once."""
    steps = config.fit_steps
    batch = masked_models.batch_of(config, case, FIT, steps * config.fit_prompts)
    return jax.tree.map(lambda leaf: leaf.reshape(case.runs, steps, -1, *leaf.shape[2:]), batch)


def measure_own(config, case):
    """The Dataset of a model whose heads cannot be mixed: under masks, and head by head."""
    searched = masked_models.batch_of(config, case, SEARCH, config.search)
    scores = masked_models.importances(config, case)
    best = masks.best_choices(config, case, searched)
    treated = masks.treatment_masks(config, case, scores, best)
    order, (subsets, worth) = masks.greedy(case, searched), masks.best_subsets(case, searched)
    flat = subsets.reshape(case.runs, -1, *case.gates.shape)
    every = np.concatenate([treated, order, flat], axis=1)
    each = risks(case.models, judging_batch(config, case), every)
    ends = np.cumsum([len(CHOSEN), len(RANDOM) * config.draws, order.shape[1]])
    chosen, random, of_order, of_subsets = np.split(each, ends, axis=1)
    # The draws of a random treatment count as one, by geometric mean.
    random = np.exp(np.log(random).reshape(case.runs, len(RANDOM), config.draws).mean(2))
    risk = dict(zip((*CHOSEN, *RANDOM), [*chosen.T, *random.T], strict=True))
    risk |= {BEST: risk[BEST] if best is not None else np.full(case.runs, np.nan)}
    risk[TRAINED] = masked_models.risks_of_fewer(config, case)
    arrays = {
        "importance": (("run", "layer", "head"), scores),
        "greedy": (("run", "kept"), of_order),
        "left": (("run", "kept", "layer"), order.sum(3)),
        "subset": (("run", "layer", "size"), of_subsets.reshape(subsets.shape[:3])),
        "shapley": (("run", "layer", "head"), worth),
    }
    depth, heads = case.gates.shape
    coords = {"layer": np.arange(1, depth + 1), "head": np.arange(1, heads + 1)}
    coords["kept"] = np.arange(case.gates.sum(), 0, -1, dtype=int)
    coords["size"] = np.arange(heads + 1)
    return dataset_of(case, risk, arrays, coords)


def dataset_of(case, risk: dict, arrays: dict, coords: dict):
    """``risk`` is {treatment: [R]}; a treatment that a model does not get has no number."""
    import xarray as xr

    columns = [risk.get(treatment, np.full(case.runs, np.nan)) for treatment in TREATMENTS]
    arrays |= {"risk": (("run", "treatment"), np.stack(columns, axis=1)), "lost": ((), case.lost)}
    coords |= {"run": np.arange(case.runs), "treatment": list(TREATMENTS)}
    return xr.Dataset(arrays, coords)
