"""A transformer's layers: attention and MLP on the stream; ``transformer`` has the formulas."""

import dataclasses
import functools
import itertools
import operator

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import choose_batch_size
from lsa_lab.models import blocks
from lsa_lab.models.blocks import key_mask, layer_norm, mlp, read_causally, read_softmax, run_layers
from lsa_lab.models.transformer_config import Config
from lsa_lab.models.transformer_weights import Params

_MANY = 256  # tokens: above, softmax reads ``_ROWS`` of them at a time
_ROWS = 32
_HEAD_LEAVES = ("w_q", "w_k", "w_v", "w_o", "b_q", "b_k", "b_v")
_ALL = slice(None)
Weights = tuple[Params, Array]  # Params and gates of some layers or of one


def run(
    stream: Array, weights: Weights, config: Config
) -> tuple[Array, Array]:  # [L, T, D], [L, H, T, D]
    """Return the stream after each layer and the heads' writes; absent heads write 0.

    Neighbouring layers with equally many heads are one scan, without the absent heads.
    """
    layer = functools.partial(_layer, config=config)
    streams, writes, start = [], [], 0
    for count, group in itertools.groupby(config.head_counts):
        stop = start + len(list(group))
        part = _drop_absent(jax.tree.map(operator.itemgetter(slice(start, stop)), weights), count)
        later, heads = run_layers(layer, stream, part, heavy=True)
        streams.append(later)
        writes.append(jnp.pad(heads, ((0, 0), (0, config.num_heads - count), (0, 0), (0, 0))))
        stream, start = later[-1], stop
    return jnp.concatenate(streams), jnp.concatenate(writes)


def run_to(stream: Array, weights: Weights, config: Config, tokens: slice) -> Array:
    """Return the last stream [t, D] of ``tokens`` alone; the last layer skips the others, except in
    long prompts, where a scan over all layers needs less memory."""
    if len(stream) > blocks.LONG:
        return run(stream, weights, config)[0][-1, tokens]
    if config.num_layers > 1:
        heads = config.head_counts[:-1]
        earlier = dataclasses.replace(config, num_layers=config.num_layers - 1, heads=heads)
        stream = run(stream, jax.tree.map(lambda leaf: leaf[:-1], weights), earlier)[0][-1]
    last = _drop_absent(jax.tree.map(lambda leaf: leaf[-1:], weights), config.head_counts[-1])
    return _layer(stream, jax.tree.map(lambda leaf: leaf[0], last), config, tokens)[0]


def _drop_absent(weights: Weights, count: int) -> Weights:
    """Return the weights of layers [L, ...] with their first ``count`` heads."""
    params, gates = weights
    leaves = {name: getattr(params, name) for name in _HEAD_LEAVES}
    leaves, gates = jax.tree.map(lambda leaf: leaf[:, :count], (leaves, gates))
    return params.replace(**leaves), gates


def attention_weights(layer: Params, stream: Array, config: Config) -> Array:  # [H, T, T]
    """Return the a_ti of every head."""
    rows = _normalise(layer, stream, config)
    mask = _mask(config, rows.shape[0], jnp.arange(rows.shape[0]))
    queries, keys = _queries_and_keys(layer, rows, config)
    return blocks.attention_weights(queries, keys, mask, config.kernel)


def _mask(config: Config, num_tokens: int, rows: Array) -> Array:  # [1, rows, T]
    """Return which tokens those of ``rows`` may read."""
    if config.layout == "interleaved":
        return jnp.arange(num_tokens)[None, None] <= rows[None, :, None]
    return key_mask(config.keys, num_tokens, rows)[0]


def not_none(*leaves: Array | None) -> list[Array]:
    """Return the leaves that are not None: all of them where the config has their part."""
    return [leaf for leaf in leaves if leaf is not None]


def _layer(
    stream: Array, weights: Weights, config: Config, tokens: slice = _ALL
) -> tuple[Array, tuple[Array, Array]]:  # [T, D], ([t, D], [H, t, D])
    """Return the stream of ``tokens`` after one layer, twice, and the heads' writes to it.

    Heads are summed inside the product: their separate writes cost nothing if nobody reads them.
    No gate closes the bias b_o.
    """
    layer, gate = weights
    read = _read(layer, stream, config, tokens)  # [H, t, k]
    w_o = gate[:, None, None] * layer.w_o
    heads = jnp.einsum("hdk,htk->htd", w_o, read)
    stream = stream[tokens] + jnp.einsum("hdk,htk->td", w_o, read)
    if layer.b_o is not None:
        stream = stream + layer.b_o[None]
    if config.mlp_width is not None:
        rows = stream
        if config.norm:
            rows = layer_norm(stream, *not_none(layer.mlp_norm_scale, layer.mlp_norm_offset))
        weights_and_biases = not_none(
            layer.mlp_in, layer.mlp_in_bias, layer.mlp_out, layer.mlp_out_bias
        )
        stream = stream + mlp(rows, *weights_and_biases)
    return stream, (stream, heads)


def _read(layer: Params, stream: Array, config: Config, tokens: slice) -> Array:  # [H, t, k]
    """Return Σ_i a_ti (W_V u_i + b_v) for every head; the linear kernel never forms a."""
    rows = _normalise(layer, stream, config)
    values = _project(layer.w_v, layer.b_v, rows)
    if config.kernel == "softmax":
        queries, keys = _queries_and_keys(layer, rows, config, tokens)
        return _read_softmax(queries, keys, values, jnp.arange(len(rows))[tokens], config)
    queries, keys = _queries_and_keys(layer, rows, config)
    if config.layout == "merged" and config.keys != "all":
        keys = keys.at[:, -1].set(0)  # nobody reads the query
    if config.keys == "causal":
        return jax.vmap(read_causally)(queries, keys, values)[:, tokens]
    return queries[:, tokens] @ (keys.swapaxes(1, 2) @ values)


def _read_softmax(
    queries: Array, keys: Array, values: Array, places: Array, config: Config
) -> Array:  # [H, t, k], [H, T, k] x 2, [t] -> [H, t, k]
    """Return what tokens at ``places`` read, in blocks if they are many.

    The backward pass forms the scores [H, rows, T] of a block again, so that memory is linear in T.
    """
    num_heads, num_tokens = keys.shape[:2]

    def read(block: tuple[Array, Array]) -> Array:  # [H, rows, k], [rows] -> [H, rows, k]
        queries, places = block
        return read_softmax(queries, keys, values, _mask(config, num_tokens, places))

    if len(places) <= _MANY:
        return read((queries, places))
    num_blocks = -(-len(places) // choose_batch_size(None, _ROWS))
    size = -(-len(places) // num_blocks)
    padding = num_blocks * size - len(places)
    split = jnp.pad(queries, ((0, 0), (0, padding), (0, 0)))
    split = split.reshape(num_heads, num_blocks, size, -1).swapaxes(0, 1)
    # The barrier hides the places until a layer runs: XLA would keep the masks of all blocks.
    parts = jax.lax.optimization_barrier((split, jnp.pad(places, (0, padding)).reshape(-1, size)))
    rows = jax.lax.map(jax.checkpoint(read, prevent_cse=False), parts)
    return rows.swapaxes(0, 1).reshape(num_heads, num_blocks * size, -1)[:, : len(places)]


def _queries_and_keys(
    layer: Params, rows: Array, config: Config, tokens: slice = _ALL
) -> tuple[Array, Array]:  # [H, t, k], [H, T, k]
    """Return W_Q u_t + b_q and W_K u_i + b_k, whose products are the scores.

    The linear kernel divides the first by n, or by t in the interleaved layout.
    """
    queries = _project(layer.w_q, layer.b_q, rows[tokens])
    keys = _project(layer.w_k, layer.b_k, rows)
    if config.kernel == "softmax" or not config.normalise:
        return queries, keys
    num_tokens = rows.shape[0]
    if config.layout == "merged":
        return queries / (num_tokens - 1), keys
    return queries / jnp.arange(1, num_tokens + 1, dtype=rows.dtype)[None, :, None], keys


def _normalise(layer: Params, stream: Array, config: Config) -> Array:  # [T, D]
    if not config.norm:
        return stream
    return layer_norm(stream, *not_none(layer.attention_norm_scale, layer.attention_norm_offset))


def _project(weights: Array, bias: Array | None, rows: Array) -> Array:  # [H, T, k]
    projected = jnp.einsum("hkd,td->htk", weights, rows)
    return projected if bias is None else projected + bias[:, None]
