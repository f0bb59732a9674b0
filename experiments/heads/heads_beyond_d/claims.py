"""Ratios of risks of models with more heads and fewer, and of models and rules."""

import numpy as np

from experiments.heads.heads_beyond_d.config import FIRST, FULL, SINGLE, counts, kind_of
from experiments.heads.rule_names import LASSO, RIDGE, SPARSE_BAYES
from experiments.models.specs import restored
from lsa_lab import results
from lsa_lab.statistics import worst


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [S]}
    config, every = results.config_of(dataset), by_row(dataset)
    place = list(config.shots).index(config.judged)
    values = {}
    for kind, (fewer, d, more) in counts(config).items():
        low, middle, high = paired(
            *(at(every, kind, h)[:, place] for h in (fewer, d, more)),
        )
        values[f"up_to_d_{kind}"] = middle / low
        values[f"beyond_d_{kind}"] = high / middle
        below, above = np.log(low / middle), np.log(middle / high)
        values[f"kink_{kind}"] = below / np.log(d / fewer) - above / np.log(more / d)
    d = counts(config)[FULL][1]
    first, full = (at(every, kind, d) for kind in (FIRST, FULL))
    values["first_suffices"] = np.divide(*paired(first[:, place], full[:, place]))
    rules = {rule: dataset.rule_risk.sel(rule=rule).values for rule in (RIDGE, LASSO, SPARSE_BAYES)}
    first, full = (risks[np.isfinite(risks).all(1)] for risks in (first, full))
    lengths = restored(config.models[0][1]).task.lengths
    trained = np.isin(config.shots, lengths)
    longer = np.array(config.shots) > max(lengths)
    for id, risks in (("first", first), ("full", full)):
        values[f"{id}_ridge"] = worst((risks / rules[RIDGE])[:, trained], np.mean)
        values[f"{id}_lasso"] = (risks / rules[LASSO])[:, place]
    values["full_bayes"] = (full / rules[SPARSE_BAYES])[:, place]
    values["longer"] = worst((full / rules[RIDGE])[:, longer], np.mean)
    values["level"] = falls(dataset, d)
    return values


def by_row(dataset) -> dict[tuple[str, int], np.ndarray]:  # {(kind, heads): [S, shots]}
    models = results.config_of(dataset).models
    rows = {name: kind_of(restored(spec)) for name, spec in models}
    return {rows[name]: dataset[f"risk, {name}"].values for name in rows}


def at(every: dict, kind: str, heads: int) -> np.ndarray:  # [S, shots]
    return every[(SINGLE if heads == 1 else kind, heads)]


def paired(*rows) -> list[np.ndarray]:
    """Rows [S] at the seeds that all have and that none diverged in."""
    count = min(map(len, rows))
    both = np.isfinite([row[:count] for row in rows]).all(0)
    return [row[:count][both] for row in rows]


def falls(dataset, heads: int) -> np.ndarray:  # [S]
    """The loss in the last sixth of the training over that in the sixth before."""
    models = results.config_of(dataset).models
    (name,) = (name for name, spec in models if kind_of(restored(spec)) == (FULL, heads))
    losses = dataset[f"loss, {name}"].values
    sixth = max(losses.shape[-1] // 6, 1)
    ratios = losses[:, -sixth:].mean(1) / losses[:, -2 * sixth : -sixth].mean(1)
    return ratios[np.isfinite(ratios)]
