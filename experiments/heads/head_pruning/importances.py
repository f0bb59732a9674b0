"""How much the risk of trained models rises without a head, and how far mixing moves that."""

import jax
import numpy as np

from experiments.heads import importance
from experiments.heads.head_pruning.config import (
    ENDS,
    ONLY_PRUNED,
    Config,
    mixable_and_own,
)
from experiments.heads.head_pruning.mixings import ranges
from experiments.models import tasks
from experiments.models.runs import Runs
from experiments.models.specs import Spec
from lsa_lab.analyses import heads
from lsa_lab.prompts import Prompt

_SEARCHED = 1  # tag of a key


def measure(config: Config, models):
    """The Dataset of all models but ONLY_PRUNED; ``config.importance`` has the sizes."""
    import xarray as xr

    sizes, by_head = config.importance, ("model", "run", "layer", "head")
    merged, own = (
        [name for name in kind if name not in ONLY_PRUNED]
        for kind in mixable_and_own(config.models)
    )
    runs = [models[name] for name in own]
    rises = [rises_of(sizes, each) for each in runs]
    arrays = {
        "rise": padded(by_head, rises),
        "effective": padded(by_head[:-1], map(effective, rises)),
    }
    if merged:
        over = [over_mixings(sizes, models[name]) for name in merged]
        arrays["over_mixings"] = padded(("merged", "mixed_run", "mixed_layer", "end"), over)
    coords = {"model": own, "merged": merged, "end": list(ENDS)}
    return xr.Dataset(arrays, coords)


def rises_of(sizes, runs: Runs) -> np.ndarray:  # [R, L, H]
    """The full model's rises of the risk, all NaN for a run that diverged."""
    batch = prompts_of(sizes, runs.spec)
    rises = importance.importances(runs.models(-1).in_float64(), batch)
    return np.where(runs.finished[-1][:, None, None], rises, np.nan)


def over_mixings(sizes, runs: Runs) -> np.ndarray:  # [R, L, ENDS]
    """N_l of the full model over mixings; runs that diverged are left out."""
    searched = prompts_of(sizes, runs.spec, _SEARCHED)
    models = runs.models(seeds=runs.finished[-1]).in_float64()
    judged = prompts_of(sizes, runs.spec)
    return ranges(sizes, models, first(sizes.searched_prompts, searched), judged)


def effective(raw: np.ndarray) -> np.ndarray:  # [..., L, H] -> [..., L]
    """Effective heads; NaN where a head's rise is no number, for it would count as no rise."""
    complete = np.isfinite(raw).all(-1)
    count = jax.jit(heads.effective_heads)(np.where(complete[..., None], raw, 0.0))
    return np.where(complete, count, np.nan)


def padded(dims: tuple[str, ...], blocks) -> tuple:  # of [...] -> dims, [len(blocks), ...]
    """Blocks side by side, each filled up with NaN to the largest."""
    blocks = [np.asarray(block, float) for block in blocks]
    array = np.full((len(blocks), *np.max([block.shape for block in blocks], axis=0)), np.nan)
    for i, block in enumerate(blocks):
        array[(i, *map(slice, block.shape))] = block
    return dims, array


def prompts_of(sizes, spec: Spec, tag: int = 0) -> Prompt:  # [B]
    """The prompts of a model, the same for all models of a task."""
    key = jax.random.fold_in(jax.random.key(sizes.seed), tag)
    task = tasks.distribution(spec.task, sizes.n)
    batch = _draw(key, task, max(sizes.prompts, sizes.softmax_prompts))
    softmax = spec.architecture.kernel == "softmax"
    return first(sizes.softmax_prompts if softmax else sizes.prompts, batch)


def first(count: int, batch: Prompt) -> Prompt:
    return jax.tree.map(lambda leaf: leaf[:count], batch)


_draw = jax.jit(tasks.draw, static_argnums=2)
