"""Importances of heads that are their layers' own, and over mixings of the others."""

import jax
import numpy as np

from experiments.heads.head_importance import measures
from experiments.heads.head_importance.config import ABLATIONS, ENDS, Config
from experiments.heads.head_importance.mixings import ranges
from experiments.heads.kinds import mixable_and_own
from experiments.models.runs import Runs
from lsa_lab.analyses import heads

_SEARCHED = 1  # tag of a key


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    merged, own = ([name for name, _ in kind] for kind in mixable_and_own(config.models))
    arrays = own_heads(config, [models[name] for name in own])
    if merged:
        over = [over_mixings(config, models[name]) for name in merged]
        arrays["over_mixings"] = padded(("merged", "mixed_run", "mixed_layer", "end"), over)
    coords = {"model": own, "merged": merged, "ablation": list(ABLATIONS), "end": list(ENDS)}
    coords["finished"] = "model", [int(models[name].finished[-1].sum()) for name in own]
    return xr.Dataset(arrays, coords)


def own_heads(config: Config, runs: list[Runs]) -> dict:  # {name: (dimensions, values)}
    """Rises of the risk and effective heads of each model with all heads in every layer."""
    ends = [measures.final_rises(config, each, -1) for each in runs]
    ablated = [np.moveaxis(measures.ablated_rises(config, each), 0, 1) for each in runs]
    by_head = ("model", "run", "layer", "head")
    rises = {
        "rise": (by_head, [end["rise"] for end in ends]),
        "rise_of_median": (by_head, [end["median"] for end in ends]),
        "rise_ablated": (("model", "run", "ablation", "layer", "head"), ablated),
    }
    arrays = {}
    for name, (dims, blocks) in rises.items():
        counts = [effective(block) for block in blocks]  # of a model's own heads, before padding
        arrays[name] = padded(dims, blocks)
        arrays[name.replace("rise", "effective")] = padded(dims[:-1], counts)
    arrays["risk"] = padded(("model", "run"), [end["risk"] for end in ends])
    arrays["ridge"] = ("model", [end["ridge"] for end in ends])
    conditions = [measures.condition_numbers(measures.full(each)) for each in runs]
    arrays["condition"] = padded(("model", "run", "layer"), conditions)
    counts = [each.spec.architecture.rows[-1] for each in runs]
    arrays["heads"] = padded(("model", "layer"), counts)
    return arrays


def over_mixings(config: Config, runs: Runs) -> np.ndarray:  # [R, L, ENDS]
    """N_l of the full model over mixings; runs that diverged are left out."""
    judged, _ = measures.prompts_of(config, runs.spec)
    searched, _ = measures.prompts_of(config, runs.spec, _SEARCHED)
    searched = measures.first(config.searched_prompts, searched)
    models = runs.models(seeds=runs.finished[-1]).in_float64()
    return ranges(config, models, searched, judged)


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
