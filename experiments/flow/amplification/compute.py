"""The ratios of two demonstrations' flows, layer by layer, in untrained and in trained stacks."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.flow import pairs
from experiments.flow.amplification.config import Config, Width
from experiments.models import tasks
from experiments.models.model import Model
from lsa_lab import prompts
from lsa_lab.models import constructions, linear_attention, moments, transformer
from lsa_lab.store import parts
from lsa_lab.store.results import in_short


def forward_with_slots(params, tokens, keys="demonstrations"):
    """Linear attention as wide as its weights: empty slots before the label, which stays last."""
    slots = params.w_kq.shape[-1] - tokens.shape[-1]
    wide = jnp.concatenate([jnp.pad(tokens[:, :-1], ((0, 0), (0, slots))), tokens[:, -1:]], axis=1)
    return linear_attention.forward(params, wide, keys=keys)


def draw(spec, size, *keys):
    """Prompts [R, size] of the task of a model for the first keys [R], of other sizes for more."""
    law = tasks.distribution(spec.task, dtype=jnp.float32)
    for each, times in zip(keys, (1, 16), strict=True):
        yield jax.jit(jax.vmap(partial(tasks.draw, task=law, size=times * size)))(each)


def excess_risks(models, fresh, risk):  # Model [R], Prompt [R, B] -> [R]
    return np.asarray(moments.compiled(partial(jax.lax.map, risk))((models, fresh)))


def compare_widths(config: Width, models):  # -> Dataset
    """Stacks of all widths on the same prompts, both demonstrations in one, by the label; their
    excess risks, and those of the Bayes rule."""
    keys = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), 2**20), config.seeds)
    others = jax.vmap(partial(jax.random.fold_in, data=1))(keys)
    batch, fresh = draw(config.models[0][1], config.trained_pairs, keys, others)
    exact = pairs.cast_float64(batch)
    own = jax.vmap(jax.vmap(lambda prompt: prompts.normalised(prompt)[0]))(exact)
    rows, risks = [], []
    for runs in (models[name] for name, _ in config.models):
        params = jax.tree.map(jnp.asarray, runs.models().params)
        logs = pairs.run_log_ratios(forward_with_slots, pairs.cast_float64(params), own)
        whole = pairs.summarise(np.asarray(logs)[:, :, 1, 1])
        rows.append({name: whole[name] for name in ("median", "spread", "dropped")})
        model = Model(runs.spec, params)
        risks.append(excess_risks(model, fresh, lambda row: row[0].risk(row[1])))
    least = np.asarray(pairs.least_risks(fresh, config.noise_std**2))
    after = pairs.stack_summaries(rows)
    data = pairs.variables("trained_", ("trained_width", "seed"), after)
    data |= {"risk": (("trained_width", "seed"), np.stack(risks)), "ridge": (("seed",), least)}
    widths = [spec.token_width for _, spec in config.models]
    layers = np.arange(config.trained_depth) + 1
    return xr.Dataset(data, {"trained_width": widths, "trained_layer": layers})


def untrained_cases(config):
    """Case, forward, Params [R, L, ...] and Prompt [R, B] of all that are not trained."""
    rng = np.random.default_rng(config.seed)
    batch = pairs.draw(rng, config.runs, config.pairs, config.d)
    base = pairs.random_linear(rng, config.runs, config.depth, config.d)
    for name, params in variants(base, config, config.gains).items():
        yield f"linear: {name}", pairs.UNMASKED, params, batch
    for tag, kind in enumerate(config.kinds[1:]):
        key, model = jax.random.fold_in(jax.random.key(config.seed), tag), shape(config, kind)
        base = random_transformers(key, config.runs, model)
        for name, params in variants(base, config, (config.gain,)).items():
            run = partial(transformer.forward, config=model)
            yield f"{kind}: {name}", run, params, batch


def shape(config, kind):
    """A random transformer's: "norm" has softmax, "MLP" a norm."""
    norm, mlp_width = kind in ("norm", "MLP"), config.mlp_width if kind == "MLP" else None
    e, depth = config.d + 1, config.depth
    sizes = dict(token_width=e, num_layers=depth, heads=1, key_width=e, mlp_width=mlp_width)
    return transformer.Config(**sizes, keys="all", norm=norm, init_scale=1.0)


def random_transformers(key, runs, model):  # -> Params [R, L, ...]
    """Random transformers of about gain 1, whose scores are of about that size, too."""
    many = dataclasses.replace(model, num_layers=runs * model.num_layers)
    deep = jax.jit(partial(transformer.init, config=many))(key)  # layers do not know each other
    return jax.tree.map(lambda leaf: leaf.reshape(runs, -1, *leaf.shape[1:]), deep)


def variants(base, config, gains):  # -> {name: Params [R, L, ...]}
    """A random stack of every gain, tied or not, and with a weaker residual connection."""
    by_name = {f"gain {gain:g}": pairs.amplify(base, gain) for gain in gains}
    by_name |= {f"tied, {name}": pairs.tie(params) for name, params in by_name.items()}
    if getattr(base, "attention_norm_scale", None) is None:
        skipped = jax.vmap(partial(constructions.skipped, weight=config.skip))
        by_name[f"skip {config.skip:g}"] = skipped(by_name[f"gain {config.gain:g}"])
    return by_name


def untrained_summaries(config):  # -> {case: {name: [R, ...]}}
    """``pairs.summarise`` of log ratios by the token, each demonstration alone."""
    summaries = {}
    for case, run, params, batch in untrained_cases(config):
        logs = np.asarray(pairs.measure(run, params, batch))
        summaries[case] = pairs.summarise(logs[:, :, 0, 0])
    return summaries


def trained_summaries(config, models):
    """``pairs.summarise`` {name: [K, R, modes, ...]} of log ratios of the trained stacks, by the
    prediction; their excess risks [K, R], and those [R] of the Bayes rule."""
    key = jax.random.fold_in(jax.random.key(config.seed), 2**20)
    keys, first = jax.random.split(key, (2, config.trained_runs)), config.trained[0][1]
    batch, fresh = draw(first, config.trained_pairs, *keys)
    exact = pairs.cast_float64(batch)
    summaries, risks = [], []
    for kind, spec in config.trained:
        model = models[kind].models(seeds=slice(config.trained_runs))
        params = pairs.cast_float64(model.params)
        logs = np.asarray(pairs.run_log_ratios(pairs.plain_forward(spec), params, exact))
        summaries.append(pairs.summarise(np.moveaxis(logs[:, :, :, 1], 1, -2)))
        model = jax.tree.map(jnp.asarray, model)
        risks.append(excess_risks(model, fresh, lambda row: row[0].errors(row[1]).mean()))
    least = pairs.least_risks(fresh, first.task.noise_std**2)
    return pairs.stack_summaries(summaries), np.stack(risks), np.asarray(least)


def compute(config: Config, models, *, progress=None, checkpoints=None):
    after, risks, least = trained_summaries(config, models)
    before = untrained_summaries(config)
    data = pairs.variables("", ("case", "run"), pairs.stack_summaries([*before.values()]))
    data |= pairs.variables("trained_", ("kind", "trained_run", "mode"), after)
    data["risk"] = (("kind", "trained_run"), risks)
    data["least_risk"] = (("trained_run",), least)
    main = xr.Dataset(
        data,
        {
            "case": list(before),
            "mode": list(pairs.MODES),
            "layer": np.arange(config.depth) + 1,
            "kind": [kind for kind, _ in config.trained],
            "trained_layer": np.arange(after["median"].shape[-1]) + 1,
        },
    )
    return parts.join(main.map(in_short), width=compare_widths(config.width, models))
