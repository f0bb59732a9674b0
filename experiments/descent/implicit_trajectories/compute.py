"""Which algorithm do trained linear and softmax layers follow, layer by layer?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.descent.implicit_trajectories.config import Config
from experiments.models.stacks import MODELS, draw, forward, stack_of, task, train
from lsa_lab import estimators
from lsa_lab.analyses import alignment
from lsa_lab.analyses.implicit_gd import implied_weights
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import tokens
from lsa_lab.training import Training, fit

PATHS = {  # (prompt, settings) -> [L+1, d]
    "GD": estimators.gradient_descent,
    "GD++": alignment.descent_plus_plus,
    "preconditioned GD": alignment.preconditioned_descent,
    "Newton": lambda prompt, logs: alignment.newton(prompt, len(logs), jnp.exp(logs[0])),
    "ridge": lambda prompt, logs: jnp.pad(alignment.ridge_path(prompt, logs), ((1, 0), (0, 0))),
}


def ask(stack, config, params, key):
    """Prompts of each run [R, P], and its ŷ_t [R, P, L+1] and ∂ŷ_t/∂x_query [R, P, L+1, d]."""
    model = forward(stack)

    def one(prompt, params):
        predictions = layer_predictions(model(params, tokens(prompt)))
        return prompt, predictions, implied_weights(model, params, prompt)

    def run(row):
        batch = draw(row[1], task(stack), config.fitting_prompts + config.test_prompts)
        return jax.vmap(one, (0, None))(batch, row[0])

    return jax.jit(partial(jax.lax.map, run))((params, jax.random.split(key, config.runs)))


def tune(config, asked, key, progress):
    """The settings with which each algorithm predicts most like each run.

    The layers between are not looked at; but ridge, which has no steps, has a penalty for each.
    """
    steps = jnp.linspace(0.3, 0.9, config.depth, dtype=jnp.float32)  # equal ones are a saddle
    start = {
        "GD": steps,
        "GD++": (steps, jnp.full_like(steps, 0.1)),
        "preconditioned GD": jnp.einsum("l,ij->lij", steps, jnp.eye(config.d, dtype=jnp.float32)),
        "Newton": jnp.zeros_like(steps),
        "ridge": -jnp.arange(config.depth, dtype=jnp.float32),
    }

    def some(key, asked):
        chosen = jax.random.randint(key, (config.fitting_batch,), 0, config.fitting_prompts)
        return jax.tree.map(lambda rows: rows[chosen], asked[:2])

    def loss(settings, batch, _):
        prompts, answers = batch
        ridge = partial(PATHS["ridge"], logs=settings["ridge"])
        seen = jax.vmap(lambda prompt: ridge(prompt) @ prompt.x_query)(prompts)  # [B, L+1]
        total = ((seen - answers) ** 2).mean(0).sum()
        for name in [*PATHS][:-1]:
            total += alignment.mismatch(PATHS[name], settings[name], prompts, answers[:, -1])
        return total

    training = Training(
        loss=loss,
        sample=some,
        optimizer=lambda _: optax.adam(optax.cosine_decay_schedule(0.05, config.fitting_steps)),
        steps=config.fitting_steps,
        label="implicit_trajectories: algorithms",
    )
    return fit(
        training,
        jax.tree.map(lambda leaf: jnp.repeat(leaf[None], len(asked[1]), axis=0), start),
        jax.random.split(key, len(asked[1])),
        per_run=asked,
        progress=progress,
    ).params


def compare(settings, asked):
    """One run: Distances [A, L+1, L+1], mean |∂ŷ_t/∂x_query| [L+1] and the excess risk []."""

    def one(prompt, predictions, weights):
        known = jnp.stack([path(prompt, settings[name]) for name, path in PATHS.items()])
        far = partial(alignment.distances, predictions, weights, x_query=prompt.x_query)
        error = (predictions[-1] - prompt.y_query) ** 2
        return jax.vmap(lambda path: far(path=path))(known), jnp.linalg.norm(weights, axis=1), error

    return jax.tree.map(lambda values: values.mean(0), jax.vmap(one)(*asked))


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    root = jax.random.key(config.seed)
    asked, status, noise = [], [], jnp.zeros(config.runs, jnp.float32)
    for i, name in enumerate(MODELS):
        key_training, key_ask = jax.random.split(jax.random.fold_in(root, i))
        stack, label = stack_of(name, config), f"implicit_trajectories: {name}"
        kept = checkpoints and checkpoints / f"{name}.ckpt"
        run = train(stack, noise, key_training, label, progress, kept, repr(config))
        asked.append(ask(stack, config, run.params, key_ask))
        status.append([str(one) for one in run.status])
    asked = jax.tree.map(lambda *models: jnp.concatenate(models), *asked)
    known = jax.tree.map(lambda rows: rows[:, : config.fitting_prompts], asked)
    new = jax.tree.map(lambda rows: rows[:, config.fitting_prompts :], asked)
    settings = tune(config, known, jax.random.fold_in(root, len(MODELS)), progress)
    seen = jax.jit(lambda rows: jax.lax.map(lambda row: compare(*row), rows))((settings, new))
    apart, size, risk = jax.tree.map(lambda x: x.reshape(2, config.runs, *x.shape[1:]), seen)
    axes, steps = ("model", "run", "algorithm", "layer", "step"), np.arange(config.depth + 1)
    data = {name: (axes, getattr(apart, name)) for name in ("prediction", "sensitivity", "cosine")}
    data |= {"size": (("model", "run", "layer"), size), "risk": (axes[:2], risk)}
    return xr.Dataset(
        data | {"status": (axes[:2], np.asarray(status))},
        {"model": list(MODELS), "algorithm": list(PATHS), "layer": steps, "step": steps},
    )
