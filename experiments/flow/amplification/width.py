"""The part on width: trained stacks that have empty slots."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow import pairs
from experiments.flow.amplification.config import Width
from experiments.models import tasks
from experiments.models.model import Model
from lsa_lab import prompts
from lsa_lab.models import linear_attention, moments


def forward_with_slots(params, tokens, keys="demonstrations"):
    """Linear attention as wide as its weights: empty slots before the label, which stays last."""
    slots = params.w_kq.shape[-1] - tokens.shape[-1]
    wide = jnp.concatenate([jnp.pad(tokens[:, :-1], ((0, 0), (0, slots))), tokens[:, -1:]], axis=1)
    return linear_attention.forward(params, wide, keys=keys)


def trained_summaries(config, models):
    """Summaries {name: [widths, S, ...]} on the same prompts at all widths; excess risks
    [widths, S], and those [S] of the Bayes rule."""
    law = tasks.distribution(config.models[0][1].task, dtype=jnp.float32)
    keys = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), 2**20), config.seeds)
    batch, fresh = (
        jax.jit(jax.vmap(partial(tasks.draw, task=law, size=times * config.trained_pairs)))(each)
        for times, each in ((1, keys), (16, jax.vmap(partial(jax.random.fold_in, data=1))(keys)))
    )
    exact = jax.tree.map(lambda leaf: leaf.astype(float), batch)
    own = jax.vmap(jax.vmap(lambda prompt: prompts.normalised(prompt)[0]))(exact)
    rows, risks = [], []
    for runs in (models[name] for name, _ in config.models):
        params = jax.tree.map(jnp.asarray, runs.models().params)
        stages = jax.tree.map(lambda leaf: leaf.astype(float)[:, None], params)
        logs = pairs.stage_log_ratios(forward_with_slots, stages, own)
        whole = pairs.summarise(np.asarray(logs)[:, 0, :, 1, 1])  # both in one prompt, by the label
        rows.append({name: whole[name] for name in ("median", "spread", "dropped")})
        risk = moments.compiled(partial(jax.lax.map, lambda row: row[0].risk(row[1])))
        risks.append(np.asarray(risk((Model(runs.spec, params), fresh))))
    least = np.asarray(pairs.least_risks(fresh, config.noise_std**2))
    return pairs.stack_summaries(rows), np.stack(risks), least


def compare_widths(config: Width, models):  # -> Dataset
    import xarray as xr

    after, risks, ridge = trained_summaries(config, models)
    data = pairs.variables("trained_", ("trained_width", "seed"), after)
    data |= {"risk": (("trained_width", "seed"), risks), "ridge": (("seed",), ridge)}
    widths = [spec.token_width for _, spec in config.models]
    layers = np.arange(config.trained_depth) + 1
    return xr.Dataset(data, {"trained_width": widths, "trained_layer": layers})
