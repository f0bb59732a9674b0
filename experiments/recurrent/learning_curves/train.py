"""The models of `learning_curves` and their training."""

from functools import partial

import jax
import jax.numpy as jnp
import optax

from lsa_lab.models import prefixes, recurrent, transformer
from lsa_lab.tasks.linear import LinearTask, sample_batch
from lsa_lab.training import Files, Training, fit


def model_of(layer: str, depth: int, config, tokens: str = "bound"):
    """The module and the shape of a model that reads bound or interleaved tokens."""
    token_width = 2 * config.d + 1 if tokens == "bound" else config.d + 2
    shape = dict(key_width=config.d, width=config.width)
    if layer == "softmax":
        # In this layout a token reads those up to itself, whatever they hold.
        causal = dict(keys="causal", layout="interleaved")
        return transformer, transformer.Config(token_width, depth, 1, **shape, **causal)
    # In this layout every token writes.
    return recurrent, recurrent.Config(layer, token_width, depth, **shape, layout="bound")


def forward_of(model, tokens: str = "bound"):
    """forward(params, tokens); beside an interleaved token stands a constant, without which no sum
    of writes tells a task from its opposite (docs/theory, "A sum binds no tokens")."""
    module, shape = model

    def forward(params, rows):
        if tokens == "interleaved":
            rows = jnp.pad(rows, ((0, 0), (0, 1)), constant_values=1)
        return module.forward(params, rows, shape)

    return forward


def train(config, layer, depth, key, progress, checkpoints, tokens="bound"):
    """All runs of a layer and depth; the loss is over all prefixes."""
    module, shape = model = model_of(layer, depth, config, tokens)
    spread = dict(noise_std=config.noise_var**0.5, weight_std=config.d**-0.5)
    task = LinearTask(config.n, config.d, **spread, dtype=jnp.float32)
    peak, steps = config.learning_rate, config.steps
    rate = optax.warmup_cosine_decay_schedule(0.0, peak, steps // 20, steps, peak / 100)
    loss = partial(prefixes.loss, forward_of(model, tokens), layout=tokens)
    training = Training(
        loss=lambda params, batch: jax.vmap(loss, (None, 0))(params, batch).mean(),
        sample=lambda key: sample_batch(key, task, config.batch),
        optimizer=optax.chain(optax.clip_by_global_norm(0.3), optax.adam(rate, b2=0.99)),
        steps=steps,
        label=f"learning_curves: {layer}, {depth} layer{'s' * (depth > 1)}, {tokens} tokens",
    )
    key_init, key_data = jax.random.split(key)
    name = f"{layer}_{depth}_{tokens}_{config.steps}"
    init = partial(module.init, config=shape, dtype=jnp.float32)
    return fit(
        training,
        jax.vmap(init)(jax.random.split(key_init, config.runs)),
        jax.random.split(key_data, config.runs),
        files=Files(checkpoints and checkpoints / f"{name}.ckpt"),
        progress=progress,
    )
