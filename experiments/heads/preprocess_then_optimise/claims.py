"""What the statements of `preprocess_then_optimise` are judged by."""

import numpy as np

from experiments.heads import sparse_rules
from experiments.heads.preprocess_then_optimise.config import CLAIMS
from experiments.heads.preprocess_then_optimise.learned_features import MODELS
from lsa_lab import results
from lsa_lab.claims import Claim, about_the_mean, about_the_median, verdict_of


def claims(dataset):
    settings = results.config_of(dataset)
    best, wide, learned = dataset.best, dataset.wide_best, dataset.learned_best
    few = dataset.fitted / dataset.fitted.sel(tuned="raw")
    ridge = dataset.of_rule.sel(reference="ridge")
    units = settings.wide_n / settings.wide_noise_var
    over_raw = learned / learned.sel(features="raw")
    ratio = dataset.of_heads.sel(used=str(settings.d)) / dataset.of_heads
    fewer = ratio.sel(used=[str(count) for count in settings.heads[:-1]])
    single, pattern, full = MODELS
    model = dataset.of_model.sel(model=full)
    by_layer = dataset.fitted.isel(depth=-2) / dataset.fitted.sel(tuned="raw").isel(depth=-1)
    equivariant = dataset.of_reference.sel(reference=sparse_rules.RULES[1])
    samples = {
        "exact": dataset.deviation.sel(heads_missing=0).max(),
        "broken": dataset.deviation.sel(heads_missing=1).min(),
        "slow": worst(few.sel(tuned="preprocessed"), np.argmin),
        "mixed": worst(few.sel(tuned="mixed"), np.argmax),
        "mixed_gain": few.sel(tuned="mixed").isel(depth=-1),
        "layer_for_layer": by_layer.sel(tuned="mixed"),
        "mixed_normalised": few.sel(tuned="mixed, normalised").isel(depth=-1),
        "normalised_layer_for_layer": by_layer.sel(tuned="mixed, normalised"),
        "best_step": best.sel(rule="own step") / ridge,
        "best_step_for_all": best.sel(rule="preprocessed") / ridge,
        "heads": worst(fewer, np.argmax),
        "plateau": wide.sel(rule="own step") * units / settings.wide_sparsity,
        "dense": wide.sel(rule="raw") * units / settings.wide_d,
        "learned": over_raw.sel(features=full),
        "learned_white": over_raw.sel(features=f"{full}, white"),
        "pattern": over_raw.sel(features=pattern),
        "single": over_raw.sel(features=single),
        "more_heads": learned.sel(features=full) / learned.sel(features=single),
        "shuffled": over_raw.sel(features="shuffled labels"),
        "later_layers": model / learned.sel(features=full),
        "model": model / equivariant,
    }
    known = vars(settings) | {"fewer": settings.depth - 1}
    known["1/like_descent"] = 1 / settings.like_descent
    made = []
    for name, (source, statement, measured, bounds) in CLAIMS.items():
        limits = {side: known[bound] for side, bound in bounds.items()}
        said = [f"{'>=' if s == 'at_least' else '<='} {b:.3g}" for s, b in limits.items()]
        row = (
            f"preprocess_then_optimise.{name}",
            source,
            statement.format(**known),
            f"{measured.format(**known)} {' and '.join(said)}",
        )
        values = np.asarray(samples[name])
        if not values.ndim:  # one number, without a spread
            value = float(values)
            made.append(Claim(*row, value, (value, value), verdict_of((value, value), **limits)))
        elif "seeds" in measured:
            made.append(about_the_mean(*row, values, **limits))
        else:
            made.append(about_the_median(*row, values, **limits))
    return made


def worst(ratio, choose):  # [run, place] -> [R], at the place where the median is worst
    values = ratio.transpose("run", ...).values
    return values[:, choose(np.median(values, axis=0))]
