"""Trained linear and softmax layers, and their distances from the steps of known algorithms."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.descent.implicit_trajectories.algorithms import compare, tune
from experiments.descent.implicit_trajectories.config import ALGORITHMS, MODELS, Config
from experiments.models.model import as_read, forward
from experiments.models.tasks import distribution, draw
from lsa_lab.analyses.implicit_gd import implied_weights
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import tokens


def answer_prompts(spec, config, params, key):
    """Prompts of each run [R, P] as its model reads them, in their own units where it does, and its
    ŷ_t [R, P, L+1] and ∂ŷ_t/∂x_query [R, P, L+1, d]."""
    model, task = forward(spec), distribution(spec.task, dtype=jnp.float32)

    def answer(prompt, params):
        own, _ = as_read(spec.architecture, prompt)
        predictions = layer_predictions(model(params, tokens(own)))
        return own, predictions, implied_weights(model, params, own)

    def run(row):
        batch = draw(row[1], task, config.fitting_prompts + config.test_prompts)
        return jax.vmap(answer, (0, None))(batch, row[0])

    runs = len(jax.tree.leaves(params)[0])
    return jax.jit(partial(jax.lax.map, run))((params, jax.random.split(key, runs)))


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    root = jax.random.key(config.seed)
    answers, taken = [], []
    for i, name in enumerate(MODELS.values()):
        runs = models[name]
        params = jax.tree.map(jnp.asarray, runs.models().params)
        answers.append(answer_prompts(runs.spec, config, params, jax.random.fold_in(root, i)))
        taken.append(runs.taken[-1])
    answers = jax.tree.map(lambda *pair: jnp.concatenate(pair), *answers)
    fitting = jax.tree.map(lambda rows: rows[:, : config.fitting_prompts], answers)
    fresh = jax.tree.map(lambda rows: rows[:, config.fitting_prompts :], answers)
    parameters = tune(config, fitting, jax.random.fold_in(root, len(MODELS)), progress)
    by_run = jax.jit(partial(jax.lax.map, lambda row: compare(*row)))((parameters, fresh))
    measured = jax.tree.map(lambda x: x.reshape(len(MODELS), -1, *x.shape[1:]), by_run)
    apart, size, risk, ridge = measured
    axes, steps = ("model", "run", "algorithm", "layer", "step"), np.arange(size.shape[-1])
    data = {name: (axes, getattr(apart, name)) for name in ("prediction", "sensitivity", "cosine")}
    data |= {"size": (("model", "run", "layer"), size), "risk": (axes[:2], risk)}
    data |= {"ridge": (axes[:2], ridge), "taken": (axes[:2], np.asarray(taken))}
    return xr.Dataset(
        data, {"model": list(MODELS), "algorithm": list(ALGORITHMS), "layer": steps, "step": steps}
    )
