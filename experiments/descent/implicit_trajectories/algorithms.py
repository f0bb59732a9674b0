"""Five known algorithms, fitted to the answers of trained models, and their distance from these."""

from functools import partial

import jax
import jax.numpy as jnp
import optax

from lsa_lab import estimators
from lsa_lab.analyses import alignment
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

    def on_one(prompt, predictions, weights):
        paths = jnp.stack([path(prompt, parameters[name]) for name, path in PATHS.items()])
        far = partial(alignment.distances, predictions, weights, x_query=prompt.x_query)
        error = (predictions[-1] - prompt.y_query) ** 2
        rival = (paths[-1, -1] @ prompt.x_query - prompt.y_query) ** 2  # ridge is the last
        apart = jax.vmap(lambda path: far(path=path))(paths)
        return apart, jnp.linalg.norm(weights, axis=1), error, rival

    return jax.tree.map(lambda values: values.mean(0), jax.vmap(on_one)(*answers))
