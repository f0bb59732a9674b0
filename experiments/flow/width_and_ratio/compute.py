"""The ratios of two demonstrations' flows in random stacks and in trained ones, by width."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow import pairs
from experiments.flow.width_and_ratio import stacks
from experiments.flow.width_and_ratio.config import UNTRAINED, Config
from experiments.models import tasks
from experiments.models.model import Model
from lsa_lab import prompts as in_units
from lsa_lab.models import moments

NUMBERS = ("median", "spread", "dropped")


def random_summaries(config):  # -> {name: [kinds, widths, R, ...]}
    rows = []
    for _, forward, params, batch in stacks.untrained_cases(config):
        logs = np.asarray(pairs.measure(pairs.log_ratios, forward, params, batch))
        summary = pairs.summarise(logs[:, :, 0, 0])
        rows.append({name: np.asarray(summary[name]) for name in NUMBERS})
    shape = (len(UNTRAINED), len(config.widths))
    stacked = {name: np.stack([row[name] for row in rows]) for name in NUMBERS}
    return {name: values.reshape(*shape, *values.shape[1:]) for name, values in stacked.items()}


def trained_summaries(config, models):
    """Summaries {name: [widths, S, 2, ...]} before and after the training, on the same prompts at
    all widths; excess risks [widths, S], and those [S] of the Bayes rule."""
    task = config.models[0][1].task
    law = tasks.distribution(task, dtype=jnp.float32)
    keys = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), 2**20), config.seeds)
    batch = jax.jit(jax.vmap(partial(tasks.draw, task=law, size=config.trained_pairs)))(keys)
    fresh = jax.jit(jax.vmap(partial(tasks.draw, task=law, size=16 * config.trained_pairs)))(
        jax.vmap(partial(jax.random.fold_in, data=1))(keys)
    )
    exact = jax.tree.map(lambda leaf: leaf.astype(float), batch)
    own = jax.vmap(jax.vmap(lambda prompt: in_units.normalised(prompt)[0]))(exact)
    rows, risks = [], []
    for runs in models.values():
        path = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), runs.path)
        logs = pairs.stage_log_ratios(stacks.slotted, path, own)  # [S, 2, B, modes, readings, L]
        summary = pairs.summarise(np.asarray(logs)[:, :, :, 1, 1])
        rows.append({name: np.asarray(summary[name]) for name in NUMBERS})
        risk = moments.compiled(partial(jax.lax.map, lambda row: row[0].risk(row[1])))
        risks.append(np.asarray(risk((_stack(runs), fresh))))
    stacked = {name: np.stack([row[name] for row in rows]) for name in NUMBERS}
    return stacked, np.stack(risks), np.asarray(pairs.least_risks(fresh, config.noise_std**2))


def _stack(runs):
    return Model(runs.spec, jax.tree.map(jnp.asarray, runs.models().params))


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    random = random_summaries(config)
    after, risks, ridge = trained_summaries(config, models)
    groups = {
        "": (("kind", "width", "run"), "layer", random),
        "trained_": (("trained_width", "seed", "stage"), "trained_layer", after),
    }
    data = {
        f"{prefix}{name}": ((*axes, *[layer] * (values.ndim > len(axes))), values)
        for prefix, (axes, layer, numbers) in groups.items()
        for name, values in numbers.items()
    }
    data |= {"risk": (("trained_width", "seed"), risks), "ridge": (("seed",), ridge)}
    return xr.Dataset(
        data,
        {
            "kind": list(UNTRAINED),
            "width": list(config.widths),
            "layer": np.arange(config.depth) + 1,
            "trained_width": [spec.token_width for _, spec in config.models],
            "stage": ["untrained", "trained"],
            "trained_layer": np.arange(config.trained_depth) + 1,
        },
    )
