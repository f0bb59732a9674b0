"""When does descent on preprocessed covariates beat descent, and do trained models do it?"""

import jax
import numpy as np

from experiments import style
from experiments.configs.preprocess_then_optimise import CLAIMS, TIERS, Config
from experiments.parts import descent_risks, learned_features, preprocessing, sparse_rules
from experiments.parts import preprocessing_panels as panels
from experiments.parts.learned_features import FEATURES, FITTED, MODELS
from experiments.parts.preprocessing import RULES, TUNED
from lsa_lab import results
from lsa_lab.claims import Claim, about_the_mean, about_the_median, judge

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    keys = [jax.random.fold_in(jax.random.key(config.seed), tag) for tag in range(3)]
    law, wide = descent_risks.laws(config)
    return xr.Dataset(
        {
            **descent_risks.of_first_task(config, law, keys[0]),
            **descent_risks.of_wide_task(config, wide, keys[1]),
            **learned_features.compute(config, keys[2], progress),
        },
        {
            "heads": list(config.heads),
            "heads_missing": [0, 1],
            "rule": list(RULES),
            "t": preprocessing.steps(config.steps),
            "used": ["raw", *map(str, config.heads)],
            "tuned": list(TUNED),
            "depth": np.arange(1, config.depth + 1),
            "reference": list(sparse_rules.RULES),
            "features": list(FEATURES),
            "step": np.arange(config.trained_steps + 1),
            "model": list(MODELS),
            "fitted_rule": list(FITTED),
        },
    )


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(10.5, 6.8, (2, 3))
    lost = panels.few_steps(axes[0], dataset)
    lost += panels.many_steps(axes[1], dataset.by_step, dataset.t)
    panels.levels(axes[1], dataset.of_rule, ("ridge", "Lasso", "sparse Bayes"), 0.01)
    axes[1].set(ylabel="excess risk")
    axes[1].set_title("many steps of one size")
    axes[1].legend()
    units = settings.wide_n / settings.wide_noise_var
    lost += panels.many_steps(axes[2], units * dataset.wide_by_step, dataset.t)
    for value, text in ((settings.wide_d, "d"), (settings.wide_sparsity, "s")):
        panels.level(axes[2], value, text)
    axes[2].set(ylabel="n · excess risk / σ²")
    axes[2].set_title(
        f"as b: d = {settings.wide_d}, s = {settings.wide_sparsity}, n = {settings.wide_n}"
    )
    lost += panels.by_heads(axes[3], dataset)
    lost += panels.learned(axes[4], dataset)
    lost += panels.reached(axes[5], dataset)
    style.caption(
        drawn,
        f"a, b, d: d = {settings.d}, s = {settings.sparsity}, n = {settings.n}, σ² = "
        f"{settings.noise_var:g}. With one step size for all prompts, a few steps on preprocessed "
        "covariates lose against plain descent, and only very many win; with R normalised in each "
        "prompt they win at once. Sizes are chosen on other prompts: in a one for each step (α I + "
        "β R² explodes on rare prompts), in b and c one for each number of steps; in d and e half "
        f"the largest that converges in the prompt. e, f: family {settings.family!r}, n = "
        f"{settings.trained_n}; the models do more than descend on what their first layer writes. "
        f"Median of {settings.runs} runs of {settings.prompts} prompts (c: {settings.wide_runs} of "
        f"{settings.wide_prompts}; e, f: {dataset.sizes['seed']} seeds, {int(dataset.diverged)} "
        f"left out as diverged) and the middle 80 %; {lost} numbers left out as not finite.",
    )
    return drawn


def claims(dataset):
    settings = results.settings(dataset)
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
            made.append(Claim(*row, value, (value, value), judge((value, value), **limits)))
        elif "seeds" in measured:
            made.append(about_the_mean(*row, values, **limits))
        else:
            made.append(about_the_median(*row, values, **limits))
    return made


def worst(ratio, choose):  # [run, place] -> [R], at the place where the median is worst
    values = ratio.transpose("run", ...).values
    return values[:, choose(np.median(values, axis=0))]
