"""How does the error of trained transformers fall with shots and with training steps?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.descent.shots_and_steps.config import Config
from experiments.models.stacks import MODELS, draw, predictions, stack_of, task, train
from lsa_lab import estimators


def known_errors(config, prompts, noise):  # -> [2, 2R, shots]
    """Mean squared error of least squares and of the Bayes rule, which without noise are one.

    An empty demonstration is none, to either: all numbers of shots are one computation.
    """
    kept = jnp.arange(max(config.shots))[None] < jnp.asarray(config.shots)[:, None]

    def one(prompt, noise_std, kept):
        prompt = prompt.replace(
            x=jnp.where(kept[:, None], prompt.x, 0), y=jnp.where(kept, prompt.y, 0)
        )
        ols = estimators.ols(prompt)
        bayes = estimators.gaussian_posterior_mean(prompt, 1.0, noise_std**2)
        both = jnp.stack([ols, jnp.where(noise_std > 0, bayes, ols)])
        return (both @ prompt.x_query - prompt.y_query) ** 2

    one = jax.vmap(jax.vmap(one, (None, None, 0)), (0, None, None))
    by_run = jax.lax.map(lambda row: one(*row, kept).mean(0), (prompts, noise))
    return jnp.moveaxis(by_run, 2, 0)


def risks(predicted, row):  # -> [C]
    """The excess risk on one batch of every params [C, ...]."""
    watched, batch = row
    return jax.lax.map(lambda one: ((predicted(one, batch) - batch.y_query) ** 2).mean(), watched)


def _in_float64(tree):
    """Twenty-seventh powers at few shots outgrow float32, in which the training runs."""
    return jax.tree.map(lambda leaf: leaf.astype(float), tree)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    root = jax.random.key(config.seed)
    levels = np.array([0.0, config.noise_std])
    noise = jnp.repeat(jnp.asarray(levels, jnp.float32), config.runs)
    keys = jnp.tile(jax.random.split(jax.random.fold_in(root, 0), config.runs), 2)
    stacks = {name: stack_of(name, config) for name in MODELS}

    def some(key, noise_std):
        law = task(stacks["linear"], max(config.shots), noise_std)
        return draw(key, law, config.test_prompts)

    prompts = _in_float64(jax.jit(jax.vmap(some))(keys, noise))
    errors, learning, status = [], [], []
    for tag, (name, stack) in enumerate(stacks.items(), start=1):
        looking = {"chunk": stack.steps // config.looks, "watch": lambda p: p}
        key, label = jax.random.fold_in(root, tag), f"shots_and_steps: {name}"
        kept = checkpoints and checkpoints / f"{name}.ckpt"
        run = train(stack, noise, key, label, progress, kept, repr(config), **looking)
        watched, by_shots = _in_float64(run.history["watch"]), {}
        evaluate = jax.jit(partial(jax.lax.map, partial(risks, predictions(stack))))
        for n in config.shots:
            kept = watched if n == config.n else jax.tree.map(lambda leaf: leaf[:, -1:], watched)
            fewer = prompts.replace(x=prompts.x[:, :, :n], y=prompts.y[:, :, :n])
            by_shots[n] = np.asarray(evaluate((kept, fewer))).reshape(2, config.runs, -1)
        errors.append(np.stack([risk[..., -1] for risk in by_shots.values()], axis=-1))
        learning.append(by_shots[config.n])
        status.append(np.reshape([str(one) for one in run.status], (2, config.runs)))
    known = np.asarray(jax.jit(partial(known_errors, config))(prompts, noise))
    axes = ("model", "noise", "run")
    share = np.arange(config.looks + 1) / config.looks
    steps = np.stack([stack.steps * share for stack in stacks.values()])
    return xr.Dataset(
        {
            "error": ((*axes, "shots"), np.stack(errors)),
            "learning": ((*axes, "look"), np.stack(learning)),
            "steps": (("model", "look"), steps),
            "known": (("rule", *axes[1:], "shots"), known.reshape(2, 2, config.runs, -1)),
            "status": (axes, np.stack(status)),
        },
        {
            "model": list(MODELS),
            "noise": levels,
            "shots": list(config.shots),
            "rule": ["least squares", "Bayes rule"],
        },
    )
