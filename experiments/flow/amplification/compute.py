"""The ratios of two demonstrations' flows, layer by layer, in untrained and in trained stacks."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow import pairs
from experiments.flow.amplification import cases
from experiments.flow.amplification.config import Config
from experiments.flow.amplification.stacks import shared_case
from experiments.models import tasks
from lsa_lab.models import moments
from lsa_lab.store.results import in_short

FROZEN = "masked: frozen"  # a lone demonstration stays as it is


def untrained_summaries(config):
    """``pairs.summarise`` of log ratios {case: {name: [R, ...]}}, of masked stacks by the
    prediction, of others by the token; and agreements with κ {rule: [R]}."""
    summaries, agreed = {}, {}
    usual = [f"{kind}: gain {config.gain:g}" for kind in config.kinds]
    for case, run, params, batch in cases.untrained_cases(config):
        logs = np.asarray(pairs.measure(pairs.log_ratios, run, params, batch))
        reading = pairs.READINGS.index("prediction" if case.startswith("masked") else "token")
        summaries[case] = pairs.summarise(logs[:, :, 0, reading])
        if case in usual:
            summaries[shared_case(case)] = pairs.summarise(logs[:, :, 1, reading])
        if case in (*(f"linear: tied, gain {g:g}" for g in config.gains), FROZEN):
            kappa = np.asarray(pairs.couplings(params, batch))
            agreed[f"flow, {case}"] = pairs.agreement(logs[:, :, 0, 0], kappa)
    return summaries, agreed


def trained_summaries(config, models):
    """``pairs.summarise`` {name: [K, R, 2, 2, 2, ...]} and excess risks [K, R] of the trained
    stacks, and those [R] of the Bayes rule."""
    task = config.models[0][1].task
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
    for kind, spec in config.models:
        model = models[kind].models(seeds=slice(config.trained_runs))
        stages = cases.stage_params(spec, model.params, config.seed)
        logs = pairs.stage_log_ratios(cases.plain_forward(spec), stages, exact)
        summaries.append(pairs.summarise(np.moveaxis(np.asarray(logs), 2, -2)))
        risk = moments.compiled(partial(jax.lax.map, lambda row: row[0].errors(row[1]).mean()))
        risks.append(np.asarray(risk((jax.tree.map(jnp.asarray, model), fresh))))
    return _stacked(summaries), np.stack(risks), pairs.least_risks(fresh, task.noise_std**2)


def _stacked(summaries):
    return {name: np.stack([rows[name] for rows in summaries]) for name in summaries[0]}


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    after, risks, least = trained_summaries(config, models)
    before, agreed = untrained_summaries(config)
    kept = ("mode", "reading")
    groups = {
        "": (("case", "run"), "layer", _stacked([*before.values()])),
        "trained_": (("kind", "trained_run", "stage", *kept), "trained_layer", after),
    }
    data = {
        f"{prefix}{name}": ((*axes, *[layer] * (np.ndim(values) > len(axes))), in_short(values))
        for prefix, (axes, layer, summary) in groups.items()
        for name, values in summary.items()
    }
    data["agreement"] = (("rule", "run"), np.stack([*agreed.values()]))
    data["risk"] = (("kind", "trained_run"), risks)
    data["least_risk"] = (("trained_run",), np.asarray(least))
    return xr.Dataset(
        data,
        {
            "case": list(before),
            "rule": list(agreed),
            "mode": list(pairs.MODES),
            "reading": list(pairs.READINGS),
            "layer": np.arange(config.depth) + 1,
            "kind": [kind for kind, _ in config.models],
            "stage": ["untrained", "trained"],
            "trained_layer": np.arange(after["median"].shape[-1]) + 1,
        },
    )
