"""Errors of trained models by shots and by checkpoints, and those of least squares and Bayes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.descent.shots_and_steps.config import MODELS, Config
from experiments.models.model import Model
from experiments.models.regression import kernel_spec
from experiments.models.tasks import distribution, draw
from experiments.models.train import train
from lsa_lab import estimators
from lsa_lab.models import moments
from lsa_lab.training import Files


def errors_of_rules(config, prompts, noise):  # -> [2, 2R, shots]
    """Mean squared error of least squares and of the Bayes rule, which without noise are one.

    An empty demonstration is none, to either: all numbers of shots are one computation.
    """
    kept = jnp.arange(max(config.shots))[None] < jnp.asarray(config.shots)[:, None]

    def both_errors(prompt, noise_std, kept):
        prompt = prompt.replace(
            x=jnp.where(kept[:, None], prompt.x, 0), y=jnp.where(kept, prompt.y, 0)
        )
        ols = estimators.ols(prompt)
        bayes = estimators.gaussian_posterior_mean(prompt, 1.0, noise_std**2)
        both = jnp.stack([ols, jnp.where(noise_std > 0, bayes, ols)])
        return (both @ prompt.x_query - prompt.y_query) ** 2

    by_shots = jax.vmap(jax.vmap(both_errors, (None, None, 0)), (0, None, None))
    by_run = jax.lax.map(lambda row: by_shots(*row, kept).mean(0), (prompts, noise))
    return jnp.moveaxis(by_run, 2, 0)


def risks(spec, row):  # -> [C]
    """The excess risk on one batch of every params [C, ...]."""
    path, batch = row
    return jax.lax.map(lambda params: Model(spec, params).errors(batch).mean(), path)


def _cast_float64(tree):
    """Twenty-seventh powers at few shots outgrow float32, in which the training runs."""
    return jax.tree.map(lambda leaf: leaf.astype(float), tree)


def first_tenth(config) -> int:
    """The checkpoint after a tenth of the training."""
    return -(-config.looks // 10)


def curves(spec, path, prompts, config):  # -> [2, R, shots], [2, R, shots], [2, R, C]
    """Excess risks after training and after a tenth of it at all numbers of shots, and at every
    checkpoint at that of training."""
    evaluate = moments.compiled(partial(jax.lax.map, partial(risks, spec)))
    tenth = first_tenth(config)
    ends = jax.tree.map(lambda leaf: jnp.stack([leaf[:, tenth], leaf[:, -1]], axis=1), path)
    by_shots = {}
    for n in config.shots:
        fewer = prompts.replace(x=prompts.x[:, :, :n], y=prompts.y[:, :, :n])
        measured = evaluate((path if n == config.n else ends, fewer))
        by_shots[n] = np.asarray(measured).reshape(2, config.runs, -1)
    last = np.stack([risk[..., -1] for risk in by_shots.values()], axis=-1)
    early = [risk[..., tenth if n == config.n else 0] for n, risk in by_shots.items()]
    return last, np.stack(early, axis=-1), by_shots[config.n]


def compute(config: Config, *, progress=None, checkpoints=None):
    root = jax.random.key(config.seed)
    levels = np.array([0.0, config.noise_std])
    noise = jnp.repeat(jnp.asarray(levels, jnp.float32), config.runs)
    keys = jnp.tile(jax.random.split(jax.random.fold_in(root, 0), config.runs), 2)
    training = dict(seeds=len(noise), checkpoints=config.looks)
    specs = {name: kernel_spec(name, config, **training) for name in MODELS}

    def longest(key, noise_std):
        most = dict(n=max(config.shots), noise_std=noise_std, dtype=jnp.float32)
        return draw(key, distribution(specs["linear"].task, **most), config.test_prompts)

    prompts = _cast_float64(jax.jit(jax.vmap(longest))(keys, noise))
    errors, early, learning, status = [], [], [], []
    for tag, (name, spec) in enumerate(specs.items(), start=1):
        files = Files(checkpoints and checkpoints / f"{name}.ckpt", identity=repr(config))
        own = dict(key=jax.random.fold_in(root, tag), noise_std=noise)
        run = train(spec, f"shots_and_steps: {name}", **own, files=files, progress=progress)
        path = _cast_float64(run.history["watch"])
        by_shots, after_a_tenth, by_checkpoint = curves(spec, path, prompts, config)
        errors.append(by_shots)
        early.append(after_a_tenth)
        learning.append(by_checkpoint)
        status.append(np.reshape([str(end) for end in run.status], (2, config.runs)))
    rules = np.asarray(jax.jit(partial(errors_of_rules, config))(prompts, noise))
    axes = ("model", "noise", "run")
    share = np.arange(config.looks + 1) / config.looks
    steps = np.stack([spec.training.steps * share for spec in specs.values()])
    return xr.Dataset(
        {
            "error": ((*axes, "shots"), np.stack(errors)),
            "early": ((*axes, "shots"), np.stack(early)),
            "learning": ((*axes, "look"), np.stack(learning)),
            "steps": (("model", "look"), steps),
            "known": (("rule", *axes[1:], "shots"), rules.reshape(2, 2, config.runs, -1)),
            "status": (axes, np.stack(status)),
        },
        {
            "model": list(MODELS),
            "noise": levels,
            "shots": list(config.shots),
            "rule": ["least squares", "Bayes rule"],
        },
    )
