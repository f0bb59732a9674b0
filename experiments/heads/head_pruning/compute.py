"""Can all heads but one be removed from every later layer, and what do other removals cost?"""

import numpy as np

from experiments.heads.head_pruning import pruning
from experiments.heads.head_pruning import search as head_search
from experiments.heads.head_pruning.config import Config
from experiments.heads.head_pruning.pruning import JUDGE, RULES, SEARCH, TREATMENTS


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    deep = config.present(config.deep)
    names = deep + config.present(config.beside)
    made = []
    for name in names:
        found = measure(config, pruning.load(config, name, progress), name in deep)
        made.append(found.expand_dims(case=[name]))
    whole = xr.merge(made, join="outer", compat="no_conflicts").sel(case=names)
    return whole.assign_coords(treatment=list(TREATMENTS), rule=list(RULES))


def measure(config, case, taken_apart: bool):
    """Of one family; ``taken_apart``: over n, layer by layer, and head by head."""
    import xarray as xr

    searched = pruning.batches(config, case, SEARCH, config.n, config.search)
    scores = pruning.importances(config, case)
    best = head_search.best_choices(config, case, searched)
    masks = pruning.treatments(config, case, scores, best)
    lengths = config.lengths if taken_apart else (config.n,)
    risk = np.stack([judge(config, case, masks, n) for n in lengths], axis=-1)
    if best is None:
        risk[:, TREATMENTS.index("best later heads")] = np.nan
    made = {
        "risk": (("run", "treatment", "n"), risk),
        "importance": (("run", "layer", "head"), scores),
        "lost": ((), case.lost),
    }
    coords = {"n": list(lengths), "run": np.arange(case.runs)}
    coords["layer"] = np.arange(1, case.family.depth + 1)
    coords["head"] = np.arange(1, case.family.heads + 1)
    if taken_apart:
        made |= take_apart(config, case, searched)
        known = [pruning.known(config, case, n) for n in lengths]
        made["known"] = (("run", "rule", "n"), np.stack(known, axis=-1))
        coords["kept"] = np.arange(case.gates.sum(), 0, -1, dtype=int)
        coords["size"] = np.arange(case.family.heads + 1)
    return xr.Dataset(made, coords)


def judge(config, case, masks, n: int):  # -> [R, treatments]
    batch = pruning.batches(config, case, JUDGE, n, config.prompts)
    found = pruning.geometric(pruning.judged(config, case, batch, masks), config.draws)
    return np.concatenate([found, pruning.judged_so(config, case, batch)[:, None]], axis=1)


def take_apart(config, case, searched):
    """Greedy pruning of the network, and the best subsets of one layer, the others whole."""
    order = head_search.greedy(config, case, searched)  # [R, K, L, H]
    subsets, worth = head_search.best_subsets(config, case, searched)
    flat = subsets.reshape(case.runs, -1, *case.gates.shape)
    fresh = pruning.batches(config, case, JUDGE, config.n, config.prompts)
    found = pruning.judged(config, case, fresh, np.concatenate([order, flat], axis=1))
    ahead, later = np.split(found, [order.shape[1]], axis=1)
    return {
        "greedy": (("run", "kept"), ahead),
        "left": (("run", "kept", "layer"), order.sum(3)),
        "subset": (("run", "layer", "size"), later.reshape(subsets.shape[:3])),
        "shapley": (("run", "layer", "head"), worth),
    }
