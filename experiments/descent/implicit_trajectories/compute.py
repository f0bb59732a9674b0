"""Trained linear and softmax layers, and their distances from the steps of known algorithms."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.descent.implicit_trajectories.algorithms import compare, tune
from experiments.descent.implicit_trajectories.config import ALGORITHMS, MODELS, Config
from experiments.models.model import forward
from experiments.models.regression import of_kernel
from experiments.models.tasks import distribution, draw
from experiments.models.training import train
from lsa_lab.analyses.implicit_gd import implied_weights
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import tokens
from lsa_lab.training import Files


def answers_of(spec, config, params, key):
    """Prompts of each run [R, P], and its ŷ_t [R, P, L+1] and ∂ŷ_t/∂x_query [R, P, L+1, d]."""
    model, task = forward(spec), distribution(spec.task, dtype=jnp.float32)

    def answer(prompt, params):
        predictions = layer_predictions(model(params, tokens(prompt)))
        return prompt, predictions, implied_weights(model, params, prompt)

    def run(row):
        batch = draw(row[1], task, config.fitting_prompts + config.test_prompts)
        return jax.vmap(answer, (0, None))(batch, row[0])

    return jax.jit(partial(jax.lax.map, run))((params, jax.random.split(key, config.runs)))


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    root = jax.random.key(config.seed)
    answers, status = [], []
    for i, name in enumerate(MODELS):
        key_training, key_test = jax.random.split(jax.random.fold_in(root, i))
        spec = of_kernel(name, config, seeds=config.runs, checkpoints=0)
        files = Files(checkpoints and checkpoints / f"{name}.ckpt", identity=repr(config))
        label = f"implicit_trajectories: {name}"
        run = train(spec, label, key=key_training, files=files, progress=progress)
        answers.append(answers_of(spec, config, run.params, key_test))
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
