"""Trained linear and softmax layers, and their distances from the steps of known algorithms."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.descent.implicit_trajectories.algorithms import compare, tune
from experiments.descent.implicit_trajectories.config import ALGORITHMS, MODELS, Config
from experiments.models.stacks import draw, forward, stack_of, task, train
from lsa_lab.analyses.implicit_gd import implied_weights
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import tokens


def answers_of(stack, config, params, key):
    """Prompts of each run [R, P], and its ŷ_t [R, P, L+1] and ∂ŷ_t/∂x_query [R, P, L+1, d]."""
    model = forward(stack)

    def answer(prompt, params):
        predictions = layer_predictions(model(params, tokens(prompt)))
        return prompt, predictions, implied_weights(model, params, prompt)

    def run(row):
        batch = draw(row[1], task(stack), config.fitting_prompts + config.test_prompts)
        return jax.vmap(answer, (0, None))(batch, row[0])

    return jax.jit(partial(jax.lax.map, run))((params, jax.random.split(key, config.runs)))


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    root = jax.random.key(config.seed)
    answers, status, noise = [], [], jnp.zeros(config.runs, jnp.float32)
    for i, name in enumerate(MODELS):
        key_training, key_test = jax.random.split(jax.random.fold_in(root, i))
        stack, label = stack_of(name, config), f"implicit_trajectories: {name}"
        kept = checkpoints and checkpoints / f"{name}.ckpt"
        run = train(stack, noise, key_training, label, progress, kept, repr(config))
        answers.append(answers_of(stack, config, run.params, key_test))
        status.append([str(end) for end in run.status])
    answers = jax.tree.map(lambda *models: jnp.concatenate(models), *answers)
    fitting = jax.tree.map(lambda rows: rows[:, : config.fitting_prompts], answers)
    fresh = jax.tree.map(lambda rows: rows[:, config.fitting_prompts :], answers)
    parameters = tune(config, fitting, jax.random.fold_in(root, len(MODELS)), progress)
    by_run = jax.jit(partial(jax.lax.map, lambda row: compare(*row)))((parameters, fresh))
    apart, size, risk = jax.tree.map(lambda x: x.reshape(2, config.runs, *x.shape[1:]), by_run)
    axes, steps = ("model", "run", "algorithm", "layer", "step"), np.arange(config.depth + 1)
    data = {name: (axes, getattr(apart, name)) for name in ("prediction", "sensitivity", "cosine")}
    data |= {"size": (("model", "run", "layer"), size), "risk": (axes[:2], risk)}
    return xr.Dataset(
        data | {"status": (axes[:2], np.asarray(status))},
        {"model": list(MODELS), "algorithm": list(ALGORITHMS), "layer": steps, "step": steps},
    )
