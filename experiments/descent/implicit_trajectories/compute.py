"""Trained linear and softmax layers, and their distances from the steps of known algorithms."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from experiments.descent.implicit_trajectories.config import ALGORITHMS, MODELS, Config
from experiments.models.model import forward, prepare_prompt
from experiments.models.tasks import distribution, draw
from lsa_lab import estimators
from lsa_lab.analyses import alignment
from lsa_lab.analyses.implicit_gd import implied_weights
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import tokens
from lsa_lab.training import Training, fit
from lsa_lab.training.status import refuse_divergence

PATHS = {  # (prompt, parameters) -> [L+1, d]; the names are those of ALGORITHMS
    "GD": estimators.gradient_descent,
    "GD++": alignment.descent_plus_plus,
    "preconditioned GD": alignment.preconditioned_descent,
    "Newton": lambda prompt, logs: alignment.newton(prompt, len(logs), jnp.exp(logs[0])),
    "ridge": lambda prompt, logs: jnp.pad(alignment.ridge_path(prompt, logs), ((1, 0), (0, 0))),
}


def tune(config, answers, key, progress):
    """The parameters with which each algorithm predicts most like each run.

    Only the last layer counts; but ridge, which has no steps, has a penalty for each layer.
    """
    depth, d = answers[2].shape[-2] - 1, answers[2].shape[-1]
    steps = jnp.linspace(0.3, 0.9, depth, dtype=jnp.float32)  # equal ones are a saddle
    start = {
        "GD": steps,
        "GD++": (steps, jnp.full_like(steps, 0.1)),
        "preconditioned GD": jnp.einsum("l,ij->lij", steps, jnp.eye(d, dtype=jnp.float32)),
        "Newton": jnp.zeros_like(steps),
        "ridge": -jnp.arange(depth, dtype=jnp.float32),
    }

    def batch_of(key, answers):
        chosen = jax.random.randint(key, (config.fitting_batch,), 0, config.fitting_prompts)
        return jax.tree.map(lambda rows: rows[chosen], answers[:2])

    def loss(parameters, batch, _):
        prompts, predictions = batch
        ridge = partial(PATHS["ridge"], logs=parameters["ridge"])
        by_layer = jax.vmap(lambda prompt: ridge(prompt) @ prompt.x_query)(prompts)  # [B, L+1]
        total = ((by_layer - predictions) ** 2).mean(0).sum()
        for name in [*PATHS][:-1]:
            total += alignment.mismatch(PATHS[name], parameters[name], prompts, predictions[:, -1])
        return total

    training = Training(
        loss=loss,
        sample=batch_of,
        optimizer=lambda _: optax.adam(optax.cosine_decay_schedule(0.05, config.fitting_steps)),
        steps=config.fitting_steps,
        label="implicit_trajectories: algorithms",
    )
    run = fit(
        training,
        jax.tree.map(lambda leaf: jnp.repeat(leaf[None], len(answers[1]), axis=0), start),
        jax.random.split(key, len(answers[1])),
        per_run=answers,
        progress=progress,
    )
    refuse_divergence(run.status, training.label, needs_all=True)
    return run.params


def compare(parameters, answers):
    """One run: Distances [A, L+1, L+1], mean |∂ŷ_t/∂x_query| [L+1], the excess risk of the run and
    that of the ridge regression fitted to it, each []."""

    def compare_prompt(prompt, predictions, weights):
        paths = jnp.stack([path(prompt, parameters[name]) for name, path in PATHS.items()])
        far = partial(alignment.distances, predictions, weights, x_query=prompt.x_query)
        error = (predictions[-1] - prompt.y_query) ** 2
        rival = (paths[-1, -1] @ prompt.x_query - prompt.y_query) ** 2  # ridge is the last
        apart = jax.vmap(lambda path: far(path=path))(paths)
        return apart, jnp.linalg.norm(weights, axis=1), error, rival

    return jax.tree.map(lambda values: values.mean(0), jax.vmap(compare_prompt)(*answers))


def answer_prompts(spec, config, params, key):
    """Prompts of each run [R, P] as its model reads them, in their own units where it does, and its
    ŷ_t [R, P, L+1] and ∂ŷ_t/∂x_query [R, P, L+1, d]."""
    model, task = forward(spec), distribution(spec.task, dtype=jnp.float32)

    def answer(prompt, params):
        own, _ = prepare_prompt(spec.architecture, prompt)
        predictions = layer_predictions(model(params, tokens(own)))
        return own, predictions, implied_weights(model, params, own)

    def run(row):
        batch = draw(row[1], task, config.fitting_prompts + config.test_prompts)
        return jax.vmap(answer, (0, None))(batch, row[0])

    runs = len(jax.tree.leaves(params)[0])
    return jax.jit(partial(jax.lax.map, run))((params, jax.random.split(key, runs)))


def compute(config: Config, models, *, progress=None, checkpoints=None):
    root = jax.random.key(config.seed)
    answers, taken = [], []
    for i, name in enumerate(MODELS.values()):
        runs = models[name]
        params = jax.tree.map(jnp.asarray, runs.models().params)
        answers.append(answer_prompts(runs.spec, config, params, jax.random.fold_in(root, i)))
        taken.append(runs.steps_completed[-1])
    answers = jax.tree.map(lambda *pair: jnp.concatenate(pair), *answers)
    fitting = jax.tree.map(lambda rows: rows[:, : config.fitting_prompts], answers)
    fresh = jax.tree.map(lambda rows: rows[:, config.fitting_prompts :], answers)
    parameters = tune(config, fitting, jax.random.fold_in(root, len(MODELS)), progress)
    by_run = jax.jit(partial(jax.lax.map, lambda row: compare(*row)))((parameters, fresh))
    measured = jax.tree.map(lambda x: x.reshape(len(MODELS), -1, *x.shape[1:]), by_run)
    apart, size, risk, ridge = measured
    axes, steps = ("model", "run", "algorithm", "layer", "step"), np.arange(size.shape[-1])
    data = {"sensitivity": (axes, apart.sensitivity), "risk": (axes[:2], risk)}
    data |= {"size": (("model", "run", "layer"), size)}
    data |= {"ridge": (axes[:2], ridge), "taken": (axes[:2], np.asarray(taken))}
    return xr.Dataset(
        data, {"model": list(MODELS), "algorithm": list(ALGORITHMS), "layer": steps, "step": steps}
    )
