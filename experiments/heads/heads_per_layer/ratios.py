"""Ratios of risks and of losses out of a result, seed by seed."""

import numpy as np

from experiments.heads.heads_per_layer.config import FULL, SINGLE, counts, depths, place_of, sizes
from experiments.heads.rule_names import RIDGE, RULES
from lsa_lab.judging.statistics import worst
from lsa_lab.store import parts, results

VARIANTS = {"many heads in layer 1": "first", "one head in each layer": "single"}


def risk_of(dataset, model: str, whose: str):  # (seed, shots), or (shots,)
    """The risk of a variant of the model, of a rule, or of descent of as many steps."""
    if whose in RULES:
        return dataset.rule_risk.sel(rule=whose)
    if whose == "descent":
        return dataset[f"descent, {model}"]
    place = dict(depths(results.config_of(dataset)))[model].architecture.places[whose]
    return dataset[f"risk, {model}"].isel({f"heads, {model}": place}).transpose("seed", "shots")


def ratio(dataset, model: str, over: str, under: str) -> np.ndarray:  # [S]
    """The risk of a variant over that of another, or of a rule, at the judged n."""
    ratio = risk_of(dataset, model, over) / risk_of(dataset, model, under)
    return ratio.sel(shots=results.config_of(dataset).judged).values


def most_over(dataset, rival: str, variant: str, model: str) -> np.ndarray:  # [S]
    """The risk of a variant over that of a rival, at the n where it is most."""
    return worst(risk_of(dataset, model, variant) / risk_of(dataset, model, rival), np.mean)


def least_over_later(dataset, model: str) -> np.ndarray:  # [S]
    """The risk of many heads in layer 1 alone over that of many in all later layers and one there,
    at the n where it is least."""
    ratio = risk_of(dataset, model, "first") / risk_of(dataset, model, "later")
    return worst(ratio, lambda runs: -np.mean(runs))


def ratio_of_rows(dataset, model: str, rows: tuple[str, str]) -> np.ndarray:  # [S]
    """The risk with one row of heads over that with another, at the judged n."""
    risks = dataset[f"risk, {model}"].sel(shots=results.config_of(dataset).judged)
    over, under = (risks.sel({f"heads, {model}": row}).values for row in rows)
    return over / under


def risks_with(dataset, kind: str, heads: int):  # (seed, shots)
    """Those of the model with so many heads in the first layer, or in all."""
    names = {place_of(spec): name for name, spec in sizes(results.config_of(dataset))}
    name = names[SINGLE if heads == 1 else kind, heads]
    return parts.part(dataset, "beyond_d")[f"risk, {name}"]


def around_d(dataset, kind: str) -> list[np.ndarray]:  # three [S]
    """The risks with the numbers of heads next below d, d and next above, at the judged n, of the
    seeds that all have and that none diverged in."""
    config = results.config_of(dataset)
    each = [risks_with(dataset, kind, heads) for heads in counts(config)[kind]]
    rows = [risks.sel(shots=config.beyond_d.judged).values for risks in each]
    count = min(map(len, rows))
    both = np.isfinite([row[:count] for row in rows]).all(0)
    return [row[:count][both] for row in rows]


def rule_ratio(dataset, kind: str, rule: str):  # (seed, shots)
    """The risks with d heads, or with one a layer, over those of a rule."""
    d = counts(results.config_of(dataset))[FULL][1]
    risks = risks_with(dataset, kind, 1 if kind == SINGLE else d)
    finite = risks[np.isfinite(risks.values).all(1)]
    return finite / parts.part(dataset, "beyond_d").rule_risk.sel(rule=rule)


def ridge_ratio(dataset, kind: str, longer: bool = False) -> np.ndarray:  # [S]
    """The same at the n of the training, or at those beyond, where it is most."""
    ratios = rule_ratio(dataset, kind, RIDGE)
    trained = sizes(results.config_of(dataset))[0][1].task.lengths
    kept = ratios.shots > max(trained) if longer else ratios.shots.isin(trained)
    return worst(ratios.isel(shots=kept.values).values, np.mean)
