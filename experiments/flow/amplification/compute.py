"""The ratios of two demonstrations' flows, layer by layer, in untrained and in trained stacks."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow import pairs
from experiments.flow.amplification import cases
from experiments.flow.amplification.config import Config
from experiments.flow.amplification.stacks import HALVED
from experiments.models import tasks
from experiments.models.model import forward
from experiments.models.trained import trained

FROZEN = "masked: frozen"  # a lone demonstration stays as it is


def untrained(config):
    """``pairs.summed_up`` of log ratios {case: {name: [R, 2, 2, ...]}} and agreements with κ
    {rule: [R]}."""
    summaries, agreed = {}, {}
    for case, run, params, batch in cases.untrained(config):
        logs = np.asarray(pairs.measure(pairs.log_ratios, run, params, batch))
        summaries[case] = pairs.summed_up(np.moveaxis(logs, 1, -2))
        if case in (*(f"linear: tied, gain {g:g}" for g in config.gains), FROZEN):
            kappa = np.asarray(pairs.couplings(params, batch))
            agreed[f"flow, {case}"] = pairs.agreement(logs[:, :, 0, 0], kappa)
    return summaries, agreed


def by_training(config, progress):
    """``pairs.summed_up`` {name: [K, R, 2, 2, 2, ...]}, errors and status of the trained stacks,
    and the least errors."""
    specs = cases.to_train(config)
    task = tasks.distribution(specs["linear"].task, dtype=jnp.float32)
    draw = partial(tasks.draw, task=task, size=config.trained_pairs)
    key = jax.random.fold_in(jax.random.key(config.seed), 2**20)
    batch = jax.jit(jax.vmap(draw))(jax.random.split(key, config.trained_runs))
    batch = jax.tree.map(lambda leaf: leaf.astype(float), batch)
    summaries, errors, status = [], [], []
    for kind, spec in specs.items():
        seen = _halved(batch) if kind.endswith(HALVED) else batch
        runs = trained(spec, f"amplification: {kind}", progress=progress)
        path = jax.tree.map(lambda leaf: leaf.astype(float), runs.path)
        logs, of_kind = pairs.before_and_after(forward(spec), path, seen)
        summaries.append(pairs.summed_up(np.moveaxis(np.asarray(logs), 2, -2)))
        errors.append(of_kind)
        status.append([str(each) for each in runs.status])
    return _stacked(summaries), np.stack(errors), status, pairs.least_errors(batch)


def _halved(batch):
    """Shorter demonstrations: the moment of a lone one is then of the size of those in training."""
    return batch.replace(x=batch.x / 2, y=batch.y / 2)


def _stacked(summaries):
    return {name: np.stack([rows[name] for rows in summaries]) for name in summaries[0]}


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    after, errors, status, least = by_training(config, progress)
    before, agreed = untrained(config)
    kept = ("mode", "reading")
    groups = {
        "": (("case", "run", *kept), "layer", _stacked([*before.values()])),
        "trained_": (("kind", "trained_run", "stage", *kept), "trained_layer", after),
    }
    data = {
        f"{prefix}{name}": ((*axes, *[layer] * (np.ndim(values) > len(axes))), np.asarray(values))
        for prefix, (axes, layer, summary) in groups.items()
        for name, values in summary.items()
    }
    data["agreement"] = (("rule", "run"), np.stack([*agreed.values()]))
    data["error"] = (("kind", "trained_run", "stage", "shots"), errors)
    data["least_error"] = (("trained_run", "shots"), least)
    data["status"] = (("kind", "trained_run"), status)
    return xr.Dataset(
        data,
        {
            "case": list(before),
            "rule": list(agreed),
            "mode": list(pairs.MODES),
            "reading": list(pairs.READINGS),
            "layer": np.arange(config.depth) + 1,
            "kind": list(cases.to_train(config)),
            "shots": [1, config.shots],
            "stage": ["untrained", "trained"],
            "trained_layer": np.arange(config.trained_depth) + 1,
        },
    )
