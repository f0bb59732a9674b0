"""Ratios of risks, and of losses at the end of the training, as `heads_per_layer` judges them."""

import numpy as np

from experiments.heads.heads_per_layer.statements import LONG, depths, pairs
from experiments.heads.rule_names import RIDGE, RULES
from lsa_lab import results
from lsa_lab.statistics import worst


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [S]}
    config, values = results.config_of(dataset), {}
    for name, spec in depths(config):
        depth, risks = spec.architecture.depth, risks_of(dataset, name, spec)
        for id, (over, under) in pairs(spec).items():
            values[f"{id}_{depth}"] = risks[over] / risks[under]
        values |= against_every_n(dataset, name, spec)
        values[f"stopped_falling_{depth}"] = falls(dataset, name)
    if LONG in dict(config.models):
        first = depths(config)[0][0]
        full, longer = (judged(dataset, name).values[-1] for name in (first, LONG))
        values["long_enough"] = longer / full
    return values


def against_every_n(dataset, name: str, spec) -> dict[str, np.ndarray]:  # {id: [S]}
    """The risk of many heads in layer 1 and one in each later layer over that of ridge, and of
    descent of as many steps, at the n where it is most."""
    place, depth = spec.architecture.places.get("first"), spec.architecture.depth
    if place is None:
        return {}
    risks = dataset[f"risk, {name}"].isel({f"heads, {name}": place}).transpose("seed", "shots")
    rivals = {
        "ridge": dataset.rule_risk.sel(rule=RIDGE),
        "descent": dataset[f"descent, {name}"],
    }
    return {f"beats_{id}_{depth}": worst(risks / rival, np.mean) for id, rival in rivals.items()}


def judged(dataset, name: str):  # [variants, S]
    """The risks of a model at the number of demonstrations at which it is judged."""
    return dataset[f"risk, {name}"].sel(shots=results.config_of(dataset).judged)


def risks_of(dataset, name: str, spec) -> dict[str, np.ndarray]:  # [S]
    """Risks there by variant, and those of the rules, which have no seed."""
    values, shots = judged(dataset, name).values, results.config_of(dataset).judged
    rules = {rule: float(dataset.rule_risk.sel(rule=rule, shots=shots)) for rule in RULES}
    variants = {kind: values[place] for kind, place in spec.architecture.places.items()}
    return variants | {rule: np.full(values.shape[1], risk) for rule, risk in rules.items()}


def falls(dataset, name: str) -> np.ndarray:  # [S]
    """The full model's loss in the last sixth of the training over that in the sixth before; runs
    that diverged are left out."""
    losses = dataset[f"loss, {name}"].values[-1]  # [S, blocks]
    sixth = max(losses.shape[-1] // 6, 1)
    ratios = losses[:, -sixth:].mean(1) / losses[:, -2 * sixth : -sixth].mean(1)
    return ratios[np.isfinite(ratios)]
