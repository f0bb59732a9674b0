"""The ratios of two demonstrations' flows, layer by layer, in untrained and in trained stacks."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow import pairs
from experiments.flow.amplification import cases
from experiments.flow.amplification.config import Config
from experiments.flow.amplification.width import compare_widths
from experiments.models import tasks
from lsa_lab.models import moments
from lsa_lab.store import parts
from lsa_lab.store.results import in_short


def untrained_summaries(config):  # -> {case: {name: [R, ...]}}
    """``pairs.summarise`` of log ratios, of masked stacks by the prediction, of others by the
    token; each demonstration alone, and of the usual random stacks both in one prompt."""
    summaries, usual = {}, [f"{kind}: gain {config.gain:g}" for kind in config.kinds]
    for case, run, params, batch in cases.untrained_cases(config):
        logs = np.asarray(pairs.measure(pairs.log_ratios, run, params, batch))
        reading = pairs.READINGS.index("prediction" if case.startswith("masked") else "token")
        summaries[case] = pairs.summarise(logs[:, :, 0, reading])
        if case in usual:
            summaries[f"{case}, shared"] = pairs.summarise(logs[:, :, 1, reading])
    return summaries


def trained_summaries(config, models):
    """``pairs.summarise`` {name: [K, R, modes, ...]} of log ratios of the trained stacks, by the
    prediction; their excess risks [K, R], and those [R] of the Bayes rule."""
    task = config.trained[0][1].task
    law = tasks.distribution(task, dtype=jnp.float32)
    key = jax.random.fold_in(jax.random.key(config.seed), 2**20)
    keys = jax.random.split(key, (2, config.trained_runs))
    batch, fresh = (
        jax.jit(jax.vmap(partial(tasks.draw, task=law, size=size)))(of_runs)
        for size, of_runs in zip(
            (config.trained_pairs, 16 * config.trained_pairs), keys, strict=True
        )
    )
    exact = jax.tree.map(lambda leaf: leaf.astype(float), batch)
    summaries, risks = [], []
    for kind, spec in config.trained:
        model = models[kind].models(seeds=slice(config.trained_runs))
        stages = jax.tree.map(lambda leaf: jnp.asarray(leaf, float)[:, None], model.params)
        logs = pairs.stage_log_ratios(cases.plain_forward(spec), stages, exact)
        summaries.append(pairs.summarise(np.moveaxis(np.asarray(logs)[:, 0, :, :, 1], 1, -2)))
        risk = moments.compiled(partial(jax.lax.map, lambda row: row[0].errors(row[1]).mean()))
        risks.append(np.asarray(risk((jax.tree.map(jnp.asarray, model), fresh))))
    return (
        pairs.stack_summaries(summaries),
        np.stack(risks),
        pairs.least_risks(fresh, task.noise_std**2),
    )


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    after, risks, least = trained_summaries(config, models)
    before = untrained_summaries(config)
    data = pairs.variables("", ("case", "run"), pairs.stack_summaries([*before.values()]))
    data |= pairs.variables("trained_", ("kind", "trained_run", "mode"), after)
    data["risk"] = (("kind", "trained_run"), risks)
    data["least_risk"] = (("trained_run",), np.asarray(least))
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
