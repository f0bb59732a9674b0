"""L layers trained on two covariances beside L tuned steps of known algorithms."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from experiments.descent.depth.config import ALGORITHMS, COVARIANCES, Config
from experiments.descent.depth.settled import left_to_gain
from experiments.descent.depth.tuned import (
    algorithm_errors,
    covariance,
    draw,
    errors,
    errors_of_each,
    tune,
)
from lsa_lab.models import linear_attention
from lsa_lab.training import Files, Training, fit
from lsa_lab.training.status import refuse_divergence


def train(config, depth, sigmas, key, progress, checkpoints):
    """All runs of one depth on both covariances: Run with leading axis [C * R]."""
    key_init, key_data = jax.random.split(jax.random.fold_in(key, depth))
    count = len(COVARIANCES) * config.runs
    init = partial(linear_attention.init, num_layers=depth, num_heads=1, d=config.d)
    init = partial(init, scale=config.init_scale, dtype=jnp.float32)
    steps = config.steps_per_layer * depth
    peak = config.learning_rate / depth
    schedule = optax.warmup_cosine_decay_schedule(0.0, peak, steps // 20, steps, peak / 100)
    # Deep linear attention meets rare prompts with enormous gradients: clip early, forget soon.
    optimizer = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(schedule, b2=0.99))
    training = Training(
        loss=lambda params, batch, sigma: errors(params, batch).mean(),
        sample=lambda key, sigma: draw(key, sigma, config.n, config.batch),
        optimizer=lambda sigma: optimizer,
        steps=steps,
        label=f"depth: {depth} layers",
    )
    checkpoint = checkpoints and checkpoints / f"depth{depth}.ckpt"
    return fit(
        training,
        jax.vmap(init)(jax.random.split(key_init, count)),
        jax.random.split(key_data, count),
        per_run=jnp.repeat(sigmas.astype(jnp.float32), config.runs, axis=0),
        files=Files(checkpoint, identity=repr(config)),
        progress=progress,
    )


def compute(config: Config, *, progress=None, checkpoints: Path | None = None):
    depths, runs = config.max_depth, config.runs
    root = jax.random.key(config.seed)
    key_tuning, key_test, key_training = (jax.random.fold_in(root, tag) for tag in range(3))
    sigmas = jnp.stack([jnp.asarray(covariance(name, config.d)) for name in COVARIANCES])
    tests = [draw(key_test, sigma, config.n, config.test_prompts) for sigma in sigmas]
    squared = np.empty((len(ALGORITHMS), 2, depths, config.test_prompts))
    trained, left = np.empty((2, 2, depths, runs))
    status = []
    for depth in range(1, depths + 1):
        tuned = tune(config, depth, sigmas, key_tuning)
        run = train(config, depth, sigmas, key_training, progress, checkpoints)
        refuse_divergence(run.status, f"{depth} layers")
        params = jax.tree.map(lambda leaf: leaf.astype(sigmas.dtype), run.params)
        for c, test in enumerate(tests):
            squared[:, c, depth - 1] = algorithm_errors(tuned, c, test)
            ours = jax.tree.map(lambda leaf, c=c: leaf[c * runs : (c + 1) * runs], params)
            trained[c, depth - 1] = errors_of_each(ours, test).mean(1)
            left[c, depth - 1] = left_to_gain(ours, test)
        status.append(np.reshape([str(end) for end in run.status], (2, runs)))
    axes = ("covariance", "depth")
    return xr.Dataset(
        {
            "trained_risk": ((*axes, "run"), trained),
            "left_to_gain": ((*axes, "run"), left),
            "algorithm_risk": (("algorithm", *axes), squared.mean(-1)),
            "status": ((*axes, "run"), np.stack(status, axis=1)),
        },
        {
            "covariance": list(COVARIANCES),
            "depth": np.arange(1, depths + 1),
            "algorithm": list(ALGORITHMS),
        },
    )
