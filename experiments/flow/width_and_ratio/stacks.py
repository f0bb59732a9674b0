"""Random stacks of growing width, and those to be trained; what they read of a prompt's tokens."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow import pair_stacks, pairs
from experiments.flow.width_and_ratio.config import Config
from lsa_lab.models import linear_attention, transformer


def slotted(params, tokens, keys="demonstrations"):
    """Linear attention as wide as its weights: empty slots before the label, which stays last."""
    slots = params.w_kq.shape[-1] - tokens.shape[-1]
    wide = jnp.concatenate([jnp.pad(tokens[:, :-1], ((0, 0), (0, slots))), tokens[:, -1:]], axis=1)
    return linear_attention.forward(params, wide, keys=keys)


UNMASKED = partial(slotted, keys="all")  # as in A1: the query is a key


def untrained_cases(config: Config):
    """kind, forward, Params [R, L, ...] and Prompt [R, B] of every random stack."""
    rng = np.random.default_rng(config.seed)
    batch, _ = pairs.draw(rng, config.runs, config.pairs, config.d)
    for width in config.widths:
        stack = linear(rng, config, width, config.d)
        yield "linear", UNMASKED, stack, batch
    for width in config.widths:
        wide, _ = pairs.draw(rng, config.runs, config.pairs, width - 1)
        yield "linear, covariates", UNMASKED, linear(rng, config, width, width - 1), wide
    for i, width in enumerate(config.widths):
        shape = transformer.Config(
            config.d + 1, config.depth, 1, width, width=width, keys="all", init_scale=1.0
        )
        key = jax.random.fold_in(jax.random.key(config.seed), i)
        params = jax.vmap(partial(transformer.init, config=shape))(
            jax.random.split(key, config.runs)
        )
        forward = partial(transformer.forward, config=shape)
        yield "softmax", forward, pair_stacks.amplify(params, config.gain), batch


def linear(rng, config: Config, width: int, d: int):  # -> Params [R, L, ...]
    """Stacks as wide as ``width``, of the gain of `amplification` for tokens of d covariates."""
    wide = pair_stacks.random_linear(rng, config.runs, config.depth, width - 1)
    return pair_stacks.amplify(wide, config.gain * (width - 1) / d)
