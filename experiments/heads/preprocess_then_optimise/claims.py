"""Risks over those of raw descent, of ridge and of descent on other features, run by run."""

import numpy as np

from experiments.heads.preprocess_then_optimise.config import MODELS, SHUFFLED
from experiments.heads.rule_names import EQUIVARIANT, RIDGE
from lsa_lab import results
from lsa_lab.statistics import worst


def samples(dataset) -> dict:
    return {
        **of_a_few_steps(dataset),
        **of_many_steps(dataset),
        **of_models(dataset),
    }


def of_a_few_steps(dataset) -> dict:  # {id: [R]}
    raw = dataset.fitted.sel(tuned="raw")
    ratio = (dataset.fitted / raw).transpose("run", ...)
    a_layer_less = dataset.fitted.isel(depth=-2) / raw.isel(depth=-1)
    return {
        "slow": worst(ratio.sel(tuned="preprocessed"), lambda runs: -np.median(runs)),
        "mixed": worst(ratio.sel(tuned="mixed")),
        "mixed_gain": ratio.sel(tuned="mixed").isel(depth=-1),
        "layer_for_layer": a_layer_less.sel(tuned="mixed"),
        "mixed_normalised": ratio.sel(tuned="mixed, normalised").isel(depth=-1),
        "normalised_layer_for_layer": a_layer_less.sel(tuned="mixed, normalised"),
    }


def of_many_steps(dataset) -> dict:  # {id: [R]}
    config = results.config_of(dataset)
    over_ridge = dataset.best / dataset.of_rule.sel(reference=RIDGE)
    heads = dataset.of_heads.transpose("run", ...)
    fewer = heads.sel(used=[str(count) for count in config.heads if count < config.d])
    wide = in_units_of_noise(config) * dataset.wide_best
    return {
        "best_step": over_ridge.sel(rule="own step"),
        "best_step_for_all": infinite_as_largest(over_ridge.sel(rule="preprocessed").values),
        "heads": worst(heads.sel(used=str(config.d)) / fewer),
        "plateau": wide.sel(rule="own step") / config.wide_sparsity,
        "dense": wide.sel(rule="raw") / config.wide_d,
    }


def of_models(dataset) -> dict:  # {id: [S]}
    single, pattern, full = MODELS
    best = dataset.learned_best
    over_raw = best / best.sel(features="raw")
    model = dataset.of_model.sel(model=full)
    return {
        "learned_white": over_raw.sel(features=full),
        "pattern": over_raw.sel(features=pattern),
        "single": over_raw.sel(features=single),
        "more_heads": best.sel(features=full) / best.sel(features=single),
        "shuffled": over_raw.sel(features=SHUFFLED),
        "later_layers": model / best.sel(features=full),
        "model": model / dataset.of_reference.sel(reference=EQUIVARIANT),
    }


def infinite_as_largest(ratios: np.ndarray) -> np.ndarray:  # [R]
    """A median may hold runs that diverged, as worse than all others."""
    return np.where(np.isposinf(ratios), np.finfo(float).max, ratios)


def in_units_of_noise(config) -> float:
    """n / σ² of the wide task, in which plain descent reaches d and the best rule s."""
    return config.wide_n / config.wide_noise_var


def steps_to_win(dataset, rule: str) -> int | None:
    """The number of steps from which on the median risk of a rule is below that of raw descent."""
    medians = dataset.by_step.median("run")
    ahead = (medians.sel(rule=rule) < medians.sel(rule="raw")).values
    start = len(ahead) - int(np.argmin(np.append(ahead[::-1], False)))
    return int(dataset.t[start]) if start < len(ahead) else None
