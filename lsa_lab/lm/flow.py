"""The flow from every token of a prompt to what a layer makes of its last one.

The prediction of a layer is a reading of one row of the stream after it: the margin of one word
over another through the logit lens, m_l = (U_a - U_b) · norm(h_l) (nostalgebraist 2020), or any
other ``read``. Its flow ∂m_l/∂e_i is a row for every token i of the prompt, and a demonstration's
is that of its span of tokens (A1, docs/theory, "The amplification theorem").
"""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.lm import layers
from lsa_lab.lm.config import Config
from lsa_lab.lm.decoder import layers_of, unembedding_of
from lsa_lab.lm.layers import Layer, Past, at_least_single, norm
from lsa_lab.lm.weights import Params, check_params

Read = Callable[[Array], Array]  # row of the stream [D] -> []
Span = tuple[int, int]  # first token, and the one after the last


def margin(params: Params, config: Config, word: int, rival: int) -> Read:
    """The logit of one word minus that of another, of a row of the stream after any layer."""
    unembedding = unembedding_of(params)
    bias = params.unembedding_bias
    offset = 0.0 if bias is None else bias[word] - bias[rival]
    return jax.tree_util.Partial(
        functools.partial(_margin, config=config),
        unembedding[word] - unembedding[rival],
        offset,
        (params.final_norm_scale, params.final_norm_offset),
    )


def along(direction: Array) -> Read:  # [D]
    """direction · h: |∂h/∂e_i|²_F is the mean of the squared flow over standard normal directions.

    (Hutchinson 1989: E |Jᵀv|² = |J|²_F.)
    """
    return jax.tree_util.Partial(jnp.dot, direction)


def token_flow(
    params: Params,
    stream: Array,  # [T, D], from ``decoder.embed``
    config: Config,
    read: Read,
    *,
    layers: Sequence[int],  # each from 1 (after the first layer) to L
    place: int = -1,
    past: Past | None = None,
) -> Array:  # [len(layers), T, D]
    """∂ read(h_l at ``place``) / ∂ stream for some layers l: a reverse pass through l layers each.

    One program a layer: choose a few of a deep model.
    """
    check_params(params, config)
    flows = []
    for layer in layers:
        if not 1 <= layer <= config.num_layers:
            raise ValueError(f"layer {layer}: flows arrive after layers 1 to {config.num_layers}")
        flows.append(_flow(params, stream, read, place, past, config=config, layer=layer))
    return jnp.stack(flows)


def spans_flow(flow: Array, spans: Sequence[Span]) -> Array:  # [..., T, D] -> [..., n]
    """|flow| of each span of tokens: the Frobenius norm over its rows."""
    num_tokens = flow.shape[-2]
    for first, stop in spans:
        if not 0 <= first < stop <= num_tokens:
            raise ValueError(
                f"span ({first}, {stop}): expected 0 <= first < stop <= {num_tokens}, the tokens "
                "of the prompt"
            )
    squares = (flow.astype(at_least_single(flow.dtype)) ** 2).sum(-1)
    return jnp.sqrt(jnp.stack([squares[..., first:stop].sum(-1) for first, stop in spans], -1))


def read_layers(
    params: Params, stream: Array, config: Config, read: Read, place: int = -1
) -> Array:  # [L+1]
    """``read`` of the row at ``place`` before the first layer and after each."""
    check_params(params, config)
    return _readings(params, stream, read, place, config=config)


def _margin(
    direction: Array,
    offset: Array,
    final_norm: tuple[Array, Array | None],
    row: Array,
    config: Config,
) -> Array:
    return norm(row, *final_norm, config) @ direction + offset


@functools.partial(jax.jit, static_argnames=("config", "layer"))
def _flow(
    params: Params,
    stream: Array,
    read: Read,
    place: int,
    past: Past | None,
    *,
    config: Config,
    layer: int,
) -> Array:  # [T, D]
    below = jax.tree.map(lambda leaf: leaf[:layer], layers_of(params, config, past=past))

    def reading(stream: Array) -> Array:
        step = jax.checkpoint(lambda stream, row: (layers.step(stream, row, config)[0], None))
        return read(jax.lax.scan(step, stream, below)[0][place])

    return jax.grad(reading)(stream)


@functools.partial(jax.jit, static_argnames="config")
def _readings(params: Params, stream: Array, read: Read, place: int, *, config: Config) -> Array:
    def step(stream: Array, layer: Layer) -> tuple[Array, Array]:
        after = layers.step(stream, layer, config)[0]
        return after, after[place]

    _, rows = jax.lax.scan(step, stream, layers_of(params, config))
    return jax.vmap(lambda row: read(row))(jnp.concatenate([stream[place][None], rows]))
