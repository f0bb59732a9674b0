"""Ratios of readers' and of descents' risks, and what layer 1 holds, as `layer_probes` judges."""

from collections.abc import Iterable

import numpy as np

from experiments.heads.cases import of_case
from experiments.heads.layer_probes.config import FORMULA, OF_FULL, OF_SINGLE, RAW, SHUFFLED
from experiments.heads.rule_names import RIDGE
from lsa_lab import results


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    steps = (ratio for case in config.panels for ratio in layer_by_layer(dataset, case))

    def readers(ratio, *rest):  # of each model
        return (ratio(dataset, case, *rest) for case in config.panels)

    def descents(over, under):
        return (descent_ratio(dataset, case, over, under) for case in config.dissected)

    held = [held_by_the_first(dataset, case) for case in config.dissected]
    controls = (row for case in config.dissected for row in controls_of(dataset, case))
    return {
        "steady": largest(steps),
        "not_yet": smallest(readers(over_ridge, 1)),
        "at_last": largest(readers(over_ridge, -1)),
        "single": smallest(readers(over_full, "single head")),
        "descent_raw": largest(descents(OF_FULL, RAW)),
        "descent_single": largest(descents(OF_FULL, OF_SINGLE)),
        "descent_formula": largest(descents(OF_FULL, FORMULA)),
        "descent_control": smallest(descents(SHUFFLED, RAW)),
        "held": min((full for full, _ in held), key=np.mean),
        "held_by_more": min((full - single for full, single in held), key=np.mean),
        "control": max(controls, key=np.mean),
    }


def largest(ratios: Iterable[np.ndarray]) -> np.ndarray:  # rows of [R] -> [R]
    return max(ratios, key=lambda runs: np.log(runs).mean())


def smallest(ratios: Iterable[np.ndarray]) -> np.ndarray:  # rows of [R] -> [R]
    return min(ratios, key=lambda runs: np.log(runs).mean())


def layer_by_layer(dataset, case: str) -> np.ndarray:  # [L, R]
    """A reader's risk after each layer of the full model over that before it."""
    risks = of_case(dataset.reader.sel(model="full"), case).transpose("layer", "run").values
    return risks[1:] / risks[:-1]


def over_ridge(dataset, case: str, layer: int) -> np.ndarray:  # [R]
    """A reader's risk after a layer of the full model over that of ridge."""
    risks = of_case(dataset.reader.sel(model="full"), case).isel(layer=layer)
    return risks.values / float(dataset.known.sel(case=case, rule=RIDGE))


def over_full(dataset, case: str, model: str) -> np.ndarray:  # [R]
    """A reader's risk after the last layer of a model over that of the full one."""
    last = of_case(dataset.reader, case).isel(layer=-1)
    return (last.sel(model=model) / last.sel(model="full")).values


def descent_ratio(dataset, case: str, over: str, under: str) -> np.ndarray:  # [R]
    """Risks of descent on two features, at the steps that are best on the first half of the
    prompts, on the second half."""
    risks = of_case(dataset.descent, case)
    best = risks.isel(half=1).isel(step=risks.isel(half=0).argmin("step"))
    return (best.sel(feature=over) / best.sel(feature=under)).values


def held_by_the_first(dataset, case: str) -> tuple[np.ndarray, np.ndarray]:  # [R] twice
    """R² of r_j x_j after layer 1 of the full and of the single-head model."""
    shares = of_case(dataset.held.sel(layer=1), case)
    return shares.sel(model="full").values, shares.sel(model="single head").values


def controls_of(dataset, case: str) -> list[np.ndarray]:  # rows of [R]
    """R² of other prompts' r_j x_j, for the models of which every training has finished."""
    shares = of_case(dataset.control.sel(layer=1), case).transpose("model", "run").values
    return [row for row in shares if np.isfinite(row).all()]
