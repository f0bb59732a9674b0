"""The flows of many demonstrations in descent and in stacks before and after training."""

from functools import partial

import jax
import numpy as np

from experiments.flow.many_shot_flow import flows
from experiments.flow.many_shot_flow.config import KINDS, Config
from experiments.models.model import forward
from lsa_lab.models import constructions


def stacks(config: Config, models) -> dict:  # {model: (forward, count -> Params [V, R])}
    """Together they are KINDS: descent with the step that is best for one layer, or with a part of
    it, and stacks before and after training."""
    by_kernel = {}
    for kernel, runs in models.items():
        path = jax.tree.map(lambda leaf: np.asarray(leaf, float), runs.path)
        by_kernel[kernel] = (forward(runs.spec), path)  # [R, V, ...]
    run_linear, linear = by_kernel["linear"]
    gains = np.array([config.gain, 1])  # before and after training
    descent = jax.jit(partial(constructions.gradient_descent, d=config.d))

    def linear_stacks(count):
        best = np.full(config.depth, 1 / (1 + (1 + config.d) / count))

        def join_kinds(
            leaf, *others
        ):  # [R, V, L, ...] and [L, ...] of the others -> [V, R, L, ...]
            others = [np.broadcast_to(other, leaf[:, 0].shape) for other in others]
            return np.stack([*others, *(leaf * gains[:, None, None, None, None]).swapaxes(0, 1)])

        return jax.tree.map(join_kinds, linear, descent(best), descent(best * config.short))

    run_softmax, softmax = by_kernel["softmax"]
    softmax = jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), softmax)
    return {
        "linear": (run_linear, linear_stacks),
        "softmax": (run_softmax, lambda count: softmax),
    }


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    normals, many = flows.draw(config), stacks(config, models)

    def measure(what, count, pairs):  # -> {name: [K, C, R, B, ...]}
        batch = flows.prompts_of(config, normals, count, pairs)
        parts = [flows.measure(what, run, params(count), batch) for run, params in many.values()]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)

    everything = [measure(flows.sizes, count, count // 2) for count in config.counts]
    everything = [values | _ratios(values.pop("logs")) for values in everything]
    lost = sum(int((~np.isfinite(values["spread"])).sum()) for values in everything)
    axes = ("kind", "correlation", "run")
    data = {}
    for name in ("top_share", "spread", "from_first", "from_last"):
        values = np.stack([_medians(values[name]) for values in everything])
        data[name] = (("count", *axes, "layer"), values)
    paired = everything[config.counts.index(config.count)]["size"]
    single = measure(flows.sizes, config.count, 1)["logs"][..., 0]
    for name, values in (("redundancy", paired), ("away", single)):  # each prompt less itself
        data[name] = ((*axes, "layer"), _medians(values - values[:, :1]))
    for name, values in measure(flows.joint_effects, config.count, config.count // 2).items():
        data[name] = (axes, _medians(values))
    errors = measure(flows.squares, config.n, 0)  # without duplicates, equal for all c
    risk = errors["error"][:, 0].mean(-1) / errors["label"][:, 0].mean(-1)
    data["risk"] = (("kind", "run"), risk)
    data["lost"] = ((), lost)
    return xr.Dataset(
        data,
        {
            "count": list(config.counts),
            "kind": list(KINDS),
            "correlation": list(config.correlations),
            "layer": np.arange(config.depth) + 1,
        },
    )


def _ratios(logs):  # [K, C, R, B, L, n] -> {name: [K, C, R, B, L]}
    rows = [[flows.turned_ratios(of_c) for of_c in of_kind] for of_kind in logs]
    return {name: np.array([[of_c[name] for of_c in row] for row in rows]) for name in rows[0][0]}


def _medians(values):  # [K, C, R, B, ...] -> [K, C, R, ...]
    """The median over the prompts that are finite; in single precision, for the file's size."""
    finite = np.where(np.isfinite(values), values, np.nan)
    return np.nanmedian(finite, axis=3).astype(np.float32)
