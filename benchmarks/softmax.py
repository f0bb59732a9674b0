"""Softmax transformers: W3 trains a causal one on interleaved tokens, W4 an encoder.

W3: Garg et al. (2208.01066): GPT-2's layers, a prediction at every x. W4: Chen et al. (2408.04532).
An MLP is four times as wide as the stream.
"""

from functools import partial

import jax
import jax.numpy as jnp

from benchmarks.loops import fit_form, hand_form
from benchmarks.timing import Form
from lsa_lab import prompts
from lsa_lab.models import transformer
from lsa_lab.tasks.linear import LinearTask, sample_batch


def config_of(causal: bool, n: int, d: int, layers: int, width: int, heads: int):
    """GPT-2's extras (biases, positions, a final norm) where the model is causal."""
    shape = dict(width=width, norm=True, mlp_width=4 * width)
    if causal:
        shape |= dict(keys="causal", layout="interleaved", biases=True, final_norm=True)
        shape |= dict(num_positions=2 * n + 1)
    return transformer.Config(d + 1, layers, heads, width // heads, **shape)


def ours(
    causal: bool, n: int, d: int, batch: int, layers: int, width: int, heads: int, **how
) -> Form:
    """``transformer.predict`` of each prompt, or ``predict_prefixes``."""
    config = config_of(causal, n, d, layers, width, heads)
    predict = transformer.predict_prefixes if causal else transformer.predict

    task = LinearTask(n, d, dtype=jnp.float32)

    def draws(size):
        return partial(sample_batch, task=task, size=size)

    def loss(params, batch):
        if causal:
            tokens = jax.vmap(prompts.interleaved_tokens)(batch)
            targets = jnp.concatenate([batch.y, batch.y_query[:, None]], axis=1)
        else:
            tokens, targets = jax.vmap(prompts.tokens)(batch), batch.y_query
        predicted = jax.vmap(lambda rows: predict(params, rows, config))(tokens)
        return jnp.mean((predicted - targets) ** 2)

    params = jax.jit(partial(transformer.init, config=config, dtype=jnp.float32))(jax.random.key(0))
    return fit_form(loss, draws, batch, params, **how)


def plain(
    causal: bool, n: int, d: int, batch: int, layers: int, width: int, heads: int, **how
) -> Form:
    """A newcomer's transformer for one prompt, vmapped, jitted."""

    def draw(key):
        return jax.vmap(lambda key: plain_prompt(key, n, d, causal))(jax.random.split(key, batch))

    def loss(params, batch):
        tokens, targets = batch
        predicted = jax.vmap(partial(plain_predict, causal=causal), (None, 0))(params, tokens)
        return jnp.mean((predicted - targets) ** 2)

    length = 2 * n + 1 if causal else None
    params = plain_weights(jax.random.key(0), layers, width, heads, d + 1, length)
    return hand_form(loss, draw, params, **how)


def plain_prompt(key, n, d, causal):
    """Tokens [x, y], the query's label 0; or, to a causal model, x_1, y_1, x_2, ..., x_query."""
    key_x, key_w = jax.random.split(key)
    x = jax.random.normal(key_x, (n + 1, d))
    y = x @ jax.random.normal(key_w, (d,))
    if not causal:
        return jnp.concatenate([x, y[:, None]], axis=1).at[-1, -1].set(0), y[-1]
    tokens = jnp.zeros((2 * n + 2, d + 1)).at[::2, :d].set(x).at[1::2, d].set(y)
    return tokens[:-1], y


def plain_weights(key, layers, width, heads, token_width, length):
    """A dict a layer; positions, biases and a final norm where there is a ``length``."""

    def matrix(key, *shape):
        return jax.random.normal(key, shape) / width**0.5

    def layer(key):
        keys = jax.random.split(key, 6)
        head = (heads, width // heads)
        weights = {name: matrix(k, width, *head) for name, k in zip("qkv", keys, strict=False)}
        weights |= {"o": matrix(keys[3], *head, width)}
        weights |= {"in": matrix(keys[4], width, 4 * width), "in_bias": jnp.zeros(4 * width)}
        weights |= {"out": matrix(keys[5], 4 * width, width), "out_bias": jnp.zeros(width)}
        weights |= {"norm": plain_norm_weights(width), "mlp_norm": plain_norm_weights(width)}
        if length:
            weights |= {f"{name}_bias": jnp.zeros(head) for name in "qkv"}
            weights |= {"o_bias": jnp.zeros(width)}
        return weights

    key_in, key_out, *keys = jax.random.split(key, 2 + layers)
    params = {"layers": [layer(key) for key in keys]}
    params |= {"read_in": matrix(key_in, token_width, width), "read_out": matrix(key_out, width)}
    if length:
        params |= {"positions": jnp.zeros((length, width)), "norm": plain_norm_weights(width)}
        params |= {"read_in_bias": jnp.zeros(width), "read_out_bias": jnp.zeros(())}
    return params


def plain_norm_weights(width):
    return {"scale": jnp.ones(width), "offset": jnp.zeros(width)}


def plain_predict(params, tokens, causal):
    """-ŷ is read at the query, or at every x."""
    stream = tokens @ params["read_in"]
    if causal:
        stream = stream + params["read_in_bias"] + params["positions"]
    for layer in params["layers"]:
        stream = stream + plain_attention(layer, plain_norm(stream, layer["norm"]), causal)
        rows = plain_norm(stream, layer["mlp_norm"])
        hidden = jax.nn.gelu(rows @ layer["in"] + layer["in_bias"])
        stream = stream + hidden @ layer["out"] + layer["out_bias"]
    if not causal:
        return -stream[-1] @ params["read_out"]
    rows = plain_norm(stream[::2], params["norm"])
    return -(rows @ params["read_out"] + params["read_out_bias"])


def plain_attention(layer, rows, causal):
    """softmax(q kᵀ/√width) v of every head; the encoder's tokens read the demonstrations alone."""
    q, k, v = (jnp.einsum("td,dhk->htk", rows, layer[name]) for name in "qkv")
    if causal:
        q, k, v = (x + layer[f"{name}_bias"][:, None] for x, name in ((q, "q"), (k, "k"), (v, "v")))
    length = len(rows)
    mask = jnp.tril(jnp.ones((length, length), bool))
    if not causal:
        mask = jnp.broadcast_to(jnp.arange(length) < length - 1, (length, length))
    scores = jnp.einsum("htk,hik->hti", q, k) / q.shape[-1] ** 0.5
    read = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)) @ v
    out = jnp.einsum("htk,hkd->td", read, layer["o"])
    return out + layer["o_bias"] if causal else out


def plain_norm(rows, norm):
    centred = rows - rows.mean(-1, keepdims=True)
    deviation = jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return centred / deviation * norm["scale"] + norm["offset"]
