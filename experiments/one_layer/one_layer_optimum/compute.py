"""Layers trained on three tasks, and how far they are from the best on fresh prompts; and layers
after a shift."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from experiments.one_layer.one_layer_optimum.config import TASKS, Config
from experiments.one_layer.one_layer_optimum.shift import train_and_shift
from lsa_lab.models import linear_attention, moments
from lsa_lab.prompts import second_moment
from lsa_lab.store import parts
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory import optimum
from lsa_lab.training import Files, Training, fit
from lsa_lab.training.status import refuse_divergence


def tasks(config):  # -> [3, d, d], [3]
    """Λ and σ² of each task; anisotropic is U diag(1, 1, 1/2, 1/4, 1, ...) Uᵀ, U fixed."""
    d = config.d
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((d, d)))[0]
    rotated = rotation * np.resize([1.0, 1.0, 0.5, 0.25, 1.0], d) @ rotation.T
    covariances = jnp.asarray(np.stack([np.eye(d), rotated, np.eye(d)]))
    return covariances, jnp.array([0.0, 0.0, config.noise_var])


def best_layer(task, n):  # -> [d, d], []
    """A* of the task (Λ, σ²), and its risk."""
    covariance, noise_var = task
    hypotheses = (covariance, jnp.eye(len(covariance)), n, noise_var)
    matrix = optimum.one_layer(*hypotheses)
    return matrix, optimum.one_layer_risk(matrix, *hypotheses)


def draw(key, task, n, size):
    """Prompts [size] of the task (Λ, σ²), in its precision."""
    covariance, noise_std = task[0], jnp.sqrt(task[1])
    linear = LinearTask(n, len(covariance), noise_std=noise_std, covariance=covariance)
    linear = linear.replace(dtype=covariance.dtype)
    return jax.vmap(partial(sample, task=linear))(jax.random.split(key, size))


def train(config, n, key_init, key_data, progress, checkpoint):
    """All runs [3 * R] at one length; a run trains one layer of each number of heads.

    These see the same batches. Adam treats each weight by itself, so that the sum of their losses
    trains them as if each were alone.
    """
    count, peak, steps = len(TASKS) * config.runs, config.learning_rate, config.steps
    schedule = optax.warmup_cosine_decay_schedule(0.0, peak, steps // 20, steps)

    def init(heads):
        keys = jax.random.split(jax.random.fold_in(key_init, heads), count)
        layer = partial(linear_attention.init, num_layers=1, num_heads=heads, d=config.d)
        return jax.vmap(partial(layer, scale=config.init_scale, dtype=jnp.float32))(keys)

    def loss(layers, batch, task):
        errors = [moments.predictions(params, batch) - batch.y_query for params in layers]
        return sum(jnp.mean(error**2) for error in errors)

    training = Training(
        loss=loss,
        sample=lambda key, task: draw(key, task, n, config.batch),
        optimizer=lambda task: optax.adam(schedule),
        steps=steps,
        label=f"one_layer_optimum: n = {n}",
    )
    return fit(
        training,
        tuple(init(heads) for heads in config.heads),
        jax.random.split(key_data, count),
        per_run=jax.tree.map(
            lambda leaf: jnp.repeat(leaf.astype(jnp.float32), config.runs, axis=0), tasks(config)
        ),
        files=Files(checkpoint, identity=repr(config)),
        progress=progress,
    )


@partial(jax.jit, static_argnames=("n", "size"))
def evaluate(layers, task, key, n, size):  # -> [3, heads, R]
    """Risk, its excess over that of A* on the same prompts as a share of it, and cosine with A*.

    The matrix of ŷ = bᵀ A x_query, b = Xᵀy/n, is A = -Σ_h v_h A_h.
    """
    prompts = draw(key, task, n, size)
    moment = jax.vmap(second_moment, out_axes=-1)(prompts)
    best, least = best_layer(task, n)
    optimal = jnp.einsum("fb,fg,bg->b", moment[:-1, -1], best, prompts.x_query)
    unavoidable = (optimal - prompts.y_query) ** 2

    def measure(params):
        predictions = moments.predictions_from_moments(params, moment, prompts.x_query.T)
        errors = (predictions - prompts.y_query) ** 2
        learned = -jnp.einsum("h,hij->ij", params.w_pv[0, :, -1, -1], params.w_kq[0, :, :-1, :-1])
        cosine = jnp.vdot(learned, best) / jnp.linalg.norm(learned) / jnp.linalg.norm(best)
        return jnp.stack([errors.mean(), (errors - unavoidable).mean() / least, cosine])

    return jnp.stack([jax.lax.map(measure, params).T for params in layers], axis=1)


def compute(config: Config, *, progress=None, checkpoints: Path | None = None):
    lengths, heads, runs = config.lengths, config.heads, config.runs
    keys = jax.random.split(jax.random.key(config.seed), 3)
    measured = np.empty((3, len(TASKS), len(lengths), len(heads), runs))
    status = []
    for i, n in enumerate(lengths):
        key_init, key_data, key_test = (jax.random.fold_in(key, n) for key in keys)
        checkpoint = checkpoints and checkpoints / f"n{n}.ckpt"
        run = train(config, n, key_init, key_data, progress, checkpoint)
        refuse_divergence(run.status, f"n = {n}", checkpoint)
        status.append(np.reshape([str(end) for end in run.status], (len(TASKS), runs)))
        for c, task in enumerate(zip(*tasks(config), strict=True)):
            rows = slice(c * runs, (c + 1) * runs)
            layers = jax.tree.map(lambda leaf, rows=rows: leaf[rows].astype(float), run.params)
            measured[:, c, i] = evaluate(layers, task, key_test, n, config.test_prompts)
    grid = np.unique(np.geomspace(min(lengths), max(lengths), 60).round())
    theory = jax.vmap(lambda task: jax.vmap(lambda n: best_layer(task, n)[1])(jnp.asarray(grid)))
    axes = ("task", "length", "heads", "run")
    optima = xr.Dataset(
        {
            "risk": (axes, measured[0]),
            "excess": (axes, measured[1]),
            "cosine": (axes, measured[2]),
            "status": (("length", "task", "run"), np.stack(status)),
            "theory": (("task", "n"), theory(tasks(config))),
        },
        {"task": list(TASKS), "length": list(lengths), "heads": list(heads), "n": grid},
    )
    return parts.join(optima, shift=train_and_shift(config.shift, progress, checkpoints))
