"""Linear stacks that the scripts of this theme train, on moments of fresh prompts."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.training import build_adam, fit_runs
from lsa_lab.models import linear_attention
from lsa_lab.models.moments import predictions_from_moments


def repeat(params, times):  # leaves [..., L, H, e, e] -> [..., times L, H, e, e]
    return jax.tree.map(lambda leaf: jnp.concatenate([leaf] * times, axis=-4), params)


def train(label, key, sample, per_run, config, *, d, layers, loops=1):  # -> Params [R, ...], [R]
    """Return stacks of ``layers`` trained to run ``loops`` times, L in all; and which diverged.

    ``sample(key, leaves)`` draws moments, queries and targets for a run with leaves of ``per_run``.
    """
    depth = layers * loops
    rate, steps = config.learning_rate / depth, config.steps_per_layer * depth
    # Rare prompts have enormous gradients in deep stacks: clip them, and forget them soon.
    optimizer = build_adam(rate, steps, end=rate / 100, clip=0.1)

    def loss(params, batch, _):
        moments, x_queries, targets = batch
        errors = predictions_from_moments(repeat(params, loops), moments, x_queries) - targets
        return jnp.mean(errors**2)

    key_init, key_data = jax.random.split(key)
    count = len(jax.tree.leaves(per_run)[0])
    init = partial(linear_attention.init, num_layers=layers, num_heads=1, d=d, scale=0.1)
    start = jax.vmap(partial(init, dtype=jnp.float32))(jax.random.split(key_init, count))
    keys = jax.random.split(key_data, count)
    run = fit_runs(label, loss, sample, optimizer, steps, start, keys, per_run)
    params = jax.tree.map(lambda leaf: np.asarray(leaf, float), repeat(run.params, loops))
    return params, np.array([status.kind == "diverged" for status in run.status])
