"""The flows of stacks along their training beside those of the Bayes rule, layer by layer, and how
far the answers of both and their flows are apart."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow import bayes, pairs
from experiments.flow.bayes_flows import limits
from experiments.flow.bayes_flows.config import PRIORS, Config, name, sparsity_of
from experiments.models import tasks
from experiments.models.specs import KERNELS
from lsa_lab.analyses.amplification import demonstration_flow, log_sizes
from lsa_lab.models.trace import predict
from lsa_lab.prompts import tokens
from lsa_lab.store import parts

GAPS = ("answers", "flows", "bayes answers", "bayes flows", "error")


def beside(forward, noise_var, sparsity, params, prompt):  # -> [L, n], [n], [5]
    """log |flow| of the stack and of the Bayes rule; and, with δ their difference, the squares of
    δ, of its flow to the labels in the metric of their covariance C = XXᵀ + σ²I, ∇δᵀ C ∇δ, the
    same two of the Bayes rule, and the Bayes rule's error.
    """
    flow = demonstration_flow(forward, params, prompt)
    best, best_flow = bayes.answer_and_flow(prompt, noise_var, sparsity)

    def square(to_labels):
        return noise_var * to_labels @ to_labels + jnp.sum((prompt.x.T @ to_labels) ** 2)

    apart = predict(forward(params, tokens(prompt))) - best
    of_flows = square(flow[-1, :, -1] - best_flow[:, -1]), square(best_flow[:, -1])
    gaps = apart**2, of_flows[0], best**2, of_flows[1], (best - prompt.y_query) ** 2
    return log_sizes(flow), log_sizes(best_flow[None])[0], jnp.stack(gaps)


@partial(jax.jit, static_argnums=(0, 1, 2))
def measure(forward, noise_var, sparsity, path, batch):  # Params [R, P], Prompt [R, B]
    """``beside`` [R, P, B, ...] of every run's stack at each place of its path."""
    of_prompts = jax.vmap(partial(beside, forward, noise_var, sparsity), (None, 0))

    def of_run(run):
        return jax.lax.map(lambda params: of_prompts(params, run[1]), run[0])

    return jax.lax.map(of_run, (path, batch))


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    data, gaps, steps = {}, [], []
    for kernel in KERNELS:
        for i, prior in enumerate(PRIORS):
            for depth in config.depths:
                runs = models[name(kernel, prior, depth)]
                law = tasks.distribution(runs.spec.task, dtype=float)
                keys = jax.random.split(jax.random.key(config.seed + 1000 + i), config.runs)
                batch = jax.vmap(partial(tasks.draw, task=law, size=config.prompts))(keys)
                path = pairs.cast_float64(runs.path)
                noise_var, sparsity = config.noise_std**2, sparsity_of(config, prior)
                forward = pairs.plain_forward(runs.spec)
                ours, best, squares = measure(forward, noise_var, sparsity, path, batch)
                places = range(ours.shape[1])
                each = [bayes.compare(ours[:, place], best[:, place]) for place in places]
                for what in ("disparity", "agreement"):
                    values = np.stack([row[what] for row in each], axis=1)  # [R, P, L or L + 1]
                    axis = f"layer_{depth}" if what == "agreement" else f"place_{depth}"
                    key = f"{what}, {name(kernel, prior, depth)}"
                    data[key] = (("run", "step", axis), values.astype(np.float32))
                gaps.append(np.asarray(squares).mean(2))
            steps.append(runs.path_steps)
    grid = (len(KERNELS), len(PRIORS), len(config.depths))
    values = np.reshape(gaps, (*grid, *gaps[0].shape))
    data["gap"] = (("kernel", "prior", "depth", "run", "step", "square"), values)
    data["steps"] = (("kernel", "step"), np.array(steps[:: len(PRIORS)]))
    coordinates = {"kernel": list(KERNELS), "prior": list(PRIORS), "depth": list(config.depths)}
    whole = xr.Dataset(data, coordinates | {"square": list(GAPS)})
    return parts.join(whole, limits=limits.measure(config.limits))
