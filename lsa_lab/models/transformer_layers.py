"""A transformer's layers: attention and MLP on the stream; ``transformer`` has the formulas."""

import functools
import itertools
import operator

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import side_by_side
from lsa_lab.models import blocks
from lsa_lab.models.blocks import causal_read, gated, key_mask, layer_norm, mlp, run_layers
from lsa_lab.models.transformer_config import Config
from lsa_lab.models.transformer_weights import Params

_MANY = 256  # tokens: above, softmax reads ``_ROWS`` of them at a time
_ROWS = 32
_OF_HEADS = ("w_q", "w_k", "w_v", "w_o", "b_q", "b_k", "b_v")


def run(
    stream: Array, weights: tuple[Params, Array, Array | None], config: Config
) -> tuple[Array, Array]:  # [L, T, D], [L, H, T, D]
    """Neighbours with equally many heads run together, cut to them; absent heads write 0."""
    layer = functools.partial(_layer, config=config)
    later, writes, start = [], [], 0
    for count, group in itertools.groupby(config.head_counts):
        stop = start + len(list(group))
        layers, *gates = jax.tree.map(operator.itemgetter(slice(start, stop)), weights)
        present = operator.itemgetter((slice(None), slice(count)))
        cut = {
            name: present(leaf) for name in _OF_HEADS if (leaf := getattr(layers, name)) is not None
        }
        together = (layers.replace(**cut), *jax.tree.map(present, gates))
        states, heads = run_layers(layer, stream, together, heavy=True)
        later.append(states)
        writes.append(jnp.pad(heads, ((0, 0), (0, config.num_heads - count), (0, 0), (0, 0))))
        stream, start = states[-1], stop
    return jnp.concatenate(later), jnp.concatenate(writes)


def attention_weights(layer: Params, stream: Array, config: Config) -> Array:  # [H, T, T]
    """The a_ti of every head."""
    rows = _normed(layer, stream, config)
    mask = _mask(config, rows.shape[0], jnp.arange(rows.shape[0]))
    queries, keys = _queries_and_keys(layer, rows, config)
    return blocks.attention_weights(queries, keys, mask, config.kernel)


def _mask(config: Config, num_tokens: int, rows: Array) -> Array:  # [1, rows, T]
    """Which tokens those of ``rows`` may read."""
    if config.layout == "interleaved":
        return jnp.arange(num_tokens)[None, None] <= rows[None, :, None]
    return key_mask(config.keys, num_tokens, rows)[0]


def given(*leaves: Array | None) -> list[Array]:
    """The leaves that are not None: all of them where the config has their part."""
    return [leaf for leaf in leaves if leaf is not None]


def _layer(
    stream: Array, weights: tuple[Params, Array, Array | None], config: Config
) -> tuple[Array, tuple[Array, Array]]:  # [T, D], ([T, D], [H, T, D])
    """One layer: Params without the axis L, a gate for each head, and what fills a closed one.

    Heads are summed inside the product; what each writes costs nothing where nobody reads it. The
    bias b_o is no head's, and no gate closes it.
    """
    layer, gate, fill = weights
    read = _read(layer, stream, config)  # [H, T, k]
    w_o = gated(gate, layer.w_o)
    heads = jnp.einsum("hdk,htk->htd", w_o, read)
    stream = stream + jnp.einsum("hdk,htk->td", w_o, read)
    if layer.b_o is not None:
        stream = stream + layer.b_o[None]
    if fill is not None:
        heads, stream = heads + fill, stream + fill.sum(0)
    if config.mlp_width is not None:
        rows = stream
        if config.norm:
            rows = layer_norm(stream, *given(layer.mlp_norm_scale, layer.mlp_norm_offset))
        weights_and_biases = given(
            layer.mlp_in, layer.mlp_in_bias, layer.mlp_out, layer.mlp_out_bias
        )
        stream = stream + mlp(rows, *weights_and_biases)
    return stream, (stream, heads)


def _read(layer: Params, stream: Array, config: Config) -> Array:  # [H, T, k]
    """Σ_i a_ti (W_V u_i + b_v) for every head; the linear kernel never forms a."""
    rows = _normed(layer, stream, config)
    values = _project(layer.w_v, layer.b_v, rows)
    if config.kernel == "softmax" and rows.shape[0] <= _MANY:
        return attention_weights(layer, stream, config) @ values
    queries, keys = _queries_and_keys(layer, rows, config)
    if config.kernel == "softmax":
        return _read_by_rows(queries, keys, values, config)
    if config.layout == "merged" and config.keys != "all":
        keys = keys.at[:, -1].set(0)  # nobody reads the query
    if config.keys == "causal":
        return jax.vmap(causal_read)(queries, keys, values)
    return queries @ (keys.swapaxes(1, 2) @ values)


def _read_by_rows(queries: Array, keys: Array, values: Array, config: Config) -> Array:
    """What softmax reads [H, T, k], some tokens after others: the memory is that of the scores
    [H, rows, T] of a block, for the backward pass forms them again."""
    num_heads, num_tokens, _ = queries.shape
    num_blocks = -(-num_tokens // side_by_side(None, _ROWS))
    size = -(-num_tokens // num_blocks)
    padded = jnp.pad(queries, ((0, 0), (0, num_blocks * size - num_tokens), (0, 0)))
    split = padded.reshape(num_heads, num_blocks, size, -1).swapaxes(0, 1)

    @functools.partial(jax.checkpoint, prevent_cse=False)
    def read(block: tuple[Array, Array]) -> Array:  # [H, rows, k]
        queries, first = block
        mask = _mask(config, num_tokens, first + jnp.arange(size))
        return blocks.attention_weights(queries, keys, mask, config.kernel) @ values

    # Were the places of rows known before the layers are, all of their masks would be kept.
    places = jax.lax.optimization_barrier((split, size * jnp.arange(num_blocks)))
    rows = jax.lax.map(read, places)
    return rows.swapaxes(0, 1).reshape(num_heads, num_blocks * size, -1)[:, :num_tokens]


def _queries_and_keys(
    layer: Params, rows: Array, config: Config
) -> tuple[Array, Array]:  # [H, T, k] x 2
    """W_Q u_t + b_q, and W_K u_i + b_k.

    The linear kernel divides the first by n, or by t in the interleaved layout. Every score is a
    product of the two.
    """
    queries = _project(layer.w_q, layer.b_q, rows)
    keys = _project(layer.w_k, layer.b_k, rows)
    if config.kernel == "softmax" or not config.normalise:
        return queries, keys
    num_tokens = rows.shape[0]
    if config.layout == "merged":
        return queries / (num_tokens - 1), keys
    return queries / jnp.arange(1, num_tokens + 1, dtype=rows.dtype)[None, :, None], keys


def _normed(layer: Params, stream: Array, config: Config) -> Array:  # [T, D]
    if not config.norm:
        return stream
    return layer_norm(stream, *given(layer.attention_norm_scale, layer.attention_norm_offset))


def _project(weights: Array, bias: Array | None, rows: Array) -> Array:  # [H, T, k]
    projected = jnp.einsum("hkd,td->htk", weights, rows)
    return projected if bias is None else projected + bias[:, None]
