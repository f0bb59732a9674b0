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


def compute(config, *, progress=None, checkpoints=None):
    task = LinearTask(config.n, config.d, noise_std=config.noise_std)
    penalties = jnp.asarray(config.penalties)

    def draw(key, size):
        return jax.vmap(partial(sample, task=task))(jax.random.split(key, size))

    def answer(params, prompt):
        return predict(linear_attention.forward(params, tokens(prompt)))

    def loss(params, batch):
        return ((jax.vmap(partial(answer, params))(batch) - batch.y_query) ** 2).mean()

    def ridges(prompt):
        return jax.vmap(lambda penalty: estimators.ridge(prompt, penalty) @ prompt.x_query)(
            penalties
        )

    key_init, key_fit, key_test = jax.random.split(jax.random.key(config.seed), 3)
    init = partial(linear_attention.init, num_layers=1, num_heads=1, d=config.d)
    run = fit(
        Training(loss, partial(draw, size=64), optax.adam(0.01), config.steps, label="one layer"),
        jax.vmap(init)(jax.random.split(key_init, config.runs)),
        jax.random.split(key_fit, config.runs),
        files=Files(checkpoint=checkpoints / "layer"),
        progress=progress,
    )
    batch = draw(key_test, config.test_prompts)
    ours = jax.jit(jax.vmap(jax.vmap(answer, (None, 0)), (0, None)))(run.params, batch)  # [R, B]
    theirs = jax.jit(jax.vmap(ridges))(batch)  # [B, P]
    distances = ((ours[:, :, None] - theirs[None]) ** 2).mean(1) / (ours**2).mean(1)[:, None]
    return xr.Dataset(
        {"distance": (("run", "penalty"), distances)}, {"penalty": list(config.penalties)}
    )
