"""Ratios of risks and of losses out of a result, seed by seed."""

import numpy as np

from experiments.heads.heads_per_layer.config import LONG, depths
from experiments.heads.rule_names import RIDGE, RULES
from lsa_lab.judging.statistics import worst
from lsa_lab.store import results


def judged(dataset, name: str):  # [variants, S]
    """The risks of a model at the number of demonstrations at which it is judged."""
    return dataset[f"risk, {name}"].sel(shots=results.config_of(dataset).judged)


def risks_of(dataset, model: str) -> dict[str, np.ndarray]:  # [S]
    """Risks there by variant, and those of the rules, which have no seed."""
    config = results.config_of(dataset)
    values, shots, spec = judged(dataset, model).values, config.judged, dict(depths(config))[model]
    rules = {rule: float(dataset.rule_risk.sel(rule=rule, shots=shots)) for rule in RULES}
    variants = {kind: values[place] for kind, place in spec.architecture.places.items()}
    return variants | {rule: np.full(values.shape[1], risk) for rule, risk in rules.items()}


def ratio(dataset, model: str, over: str, under: str) -> np.ndarray:  # [S]
    """The risk of a variant over that of another, or of a rule."""
    risks = risks_of(dataset, model)
    return risks[over] / risks[under]


def most_over(dataset, rival: str, model: str) -> np.ndarray:  # [S]
    """The risk of many heads in layer 1 and one in each later layer over that of ridge, or of
    descent of as many steps, at the n where it is most."""
    place = dict(depths(results.config_of(dataset)))[model].architecture.places["first"]
    risks = dataset[f"risk, {model}"].isel({f"heads, {model}": place}).transpose("seed", "shots")
    descent = rival == "descent"
    below = dataset[f"descent, {model}"] if descent else dataset.rule_risk.sel(rule=RIDGE)
    return worst(risks / below, np.mean)


def falls(dataset, model: str) -> np.ndarray:  # [S]
    """The full model's loss in the last sixth of the training over that in the sixth before; runs
    that diverged are left out."""
    losses = dataset[f"loss, {model}"].values[-1]  # [S, blocks]
    sixth = max(losses.shape[-1] // 6, 1)
    ratios = losses[:, -sixth:].mean(1) / losses[:, -2 * sixth : -sixth].mean(1)
    return ratios[np.isfinite(ratios)]


def longer_over_full(dataset) -> np.ndarray:  # [S]
    first = depths(results.config_of(dataset))[0][0]
    full, longer = (judged(dataset, name).values[-1] for name in (first, LONG))
    return longer / full
