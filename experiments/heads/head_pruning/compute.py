"""Risks of every model with heads taken away, mixed first where they can be, and importances."""

import jax
import numpy as np
import xarray as xr

from experiments.heads import fewer_heads, importance
from experiments.heads.each_run import prompts_of
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
from experiments.heads.head_pruning.masked_models import risks
from experiments.models import tasks
from experiments.models.runs import Runs
from lsa_lab.prompts import Prompt
from lsa_lab.store import parts

IMPORTANCE, SEARCH, MASKS, JUDGE = range(4)  # tags of keys


def compute(config: Config, models, *, progress=None, checkpoints=None):
    names = [name for name, _ in config.models]
    cases = [measure(config, models[name]).expand_dims(case=[name]) for name in names]
    whole = xr.merge(cases, join="outer", compat="no_conflicts").sel(case=names)
    return parts.join(whole, importance=importances(config, models))


def measure(config, runs: Runs):
    """The Dataset of one model: its full variant in runs that have finished, treated, and the
    variant trained with one head in each later layer."""
    seeds, first = runs.finished[-1], runs.spec.architecture.places.get("first")
    full, lost = runs.models(-1, seeds).cast_float64(), (~seeds).sum()
    count = len(full.gates)

    def batch_of(tag: int, size: int) -> Prompt:  # leaves [R, B, ...]
        return prompts_of(runs.spec.task, config.seed, tag, config.n, size, count)

    judged = batch_of(JUDGE, config.prompts)  # nothing is chosen on these
    if can_be_mixed(runs.spec):
        risk = measure_mixed(config, full, batch_of(SEARCH, config.search), judged)
    else:
        risk = measure_own(config, full, batch_of(IMPORTANCE, config.prompts), judged)
    if first is not None:
        fewer = runs.models(first, seeds).cast_float64()
        own = risks(fewer, judged, fewer.gates[:, None])[:, 0]
        risk[TRAINED] = np.where(runs.finished[first, seeds], own, np.nan)
        lost += (~runs.finished[first]).sum()
    missing = np.full(count, np.nan)  # a treatment that a model does not get has no number
    columns = [risk.get(kind, missing) for kind in TREATMENTS]
    arrays = {"risk": (("run", "treatment"), np.stack(columns, axis=1)), "lost": int(lost)}
    return xr.Dataset(arrays, {"run": np.arange(count), "treatment": list(TREATMENTS)})


def measure_mixed(config, full, searched: Prompt, judged: Prompt) -> dict:  # {treatment: [R]}
    """A model whose heads can be mixed, with one head in each later layer over all mixings."""
    models = jax.vmap(lambda model: model.plain())(full)
    key = jax.random.key_data(jax.random.key(config.seed))
    best = fewer_heads.best_mixed(models, searched, key, config.starts, config.climbs)
    pairs = ((FULL, models), (MIXED, best))
    return {kind: risks(each, judged, each.gates[:, None])[:, 0] for kind, each in pairs}


def measure_own(config, full, batch: Prompt, judged: Prompt) -> dict:  # {treatment: [R]}
    """A model whose heads cannot be mixed, under masks, which prompts of ``batch`` choose."""
    key = jax.random.fold_in(jax.random.key(config.seed), MASKS)
    scores = masked_models.importances(full, batch)
    masks = masked_models.treatment_masks(full, scores, key, config.draws)
    chosen, random = np.split(risks(full, judged, masks), [len(CHOSEN)], axis=1)
    # The draws of a random treatment count as one, by geometric mean.
    random = np.exp(np.log(random).reshape(len(random), len(RANDOM), config.draws).mean(2))
    return dict(zip((*CHOSEN, *RANDOM), [*chosen.T, *random.T], strict=True))


def importances(config: Config, models):
    """The Dataset of models whose heads cannot be mixed; ``config.importance`` has the sizes."""
    own = [name for name in mixable_and_own(config.models)[1] if name not in ONLY_PRUNED]
    blocks = [rises_of(config.importance, models[name]) for name in own]
    rise = np.full((len(own), *np.max([block.shape for block in blocks], axis=0)), np.nan)
    for i, block in enumerate(blocks):  # filled up to the largest
        rise[(i, *map(slice, block.shape))] = block
    return xr.Dataset({"rise": (("model", "run", "layer", "head"), rise)}, {"model": own})


def rises_of(sizes, runs: Runs) -> np.ndarray:  # [R, L, H]
    """The full model's rises of the risk, all NaN for a run that diverged, on the prompts that all
    models of its task have."""
    key = jax.random.fold_in(jax.random.key(sizes.seed), 0)
    task = tasks.distribution(runs.spec.task, sizes.n)
    batch = _draw(key, task, max(sizes.prompts, sizes.softmax_prompts))
    softmax = runs.spec.architecture.kernel == "softmax"
    count = sizes.softmax_prompts if softmax else sizes.prompts
    batch = jax.tree.map(lambda leaf: leaf[:count], batch)
    rises = importance.importances(runs.models(-1).cast_float64(), batch)
    return np.where(runs.finished[-1][:, None, None], rises, np.nan)


_draw = jax.jit(tasks.draw, static_argnums=2)
