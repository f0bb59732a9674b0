"""Risks of every variant, of descent and of rules that know the task, on the same prompts."""

from functools import partial

import jax
import numpy as np

from experiments.heads import sparse_rules, tuned_descent
from experiments.heads.heads_per_layer.config import Config, depths
from experiments.heads.rule_names import RULES
from experiments.models import tasks
from experiments.models.model import Model
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt
from lsa_lab.theory.wishart import rotation_invariant_bound


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    task, arrays = depths(config)[0][1].task, {}
    of_length = [tasks.distribution(task, n) for n in config.shots]
    batches = [prompts_of(config, distribution) for distribution in of_length]
    for name, runs in models.items():
        every, axes = runs.every.in_float64(), (f"heads, {name}", "seed")
        risks = np.stack([risks_of(every, batch) for batch in batches], axis=-1)
        arrays[f"risk, {name}"] = ((*axes, "shots"), risks)
        arrays[f"loss, {name}"] = ((*axes, f"block, {name}"), runs.loss)
        arrays[f"taken, {name}"] = (axes, runs.taken)
    pairs = list(zip(batches, of_length, strict=True))
    for name, spec in depths(config):
        parameters = spec.architecture.depth, config.tuning_prompts
        risks = [tuned_descent.errors(*pair, *parameters).mean() for pair in pairs]
        arrays[f"descent, {name}"] = ("shots", np.array(risks))
    rules = [[float(sparse_rules.errors(rule, *pair).mean()) for pair in pairs] for rule in RULES]
    arrays["rule_risk"] = (("rule", "shots"), np.array(rules))
    bound = [float(rotation_invariant_bound(n, task.d, task.noise_std**2)) for n in config.shots]
    arrays["bound"] = ("shots", np.array(bound))
    coords = {"shots": list(config.shots), "rule": list(RULES)}
    for name, spec in depths(config):
        variants = spec.architecture.variants
        coords[f"heads, {name}"] = [",".join(map(str, heads)) for heads in variants]
    return xr.Dataset(arrays, coords)


def prompts_of(config, task) -> Prompt:  # [B]
    key = jax.random.fold_in(jax.random.key(config.seed), task.n)
    return tasks.draw(key, task, config.test_prompts)


def risks_of(models: Model, batch: Prompt) -> np.ndarray:  # leaves [A, S, ...] -> [A, S]
    """The mean excess risk of every run, one after the other in one program."""

    @partial(jax.jit, compiler_options=moments.compiler_options())
    def over(models, batch):
        by_seed = partial(jax.lax.map, lambda model: model.risk(batch))
        return jax.lax.map(by_seed, models)

    return np.asarray(over(models, batch))
