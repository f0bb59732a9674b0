"""Risks of every model under every treatment of its heads, and of the deep ones taken apart."""

import numpy as np

from experiments.heads.head_pruning import masked_models, masks
from experiments.heads.head_pruning.config import RULES, Config
from experiments.heads.head_pruning.masked_models import SEARCH, judging_batch
from experiments.heads.head_pruning.statements import BEST, CHOSEN, TREATMENTS


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    names, parts = [name for name, _ in config.models], []
    for name, spec in config.models:
        case = masked_models.load(config, name, spec, progress)
        parts.append(measure(config, case, name in config.deep).expand_dims(case=[name]))
    whole = xr.merge(parts, join="outer", compat="no_conflicts").sel(case=names)
    return whole.assign_coords(treatment=list(TREATMENTS), rule=list(RULES))


def measure(config, case, taken_apart: bool):
    """The Dataset of one model; ``taken_apart``: over n, layer by layer, and head by head."""
    import xarray as xr

    searched = masked_models.batch_of(config, case, SEARCH, config.n, config.search)
    scores = masked_models.importances(config, case)
    best = masks.best_choices(config, case, searched)
    treated = masks.of_treatments(config, case, scores, best)
    lengths = config.lengths if taken_apart else (config.n,)
    risk = np.stack([risks_of_treatments(config, case, treated, n) for n in lengths], axis=-1)
    if best is None:
        risk[:, TREATMENTS.index(BEST)] = np.nan
    arrays = {
        "risk": (("run", "treatment", "n"), risk),
        "importance": (("run", "layer", "head"), scores),
        "lost": ((), case.lost),
    }
    depth, heads = case.gates.shape
    coords = {"n": list(lengths), "run": np.arange(case.runs)}
    coords |= {"layer": np.arange(1, depth + 1), "head": np.arange(1, heads + 1)}
    if taken_apart:
        arrays |= take_apart(config, case, searched)
        of_rules = [masked_models.risks_of_rules(config, case, n) for n in lengths]
        arrays["known"] = (("run", "rule", "n"), np.stack(of_rules, axis=-1))
        coords["kept"] = np.arange(case.gates.sum(), 0, -1, dtype=int)
        coords["size"] = np.arange(heads + 1)
    return xr.Dataset(arrays, coords)


def risks_of_treatments(config, case, treated, n: int) -> np.ndarray:  # [R, treatments]
    """Excess risks at n; the draws of a random treatment count as one, by geometric mean."""
    batch = judging_batch(config, case, n)
    risks = masked_models.risks(config, case, batch, treated)
    chosen, random = np.split(risks, [len(CHOSEN)], axis=1)
    means = np.exp(np.log(random).reshape(len(risks), -1, config.draws).mean(2))
    trained = masked_models.risks_of_fewer(config, case, batch)[:, None]
    return np.concatenate([chosen, means, trained], axis=1)


def take_apart(config, case, searched) -> dict:
    """Greedy pruning of the network, and the best subsets of one layer, the others whole."""
    order = masks.greedy(config, case, searched)  # [R, K, L, H]
    subsets, worth = masks.best_subsets(config, case, searched)
    flat = subsets.reshape(case.runs, -1, *case.gates.shape)
    every, fresh = np.concatenate([order, flat], axis=1), judging_batch(config, case, config.n)
    risks = masked_models.risks(config, case, fresh, every)
    of_order, of_subsets = np.split(risks, [order.shape[1]], axis=1)
    return {
        "greedy": (("run", "kept"), of_order),
        "left": (("run", "kept", "layer"), order.sum(3)),
        "subset": (("run", "layer", "size"), of_subsets.reshape(subsets.shape[:3])),
        "shapley": (("run", "layer", "head"), worth),
    }
