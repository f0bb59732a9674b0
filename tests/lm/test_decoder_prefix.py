"""A learnt prefix of a decoder: its gradients go through the same matching as those of prompts."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.lm import prefix as lm_prefix
from lsa_lab.lm import weights
from lsa_lab.lm.config import Config
from lsa_lab.selection import prefix

CONFIG = Config(2, 4, 2, 2, 8, 10, 13, 32, rotary_width=2)
PARAMS = jax.jit(weights.init, static_argnums=1)(jax.random.key(0), CONFIG)
LOSS = partial(lm_prefix.loss, config=CONFIG, label_ids=jnp.array([2, 7]))
M, T = 12, 5


def examples():
    keys = jax.random.split(jax.random.key(1), 3)
    return lm_prefix.Example(
        ids=jax.random.randint(keys[0], (M, T), 0, 13),
        last=jax.random.randint(keys[1], (M,), 1, T),
        label=jax.random.randint(keys[2], (M,), 0, 2),
    )


EXAMPLES = examples()
CHECKPOINTS = jax.random.normal(jax.random.key(2), (2, 3, 8))
gradients_of = jax.jit(partial(prefix.example_gradients, LOSS), static_argnames="together")


def test_what_stands_after_the_text_is_of_no_effect():
    after = jnp.arange(T)[None] > EXAMPLES.last[:, None]
    padded = EXAMPLES.replace(ids=jnp.where(after, (EXAMPLES.ids + 5) % 13, EXAMPLES.ids))
    assert (padded.ids != EXAMPLES.ids).any()
    found = [gradients_of(PARAMS, CHECKPOINTS, e, together=5) for e in (EXAMPLES, padded)]
    np.testing.assert_allclose(*found, atol=1e-13)
    last = EXAMPLES.replace(last=jnp.full(M, T - 1))  # control: read at the padding
    assert abs(gradients_of(PARAMS, CHECKPOINTS, last, together=5) - found[0]).max() > 1e-3
