"""Risks of every model with heads taken away, mixed first where they can be, and importances."""

import jax
import numpy as np
import xarray as xr

from experiments.heads import fewer_heads, importance
from experiments.heads.head_pruning import masked_models
from experiments.heads.head_pruning.config import (
    CHOSEN,
    FULL,
    MIXED,
    ONLY_PRUNED,
    RANDOM,
    TRAINED,
    TREATMENTS,
    Config,
    can_be_mixed,
    mixable_and_own,
)
from experiments.heads.head_pruning.masked_models import SEARCH, judging_batch, risks
from experiments.models import tasks
from experiments.models.runs import Runs
from experiments.models.specs import Spec
from lsa_lab.prompts import Prompt
from lsa_lab.store import parts


def compute(config: Config, models, *, progress=None, checkpoints=None):
    names, cases = [name for name, _ in config.models], []
    for name in names:
        case = masked_models.finished_case(models[name])
        measure = measure_mixed if can_be_mixed(case.spec) else measure_own
        columns = [measure(config, case).get(kind, missing(case)) for kind in TREATMENTS]
        arrays = {"risk": (("run", "treatment"), np.stack(columns, axis=1)), "lost": case.lost}
        coords = {"run": np.arange(case.runs), "treatment": list(TREATMENTS)}
        cases.append(xr.Dataset(arrays, coords).expand_dims(case=[name]))
    whole = xr.merge(cases, join="outer", compat="no_conflicts").sel(case=names)
    return parts.join(whole, importance=importances(config, models))


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


def importances(config: Config, models):
    """The Dataset of models whose heads cannot be mixed; ``config.importance`` has the sizes."""
    own = [name for name in mixable_and_own(config.models)[1] if name not in ONLY_PRUNED]
    blocks = [rises_of(config.importance, models[name]) for name in own]
    rise = np.full((len(own), *np.max([block.shape for block in blocks], axis=0)), np.nan)
    for i, block in enumerate(blocks):  # filled up to the largest
        rise[(i, *map(slice, block.shape))] = block
    return xr.Dataset({"rise": (("model", "run", "layer", "head"), rise)}, {"model": own})


def rises_of(sizes, runs: Runs) -> np.ndarray:  # [R, L, H]
    """The full model's rises of the risk, all NaN for a run that diverged."""
    batch = prompts_of(sizes, runs.spec)
    rises = importance.importances(runs.models(-1).cast_float64(), batch)
    return np.where(runs.finished[-1][:, None, None], rises, np.nan)


def prompts_of(sizes, spec: Spec) -> Prompt:  # [B]
    """The prompts of a model, the same for all models of a task."""
    key = jax.random.fold_in(jax.random.key(sizes.seed), 0)
    task = tasks.distribution(spec.task, sizes.n)
    batch = _draw(key, task, max(sizes.prompts, sizes.softmax_prompts))
    softmax = spec.architecture.kernel == "softmax"
    count = sizes.softmax_prompts if softmax else sizes.prompts
    return jax.tree.map(lambda leaf: leaf[:count], batch)


_draw = jax.jit(tasks.draw, static_argnums=2)
