"""In which layers do heads help, and which rules do the models then beat?"""

import numpy as np

from experiments.heads.heads_per_layer.config import _STYLES, Config
from experiments.heads.sparse_judging import drawn, risks, rule_errors
from experiments.models.sparse_models import law
from experiments.models.sparse_training import trained
from experiments.models.specs import FAMILIES
from lsa_lab.theory import risk


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    arrays, names = {}, _depths(config)
    family = _family(config)
    tests = [drawn(config, family, n) for n in config.shots]
    for name in [*names, *(["long training"] if _has_long(config) else [])]:
        made = trained(config.families, name, config.retrain, progress)
        arrays[f"risk, {name}"] = (
            (f"heads, {name}", "seed", "shots"),
            np.stack([risks(made, batch) for batch in tests], axis=-1),
        )
        arrays[f"loss, {name}"] = ((f"heads, {name}", "seed", f"block, {name}"), made.loss)
        arrays[f"taken, {name}"] = ((f"heads, {name}", "seed"), made.taken)
    pairs = [(law(family, n), batch) for n, batch in zip(config.shots, tests, strict=True)]
    rules = [[float(rule_errors(rule, *pair).mean()) for pair in pairs] for rule in _STYLES]
    arrays["rule_risk"] = (("rule", "shots"), np.array(rules))
    noise = family.noise_std**2
    bound = [float(risk.rotation_invariant_bound(n, family.d, noise)) for n in config.shots]
    arrays["bound"] = ("shots", np.array(bound))
    coords = {"shots": list(config.shots), "rule": list(_STYLES)}
    for name in names:
        architectures = FAMILIES[config.families][name].architectures
        coords[f"heads, {name}"] = [",".join(map(str, heads)) for heads in architectures]
    return xr.Dataset(arrays, coords)


def _depths(config: Config) -> list[str]:
    """The families that differ in depth alone."""
    return [name for name in FAMILIES[config.families] if name.startswith("depth")]


def _family(config: Config):
    """Of which the task is the same in all."""
    return FAMILIES[config.families][_depths(config)[0]]


def _has_long(config: Config) -> bool:
    return "long training" in FAMILIES[config.families]
