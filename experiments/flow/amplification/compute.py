"""The ratios of two demonstrations' flows, layer by layer, in untrained and in trained stacks."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow import pairs
from experiments.flow.amplification import cases
from experiments.flow.amplification.config import Config
from experiments.models import tasks
from experiments.models.model import forward
from experiments.models.trained import trained

FREE_OR_FROZEN = ("masked: tied", "masked: frozen")  # demonstrations that move, or do not


def untrained(config):
    """Log ratios {case: [R, B, 2, 2, L]} and agreements with κ {rule: [R]}."""
    logs, agreed = {}, {}
    for case, run, params, batch in cases.untrained(config):
        logs[case] = np.asarray(pairs.measure(pairs.log_ratios, run, params, batch))
        if case in (*(f"linear: tied, gain {g:g}" for g in config.gains), *FREE_OR_FROZEN):
            kappa = np.asarray(pairs.couplings(params, batch))
            agreed[f"flow, {case}"] = pairs.agreement(logs[case][:, :, 0, 0], kappa)
        if case in FREE_OR_FROZEN:
            added = pairs.measure(pairs.contribution_ratio, run, params, batch)
            agreed[f"contribution, {case}"] = pairs.agreement(np.asarray(added), kappa)
    return logs, agreed


def by_training(config, progress):
    """``pairs.before_and_after`` and how training ended, of each of the trained stacks [K, ...]."""
    specs = cases.to_train(config)
    task = tasks.distribution(specs["linear"].task, dtype=jnp.float32)
    draw = partial(tasks.draw, task=task, size=config.trained_pairs)
    key = jax.random.fold_in(jax.random.key(config.seed), 2**20)
    batch = jax.jit(jax.vmap(draw))(jax.random.split(key, config.trained_runs))
    batch = jax.tree.map(lambda leaf: leaf.astype(float), batch)
    rows = []
    for kind, spec in specs.items():
        runs = trained(spec, f"amplification: {kind}", progress=progress)
        path = jax.tree.map(lambda leaf: leaf.astype(float), runs.path)
        logs, errors = pairs.before_and_after(forward(spec), path, batch)
        rows.append((logs, errors, [str(status) for status in runs.status]))
    return [np.stack(column) for column in zip(*rows, strict=True)]


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    after, errors, status = by_training(config, progress)
    logs, agreed = untrained(config)
    logs_of_pairs = np.moveaxis(np.stack([*logs.values()]), 2, -2)
    groups = {
        "": (("case", "run", "mode", "reading"), "layer", pairs.summed_up(logs_of_pairs)),
        "trained_": (("kind", "trained_run", "stage"), "trained_layer", pairs.summed_up(after)),
    }
    data = {
        f"{prefix}{name}": ((*axes, *[layer] * (np.ndim(values) > len(axes))), np.asarray(values))
        for prefix, (axes, layer, summary) in groups.items()
        for name, values in summary.items()
    }
    data["agreement"] = (("rule", "run"), np.stack([*agreed.values()]))
    data["error"] = (("kind", "trained_run", "stage"), errors)
    data["status"] = (("kind", "trained_run"), status)
    return xr.Dataset(
        data,
        {
            "case": list(logs),
            "rule": list(agreed),
            "mode": list(pairs.MODES),
            "reading": list(pairs.READINGS),
            "layer": np.arange(config.depth) + 1,
            "kind": list(config.trained_kinds),
            "stage": ["untrained", "trained"],
            "trained_layer": np.arange(config.trained_depth) + 1,
        },
    )
