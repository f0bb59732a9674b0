"""What every rule loses at every place of the panels, on common prompts."""

import math

import numpy as np

from experiments.heads.rule_names import SPARSE_BAYES
from experiments.heads.sparse_risk.config import LAWS, PLAIN, RULES, Config
from experiments.heads.sparse_risk.losses import Place, mean_losses
from lsa_lab.store import parts
from lsa_lab.theory.wishart import rotation_invariant_bound


def compute(config: Config, *, progress=None, checkpoints=None):
    whole = measured(config, orders(config), RULES)
    for panel, (axes, places) in orders(config).items():
        own = [rotation_invariant_bound(place.n, place.d, place.noise_var) for place in places]
        whole[f"{panel}_bound"] = (tuple(axes), np.reshape(own, [*map(len, axes.values())]))
    rates = measured(config.rates, along_axes(config.rates))
    return parts.join(whole, rates=rates, duel=measured(config.duel, duels(config.duel)))


def orders(config: Config) -> dict[str, tuple[dict, list[Place]]]:
    """{panel: ({axis: values}, the place of each of its points)}"""
    usual = dict(n=config.n, d=config.d, s=config.s, noise_var=config.loud, signal=LAWS[0])

    def along(key, values, **own):
        return [Place(**usual | own | {key: value}) for value in values]

    laws = [*along("signal", LAWS), *along("s", [config.d])]
    return {
        "by_n": ({"n": config.lengths}, along("n", config.lengths, noise_var=config.noise_var)),
        "by_noise": ({"noise_var": config.noise_vars}, along("noise_var", config.noise_vars)),
        "by_s": ({"s": config.sparsities}, along("s", config.sparsities)),
        "by_law": ({"law": ("Gaussian", "Flat", "dense")}, laws),
    }


def along_axes(config) -> dict[str, tuple[dict, list[Place]]]:
    """The same of the rates: along each panel one number grows."""
    d, s, noise_var, longest = config.d, config.s, config.noise_var, config.lengths[-1]
    axes = {"n": config.lengths, "s": config.sparsities, "d": config.widths}

    def panel(axis, n):
        still = {"n": n, "d": d, "s": s, "noise_var": noise_var}
        return {axis: axes[axis]}, [Place(**still | {axis: value}) for value in axes[axis]]

    return {
        **{f"by_{axis}": panel(axis, longest) for axis in axes},
        **{f"short_by_{axis}": panel(axis, config.middle) for axis in ("s", "d")},
    }


def duels(config) -> dict[str, tuple[dict, list[Place]]]:
    """The same of the duel with the Lasso."""
    axes = {"law": LAWS, "width": config.widths, "per_d": config.per_d}
    places = [
        Place(ratio * d, d, config.s, config.noise_var, law)
        for law in LAWS
        for d in config.widths
        for ratio in config.per_d
    ]
    return {"risk": (axes, places)}


def measured(config, panels: dict, rules: tuple[str, ...] = PLAIN):
    """The Dataset of mean losses of every rule in every run, each place with prompts of its own."""
    import xarray as xr

    everywhere = dict.fromkeys(place for _, places in panels.values() for place in places)
    rows = {}
    for i, place in enumerate(everywhere):
        few = math.comb(place.d, place.s) <= getattr(config, "supports", 0)
        bayes = [rule for rule in rules[len(PLAIN) :] if few or rule != SPARSE_BAYES]
        risks = mean_losses(config, place, np.random.default_rng([config.seed, i]), bayes)
        rows[place] = np.full((len(rules), config.runs), np.nan)  # of a rule that is not to be had
        rows[place][: len(risks)] = risks
    variables, coordinates = {}, {"rule": list(rules)}
    for panel, (axes, places) in panels.items():
        risks = np.stack([rows[place] for place in places])
        risks = risks.reshape(*map(len, axes.values()), *risks.shape[1:])
        variables[panel] = (*axes, "rule", "run"), risks
        coordinates |= {axis: list(values) for axis, values in axes.items()}
    return xr.Dataset(variables, coordinates)
