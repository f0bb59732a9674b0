"""A learnt prefix of a decoder: k rows before the prompt, the decoder itself frozen.

The loss of an example is the cross-entropy of its label among the label words, after the prefix
and the example's text (A3, docs/theory, "Gradient matching"),

    ℓ_i(z) = -log softmax(logits at the label words)_{y_i}

It is the ``loss`` that ``selection.prefix`` takes: functools.partial(loss, config=config,
label_ids=label_ids).
"""

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.lm.config import Config
from lsa_lab.lm.decoder import embed, last_stream, logits, look_up
from lsa_lab.lm.weights import Params, check_params


class Example(flax.struct.PyTreeNode):
    """A text to be labelled, padded on the right."""

    ids: Array  # [T]
    last: Array  # []  the place of its last token, whose logits answer
    label: Array  # []  the number of its label word


def init(key: Array, params: Params, length: int) -> Array:  # [k, D]
    """Return the embeddings of words drawn at random, which are rows that the decoder has seen.

    Where the config scales embeddings, as Gemma's does, the stream of words has √D times these.
    """
    chex.assert_equal(length > 0, True, custom_message="a prefix has one row at least")
    words = jax.random.randint(key, (length,), 0, params.embedding.shape[0])
    return params.embedding[words]


def loss(
    prefix: Array,  # [k, D]
    params: Params,
    example: Example,
    *,
    config: Config,
    label_ids: Array,  # [C]
) -> Array:  # []
    """Return ℓ(z) of one example."""
    chex.assert_shape(prefix, (None, config.width), custom_message="a prefix is [k, D]")
    check_params(params, config)
    k = prefix.shape[0]
    stream = jnp.concatenate([prefix, embed(params, example.ids, config, start=k)])
    row = last_stream(params, stream, config)[k + example.last]
    scores = logits(params, row, config, words=label_ids)  # [C]
    return -look_up(jax.nn.log_softmax(scores), example.label)
