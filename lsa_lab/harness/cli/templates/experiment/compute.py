"""The numbers: a Config in, a Dataset with named axes out; no other door imports jax.

Each function is written for one prompt and one run, and mapped by ``jax.vmap``. Nothing is judged.
"""

from functools import partial

import jax
import jax.numpy as jnp
import optax
import xarray as xr

from lsa_lab import estimators
from lsa_lab.models import linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.prompts import tokens
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.training import Files, Training, fit
from lsa_lab.training.status import refuse_divergence


def compute(config, *, progress=None, checkpoints=None):
    task = LinearTask(config.n, config.d, noise_std=config.noise_std)
    # The best size of a step from w = 0 on (1/2n) Σ (w·x_i - y_i)², for x and w ~ N(0, I).
    step_size = config.n / (config.n + config.d + 1 + config.noise_std**2)

    def draw(key, size):
        return jax.vmap(partial(sample, task=task))(jax.random.split(key, size))

    def layer_error(params, prompt):
        predicted = predict(linear_attention.forward(params, tokens(prompt)))
        return (predicted - prompt.y_query) ** 2

    def step_error(prompt):
        weights = estimators.gradient_descent(prompt, jnp.array([step_size]))[-1]
        return (weights @ prompt.x_query - prompt.y_query) ** 2

    def loss(params, batch):
        return jax.vmap(partial(layer_error, params))(batch).mean()

    @jax.jit
    def risks(params, key):  # of every run, and of the step on the same prompts
        batch = draw(key, config.test_prompts)
        return jax.vmap(loss, (0, None))(params, batch), jax.vmap(step_error)(batch).mean()

    key_init, key_fit, key_test = jax.random.split(jax.random.key(config.seed), 3)
    init = partial(linear_attention.init, num_layers=1, num_heads=1, d=config.d)
    rate = optax.cosine_decay_schedule(config.learning_rate, config.steps)
    training = Training(loss, partial(draw, size=64), optax.adam(rate), config.steps)
    run = fit(
        training,
        jax.jit(jax.vmap(init))(jax.random.split(key_init, config.runs)),
        jax.random.split(key_fit, config.runs),
        files=Files(checkpoint=checkpoints / "layer"),  # a killed run goes on from here
        progress=progress,
    )
    refuse_divergence(run.status, "the layer", checkpoints / "layer")
    layers, step = risks(run.params, key_test)
    loss_while_training = (("run", "step"), run.history["loss"])
    return xr.Dataset(
        {"risk": ("run", layers), "step_risk": step, "loss": loss_while_training},
        {"step": range(config.steps)},
    )
