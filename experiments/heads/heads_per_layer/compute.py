"""Risks of every architecture, and of the rules that know the task, on the same prompts."""

import numpy as np

from experiments.heads.heads_per_layer.config import STYLES, Config, depths
from experiments.heads.sparse_judging import prompts_of, risks, rule_errors
from experiments.models.tasks import distribution
from experiments.models.trained import trained
from lsa_lab.theory import risk


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    arrays, task = {}, depths(config)[0][1].task
    tests = [prompts_of(config, task, n) for n in config.shots]
    for name, spec in config.models:
        label = f"sparse models: {name}"
        runs = trained(spec, label, retrain=config.retrain, progress=progress)
        every = runs.every.in_float64()
        arrays[f"risk, {name}"] = (
            (f"heads, {name}", "seed", "shots"),
            np.stack([risks(every, batch) for batch in tests], axis=-1),
        )
        arrays[f"loss, {name}"] = ((f"heads, {name}", "seed", f"block, {name}"), runs.loss)
        arrays[f"taken, {name}"] = ((f"heads, {name}", "seed"), runs.taken)
    pairs = [(distribution(task, n), batch) for n, batch in zip(config.shots, tests, strict=True)]
    rules = [[float(rule_errors(rule, *pair).mean()) for pair in pairs] for rule in STYLES]
    arrays["rule_risk"] = (("rule", "shots"), np.array(rules))
    noise = task.noise_std**2
    bound = [float(risk.rotation_invariant_bound(n, task.d, noise)) for n in config.shots]
    arrays["bound"] = ("shots", np.array(bound))
    coords = {"shots": list(config.shots), "rule": list(STYLES)}
    for name, spec in depths(config):
        variants = spec.architecture.variants
        coords[f"heads, {name}"] = [",".join(map(str, heads)) for heads in variants]
    return xr.Dataset(arrays, coords)
