"""The flows of many demonstrations in descent and in stacks before and after training, and beside
those of the Bayes rule: a model that answers as it does has its flows in the end, whatever they
were before."""

import dataclasses
from functools import partial

import jax
import numpy as np
import xarray as xr

from experiments.flow import bayes, pairs
from experiments.flow.many_shot_flow import flows
from experiments.flow.many_shot_flow.config import KINDS, Config
from experiments.models import tasks
from experiments.models.model import forward
from experiments.models.specs import KERNELS
from lsa_lab.models import constructions
from lsa_lab.store import parts


def stacks(config: Config, models) -> dict:  # {model: (forward, count -> Params [V, R])}
    """Together they are KINDS: descent with the step that is best for one layer, or with a part of
    it, and stacks before and after training."""
    by_kernel = {}
    for kernel, runs in ((kernel, models[kernel]) for kernel in KERNELS):
        by_kernel[kernel] = (forward(runs.spec), pairs.cast_float64(runs.path))  # [R, V, ...]
    run_linear, linear = by_kernel["linear"]
    gains = np.array([config.gain, 1])  # before and after training
    descent = jax.jit(partial(constructions.gradient_descent, d=config.d))

    def linear_stacks(count):
        best = np.full(config.depth, 1 / (1 + (1 + config.d) / count))

        # [R, V, L, ...] and [L, ...] of the others -> [V, R, L, ...]
        def join_kinds(leaf, *others):
            others = [np.broadcast_to(other, leaf[:, 0].shape) for other in others]
            return np.stack([*others, *(leaf * gains[:, None, None, None, None]).swapaxes(0, 1)])

        return jax.tree.map(join_kinds, linear, descent(best), descent(best * config.short))

    run_softmax, softmax = by_kernel["softmax"]
    softmax = jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), softmax)
    return {"linear": (run_linear, linear_stacks), "softmax": (run_softmax, lambda count: softmax)}


def compute(config: Config, models, *, progress=None, checkpoints=None):
    normals, many = flows.draw(config), stacks(config, models)

    def measure(what, count, pairs):  # -> {name: [K, C, R, B, ...]}
        batch = flows.prompts_of(config, normals, count, pairs)
        parts = [flows.measure(what, run, params(count), batch) for run, params in many.values()]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)

    logs = measure(flows.sizes, config.most, config.most // 2)["logs"]
    spread = np.array([[flows.spread(of_c) for of_c in of_kind] for of_kind in logs])
    axes = ("kind", "correlation", "run")
    data = {"spread": ((*axes, "layer"), _medians(spread))}
    paired = measure(flows.sizes, config.count, config.count // 2)["size"]
    single = measure(flows.sizes, config.count, 1)["logs"][..., 0]
    for name, values in (("redundancy", paired), ("away", single)):  # each prompt less itself
        data[name] = ((*axes, "layer"), _medians(values - values[:, :1]))
    errors = measure(flows.squares, config.n, 0)  # without duplicates, equal for all c
    risk = errors["error"][:, 0].mean(-1) / errors["label"][:, 0].mean(-1)
    data["risk"] = (("kind", "run"), risk)
    data["lost"] = ((), int((~np.isfinite(spread)).sum()))
    main = xr.Dataset(
        data,
        {
            "kind": list(KINDS),
            "correlation": list(config.correlations),
            "layer": np.arange(config.depth) + 1,
        },
    )
    return parts.join(main, null=compare_with_bayes(config, models, many))


def compare_with_bayes(config: Config, models, many):  # -> Dataset
    """``compare`` of models near ridge regression, "trained"; and of the stacks, "own"."""
    null, (_, spec) = config.null, config.null.trained[0]
    runs = min(each.training.seeds for _, each in null.trained)
    law = tasks.distribution(spec.task, dtype=float)
    keys = jax.random.split(jax.random.key(null.seed), runs)
    batch = jax.jit(jax.vmap(partial(tasks.draw, task=law, size=null.prompts)))(keys)
    rows = {}
    for name, each in null.trained:
        params = models[f"null: {name}"].models(seeds=slice(runs)).params
        params = pairs.cast_float64(params)
        run, noise_var = pairs.plain_forward(each), spec.task.noise_std**2
        for alone in (True, False) if each.architecture.kernel == "linear" else (False,):
            compared = bayes.compare(*bayes.log_flows(run, noise_var, alone, params, batch))
            rows[f"{name}, alone" if alone else name] = compared
    fresh = dataclasses.replace(config, prompts=null.own_prompts, seed=null.seed)
    prompts = flows.prompts_of(fresh, flows.draw(fresh), config.most, 0)
    prompts = jax.tree.map(lambda leaf: leaf[0], prompts)  # without duplicates, equal for all c
    own = []
    for run, params in ((run, of_count(config.most)) for run, of_count in many.values()):
        for v in range(len(jax.tree.leaves(params)[0])):
            kind = jax.tree.map(lambda leaf, v=v: leaf[v], params)
            own.append(bayes.compare(*bayes.log_flows(run, null.penalty, False, kind, prompts)))
    data = {}
    for stage, of_kind in (("trained", [*rows.values()]), ("own", own)):
        for name in of_kind[0]:
            axis = "layer" if name == "agreement" else "place"
            values = np.stack([each[name] for each in of_kind]).astype(np.float32)
            data[f"{stage}_{name}"] = ((stage, f"{stage}_run", f"{stage}_{axis}"), values)
    return xr.Dataset(data, {"trained": list(rows), "own": list(KINDS)})


def _medians(values):  # [K, C, R, B, ...] -> [K, C, R, ...]
    """The median over the prompts that are finite; in single precision, for the file's size."""
    finite = np.where(np.isfinite(values), values, np.nan)
    return np.nanmedian(finite, axis=3).astype(np.float32)
