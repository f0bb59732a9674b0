"""The part on width: random stacks of growing width, and trained ones that have empty slots."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow import pairs
from experiments.flow.amplification.config import WIDE, Width
from experiments.models import tasks
from experiments.models.model import Model
from lsa_lab import prompts
from lsa_lab.models import linear_attention, moments, transformer


def forward_with_slots(params, tokens, keys="demonstrations"):
    """Linear attention as wide as its weights: empty slots before the label, which stays last."""
    slots = params.w_kq.shape[-1] - tokens.shape[-1]
    wide = jnp.concatenate([jnp.pad(tokens[:, :-1], ((0, 0), (0, slots))), tokens[:, -1:]], axis=1)
    return linear_attention.forward(params, wide, keys=keys)


UNMASKED = partial(forward_with_slots, keys="all")  # as in A1: the query is a key


def wide_cases(config: Width):
    """Forward, Params [R, L, ...] and Prompt [R, B] of every random stack, kind by kind."""
    rng, d = np.random.default_rng(config.seed), config.d
    batch, _ = pairs.draw(rng, config.runs, config.pairs, d)
    for width in config.widths:
        yield UNMASKED, linear(rng, config, width, d), batch
    for width in config.widths:
        wide, _ = pairs.draw(rng, config.runs, config.pairs, width - 1)
        yield UNMASKED, linear(rng, config, width, width - 1), wide
    for i, width in enumerate(config.widths):
        sizes = dict(width=width, keys="all", init_scale=1.0)
        shape = transformer.Config(d + 1, config.depth, 1, width, **sizes)
        keys = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), i), config.runs)
        params = jax.vmap(partial(transformer.init, config=shape))(keys)
        forward = partial(transformer.forward, config=shape)
        yield forward, pairs.amplify(params, config.gain), batch


def linear(rng, config: Width, width: int, d: int):  # -> Params [R, L, ...]
    """Stacks as wide as ``width``, of the gain that a stack has for tokens of d covariates."""
    wide = pairs.random_linear(rng, config.runs, config.depth, width - 1)
    return pairs.amplify(wide, config.gain * (width - 1) / d)


def summarise(logs):
    whole = pairs.summarise(logs)
    return {name: whole[name] for name in ("median", "spread", "dropped")}


def random_summaries(config):  # -> {name: [kinds, widths, R, ...]}
    rows = []
    for forward, params, batch in wide_cases(config):
        logs = np.asarray(pairs.measure(pairs.log_ratios, forward, params, batch))
        rows.append(summarise(logs[:, :, 0, 0]))
    places = (len(WIDE), len(config.widths))
    return {k: v.reshape(*places, *v.shape[1:]) for k, v in pairs.stack_summaries(rows).items()}


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
        logs = pairs.stage_log_ratios(
            forward_with_slots, stages, own
        )  # [S, 1, B, modes, readings, L]
        rows.append(summarise(np.asarray(logs)[:, 0, :, 1, 1]))
        risk = moments.compiled(partial(jax.lax.map, lambda row: row[0].risk(row[1])))
        risks.append(np.asarray(risk((Model(runs.spec, params), fresh))))
    least = np.asarray(pairs.least_risks(fresh, config.noise_std**2))
    return pairs.stack_summaries(rows), np.stack(risks), least


def compare_widths(config: Width, models):  # -> Dataset
    import xarray as xr

    after, risks, ridge = trained_summaries(config, models)
    data = pairs.variables("", ("kind", "width", "run"), random_summaries(config))
    data |= pairs.variables("trained_", ("trained_width", "seed"), after)
    data |= {"risk": (("trained_width", "seed"), risks), "ridge": (("seed",), ridge)}
    return xr.Dataset(
        data,
        {
            "kind": list(WIDE),
            "width": list(config.widths),
            "layer": np.arange(config.depth) + 1,
            "trained_width": [spec.token_width for _, spec in config.models],
            "trained_layer": np.arange(config.trained_depth) + 1,
        },
    )
