"""The flows of many demonstrations in descent and in stacks before and after training, and beside
those of the Bayes rule: a model that answers as it does has its flows in the end, whatever they
were before."""

import dataclasses
from functools import partial

import jax
import numpy as np
import xarray as xr

from experiments.flow import pairs
from experiments.flow.many_shot_flow import flows
from experiments.flow.many_shot_flow.config import KINDS, Config
from experiments.models import tasks
from experiments.models.model import forward
from experiments.models.specs import KERNELS
from lsa_lab import prompts
from lsa_lab.analyses.amplification import demonstration_flow, log_sizes
from lsa_lab.estimators import gaussian_posterior_mean
from lsa_lab.models import constructions
from lsa_lab.store import parts


def bayes_sizes(prompt, noise_var):  # -> [n]
    """log |∂ŷ/∂e_i| of the posterior mean for w ~ N(0, I)."""

    def answer(tokens):
        own = prompt.replace(x=tokens[:, :-1], y=tokens[:, -1])
        return gaussian_posterior_mean(own, 1.0, noise_var) @ prompt.x_query

    return log_sizes(jax.grad(answer)(prompts.tokens(prompt)[:-1])[None])[0]


@partial(jax.jit, static_argnums=(0, 1, 2))
def log_flows(forward, noise_var, alone, params, batch):  # Params [R], Prompt [R, B]
    """log |flow| [R, B, L, n] of every run's model, and [R, B, n] of the Bayes rule; ``alone``: of
    the first two demonstrations, each in a prompt of its own."""

    def both(params, prompt):
        ours = log_sizes(demonstration_flow(forward, params, prompt))
        return ours, bayes_sizes(prompt, noise_var)

    def apart(params, prompt):
        single = [prompt.replace(x=prompt.x[i : i + 1], y=prompt.y[i : i + 1]) for i in range(2)]
        rows = [both(params, each) for each in single]
        return jax.tree.map(lambda *leaves: jax.numpy.concatenate(leaves, axis=-1), *rows)

    of_prompt = jax.vmap(apart if alone else both, (None, 0))
    return jax.lax.map(lambda run: of_prompt(*run), (params, batch))


def compare(ours, bayes):  # [R, B, L, n], [R, B, n] -> {name: [R, L + 1] or [R, L]}
    """Medians over prompts and pairs, the Bayes rule's last: of |log ratio|, and of the log ratio
    with the flow on top that is larger at the first layer; and the mean over prompts of Pearson's
    correlation of a layer's log flows with the Bayes rule's."""
    i, j = np.triu_indices(ours.shape[-1], 1)
    ours, bayes = np.asarray(ours), np.asarray(bayes)
    logs = np.concatenate([ours, bayes[:, :, None]], axis=2)  # [R, B, L + 1, n]
    ratios = logs[..., i] - logs[..., j]
    apart = logs - logs.mean(-1, keepdims=True)
    apart = apart / np.linalg.norm(apart, axis=-1, keepdims=True)
    return {
        "disparity": np.median(np.abs(ratios), axis=(1, 3)),
        "lead": np.median(ratios * np.sign(ratios[:, :, :1]), axis=(1, 3)),
        "agreement": (apart[:, :, :-1] * apart[:, :, -1:]).sum(-1).mean(1),
    }


def stacks(config: Config, models) -> dict:  # {model: (forward, count -> Params [V, R])}
    """Together they are KINDS: descent with the step that is best for one layer, or with a part of
    it, and stacks before and after training."""
    by_kernel = {}
    for kernel, runs in ((kernel, models[kernel]) for kernel in KERNELS):
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
        params = jax.tree.map(lambda leaf: np.asarray(leaf, float), params)
        run, noise_var = pairs.plain_forward(each), spec.task.noise_std**2
        for alone in (True, False) if each.architecture.kernel == "linear" else (False,):
            compared = compare(*log_flows(run, noise_var, alone, params, batch))
            rows[f"{name}, alone" if alone else name] = compared
    fresh = dataclasses.replace(config, prompts=null.own_prompts, seed=null.seed)
    prompts = flows.prompts_of(fresh, flows.draw(fresh), config.most, 0)
    prompts = jax.tree.map(lambda leaf: leaf[0], prompts)  # without duplicates, equal for all c
    own = []
    for run, params in ((run, of_count(config.most)) for run, of_count in many.values()):
        for v in range(len(jax.tree.leaves(params)[0])):
            kind = jax.tree.map(lambda leaf, v=v: leaf[v], params)
            own.append(compare(*log_flows(run, null.penalty, False, kind, prompts)))
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
