"""Trainings inside an experiment: the optimiser, and many runs that resume."""

import jax
import numpy as np
import optax

from lsa_lab import lab
from lsa_lab.training import Run, Training, fit
from lsa_lab.training.status import refuse_divergence


def build_adam(peak, steps, *, end=0.0, clip=None, b2=0.99) -> optax.GradientTransformation:
    """Return Adam whose rate rises linearly to the peak and falls as a cosine to ``end``.

    With ``clip`` gradients are clipped at this norm, and their squares have the memory ``b2``.
    """
    rate = optax.warmup_cosine_decay_schedule(0.0, peak, steps // 20, steps, end)
    if clip is None:
        return optax.adam(rate)
    return optax.chain(optax.clip_by_global_norm(clip), optax.adam(rate, b2=b2))


def fit_runs(
    label, loss, sample, optimizer, steps, start, keys, per_run=None, *, needs_all=False, **watch
) -> Run:
    """Train R runs, leaves [R, ...] of ``start``, or resume them.

    A run that diverged has its last finite params, and is refused if all are needed.
    """
    optimize = optimizer if per_run is None else lambda _: optimizer
    training = Training(loss, sample, optimize, steps, label=label)
    run = fit(training, start, keys, per_run=per_run, **watch, **lab.checkpoint(label))
    if needs_all:
        refuse_divergence(run.status, label, needs_all=True)
    return run


def train(*recipe, needs_all=False):
    """Return the params of ``fit_runs`` in float64."""
    params = fit_runs(*recipe, needs_all=needs_all).params
    return jax.tree.map(lambda leaf: np.asarray(leaf, float), params)


def train_layers(label, key, init, loss, sample, config, count, per_run=None):
    """Train ``count`` recurrent layers, init(keys [R]) before the training; return their params."""
    key_init, key_data = (jax.random.split(each, count) for each in jax.random.split(key))
    rate, steps = config.learning_rate, config.steps
    recipe = loss, sample, build_adam(rate, steps, end=rate / 100, clip=0.3), steps
    return train(label, *recipe, init(key_init), key_data, per_run)
