"""Which rules can use sparsity in context, and how much do they gain?"""

import numpy as np

from experiments import style
from experiments.configs.sparse_risk import CLAIMS, TIERS, Config
from experiments.parts.sparse_panels import BOUND, against, against_n, duel, laws, plateaus, ratio
from experiments.parts.sparse_places import BAYES, PLAIN, RULES, axes_of, measure, places
from lsa_lab import results
from lsa_lab.claims import Claim, about_the_mean, judge

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]

SQUARES, DESCENT, RIDGE, PREPROCESSED, LASSO = PLAIN
EQUIVARIANT, EXACT = BAYES


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    panels = places(config)
    wide = {"wide": panels.pop("wide")}
    found = measure(config, panels, config.prompts, config.tuning, 0)
    found |= measure(config, wide, config.wide_prompts, config.wide_tuning, 2)
    variables, coordinates = {}, {"rule": list(RULES), "descent": [DESCENT, PREPROCESSED]}
    for panel, axes in axes_of(config).items():
        shape = [len(values) for values in axes.values()]
        for name, more, values in zip(
            ("", "_steps", "_bound"), (("rule", "run"), ("descent",), ()), found[panel], strict=True
        ):
            variables[panel + name] = ((*axes, *more), values.reshape(*shape, *values.shape[1:]))
        coordinates |= {axis: list(values) for axis, values in axes.items()}
    return xr.Dataset(variables, coordinates)


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(10.0, 6.4, (2, 3))
    against_n(axes[0], dataset)
    against(axes[1], dataset, "by_noise", "noise_var", "noise variance σ²")
    axes[1].set_title(f"against noise, n = {settings.n}")
    against(axes[2], dataset, "by_s", "s", f"non-zeros s of {settings.d}")
    axes[2].set_title(f"against sparsity, n = {settings.n}, σ² = {settings.loud:g}")
    plateaus(axes[3], dataset)
    laws(axes[4], dataset)
    duel(axes[5], dataset)
    here, few = ratio(dataset, "by_law").sel(law="Gaussian"), settings.sparsities[0]
    scarce = ratio(dataset, "by_s").sel(s=few, rule=EQUIVARIANT)
    gain = {rule: f"{100 * float(1 - here.sel(rule=rule).mean()):.0f} %" for rule in RULES}
    style.caption(
        drawn,
        f"{BOUND}: the least risk of rules that ignore directions and are linear in the labels, "
        f"attained by ridge. With d = {settings.d}, s = {settings.s}, n = {settings.n}, σ² = "
        f"{settings.loud:g} preprocessed descent is {gain[PREPROCESSED]} below it, the Lasso "
        f"{gain[LASSO]}, the exact Bayes rule {gain[EXACT]} (shown where it can be enumerated); "
        f"the best of all rules that commute with rotations {gain[EQUIVARIANT]}, and for s = {few} "
        f"it is {100 * float(1 - scarce.mean()):.0f} % below. a to c: Gaussian non-zeros; d, e: "
        f"colours as in a. Penalty and number of steps are the best for each law, chosen on other "
        f"prompts. Means over {settings.runs * settings.prompts} common prompts in {settings.runs} "
        f"runs (d: {settings.runs * settings.wide_prompts}) and their 95 % intervals.",
    )
    return drawn


def paired(dataset, panel, better, worse):
    """What ``worse`` loses beyond ``better``, over the bound."""
    over = ratio(dataset, panel)
    return over.sel(rule=worse) - over.sel(rule=better)


def rows(*some):  # -> [place, run]
    return np.concatenate(
        [one.transpose(..., "run").values.reshape(-1, one.sizes["run"]) for one in some]
    )


def in_order(dataset) -> dict:  # {claim: differences [place, run] that are to be positive}
    settings = results.settings(dataset)
    sparse = dataset.s.values[dataset.s.values < settings.d]
    duel = paired(dataset, "long", PREPROCESSED, LASSO)
    last = duel.sel(signal="flat").isel(length=-1)
    dense = [paired(dataset, "by_law", RIDGE, rule) for rule in (LASSO, PREPROCESSED)]
    less = paired(dataset, "by_s", PREPROCESSED, RIDGE)
    return {
        "ridge": rows(*(paired(dataset, "by_n", RIDGE, rule) for rule in (DESCENT, SQUARES))),
        "preprocessed": rows(paired(dataset, "by_n", PREPROCESSED, RIDGE)),
        "lasso": rows(paired(dataset, "by_n", LASSO, RIDGE)),
        "bayes": rows(*(paired(dataset, "by_n", EXACT, rule) for rule in (LASSO, PREPROCESSED))),
        "noise": rows(paired(dataset, "by_noise", PREPROCESSED, RIDGE)),
        "less_sparse": rows(less.sel(s=sparse)),
        "dense": rows(*(one.sel(law="dense") for one in dense)),
        "gaussian": rows(-duel.sel(signal="gaussian")),
        "flat": rows(last, paired(dataset, "wide", PREPROCESSED, LASSO).isel(wide_n=-1)),
    }


def of_means(dataset) -> dict:  # {claim: (samples [run], at_least, at_most)}
    settings, slack = results.settings(dataset), results.settings(dataset).tolerance
    over = {panel: ratio(dataset, panel) for panel in axes_of(settings)}
    ridge = rows(*(one.sel(rule=RIDGE) for one in over.values()))
    others = rows(*(one.sel(rule=[SQUARES, DESCENT]) for one in over.values()))
    gains = rows(*(paired(dataset, panel, EQUIVARIANT, RIDGE)
                   for panel in ("by_n", "by_noise", "by_s", "by_law")))  # fmt: skip
    last = dataset.wide.isel(wide_n=-1) * settings.wide_lengths[-1] / settings.loud
    here = over["by_law"].sel(law="Gaussian", rule=PREPROCESSED).values
    return {
        "exact": (ridge[np.argmax(abs(ridge.mean(1) - 1))], 1 - slack, 1 + slack),
        "bound": (others[np.argmin(others.mean(1))], 1 - slack, None),
        "nonlinear": (gains[np.argmax(gains.mean(1))], None, settings.nonlinear),
        "gain": (here, None, settings.gain),
        "plateau": (last.sel(rule=PREPROCESSED).values / settings.s, None, settings.plateau),
        "stays": (last.sel(rule=DESCENT).values / settings.wide_d, settings.stays, None),
    }


def claims(dataset):
    settings = results.settings(dataset)
    ordered, means, made = in_order(dataset), of_means(dataset), []
    for name, (source, statement, criterion) in CLAIMS.items():
        fixed = f"sparse_risk.{name}", source, statement, criterion.format(**vars(settings))
        if name in means:
            samples, low, high = means[name]
            made.append(about_the_mean(*fixed, samples, at_least=low, at_most=high))
            continue
        middle = ordered[name].mean(1)
        error = ordered[name].std(1, ddof=1) / settings.runs**0.5
        least = np.argmin(middle / error)
        half = settings.errors * error[least]
        interval = middle[least] - half, middle[least] + half
        made.append(Claim(*fixed, middle[least], interval, judge(interval, at_least=0)))
    return made
