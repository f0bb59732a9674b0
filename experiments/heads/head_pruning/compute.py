"""Can all heads but one be removed from every later layer, and what do other removals cost?"""

import numpy as np

from experiments.heads.head_pruning import pruning
from experiments.heads.head_pruning import search as head_search
from experiments.heads.head_pruning.config import Config
from experiments.heads.head_pruning.pruning import JUDGE, RULES, SEARCH, TREATMENTS


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    names, parts = [name for name, _ in config.models], []
    for name, spec in config.models:
        case = pruning.load(config, name, spec, progress)
        parts.append(measure(config, case, name in config.deep).expand_dims(case=[name]))
    whole = xr.merge(parts, join="outer", compat="no_conflicts").sel(case=names)
    return whole.assign_coords(treatment=list(TREATMENTS), rule=list(RULES))


def measure(config, case, taken_apart: bool):
    """The Dataset of one model; ``taken_apart``: over n, layer by layer, and head by head."""
    import xarray as xr

    searched = pruning.batches(config, case, SEARCH, config.n, config.search)
    scores = pruning.importances(config, case)
    best = head_search.best_choices(config, case, searched)
    masks = pruning.treatments(config, case, scores, best)
    lengths = config.lengths if taken_apart else (config.n,)
    risk = np.stack([judge(config, case, masks, n) for n in lengths], axis=-1)
    if best is None:
        risk[:, TREATMENTS.index("best later heads")] = np.nan
    arrays = {
        "risk": (("run", "treatment", "n"), risk),
        "importance": (("run", "layer", "head"), scores),
        "lost": ((), case.lost),
    }
    depth, heads = case.gates.shape
    coords = {"n": list(lengths), "run": np.arange(case.runs)}
    coords["layer"] = np.arange(1, depth + 1)
    coords["head"] = np.arange(1, heads + 1)
    if taken_apart:
        arrays |= take_apart(config, case, searched)
        of_rules = [pruning.of_rules(config, case, n) for n in lengths]
        arrays["known"] = (("run", "rule", "n"), np.stack(of_rules, axis=-1))
        coords["kept"] = np.arange(case.gates.sum(), 0, -1, dtype=int)
        coords["size"] = np.arange(heads + 1)
    return xr.Dataset(arrays, coords)


def judge(config, case, masks, n: int):  # -> [R, treatments]
    batch = pruning.batches(config, case, JUDGE, n, config.prompts)
    risks = pruning.geometric(pruning.judged(config, case, batch, masks), config.draws)
    return np.concatenate([risks, pruning.judged_so(config, case, batch)[:, None]], axis=1)


def take_apart(config, case, searched):
    """Greedy pruning of the network, and the best subsets of one layer, the others whole."""
    order = head_search.greedy(config, case, searched)  # [R, K, L, H]
    subsets, worth = head_search.best_subsets(config, case, searched)
    flat = subsets.reshape(case.runs, -1, *case.gates.shape)
    fresh = pruning.batches(config, case, JUDGE, config.n, config.prompts)
    risks = pruning.judged(config, case, fresh, np.concatenate([order, flat], axis=1))
    ahead, later = np.split(risks, [order.shape[1]], axis=1)
    return {
        "greedy": (("run", "kept"), ahead),
        "left": (("run", "kept", "layer"), order.sum(3)),
        "subset": (("run", "layer", "size"), later.reshape(subsets.shape[:3])),
        "shapley": (("run", "layer", "head"), worth),
    }
