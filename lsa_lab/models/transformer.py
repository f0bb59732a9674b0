"""Transformers with factored heads: softmax or linear attention, optional read-in, norm and MLP.

One layer adds to token t of the stream, with u = norm(e) or, without a norm, u = e,

    Σ_h W_O^h Σ_i a_ti W_V^h u_i,    softmax:  a_ti = softmax_i (W_K^h u_i · W_Q^h u_t),
                                     linear:   a_ti = (1/n) W_K^h u_i · W_Q^h u_t,

with i running over the keys that t may read, and then, if there is an MLP, W_2 gelu(W_1 u + b_1) +
b_2 of the new stream (Vaswani et al. 1706.03762; A2, Eq. 1, docs/theory, "Softmax attention";
linear: docs/theory, "Linear attention"). The score has no factor 1/√k: it is part of W_Q, and
``init`` draws it there.

Where the config asks for them: biases, W_Q u_t + b_q and so on, and b_o beside the heads' sum; a
position of its own added to every token before the first layer; a final norm before the read-out,
through which ``trace.layer_predictions`` reads the stream of every layer (the logit lens).

Train with ``jax.vmap`` of ``predict`` or ``predict_prefixes``; look inside with ``forward``.
"""

import functools

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.models import linear_attention
from lsa_lab.models import trace as traces
from lsa_lab.models.blocks import head_gates, layer_norm, layer_params
from lsa_lab.models.trace import Trace, Walk
from lsa_lab.models.transformer_config import Config
from lsa_lab.models.transformer_layers import attention_weights, not_none, run, run_to
from lsa_lab.models.transformer_weights import Params, check_inputs, check_params, present_heads
from lsa_lab.models.transformer_weights import init as init

# The fields that a config may choose freely where ``merge`` accepts it.
_MERGED = ("token_width", "num_layers", "heads", "key_width", "keys", "normalise", "init_scale")


def forward(
    params: Params,
    tokens: Array,  # [T, e], the query last
    config: Config,
    head_mask: Array | None = None,  # [L, H]
) -> Trace:
    """Read in, run every layer, and return the stream and the heads' writes.

    Args:
        head_mask: a gate g for each head, which then writes g times its own output.

    Returns:
        A Trace with stream [L+1, T, D] and heads [L, H, T, D]. The MLP writes to the stream only.
        With a read-in the label slot is stream @ read_out.

    Raises:
        ValueError, AssertionError: tokens, weights or mask do not fit the config.
    """
    check_inputs(params, tokens, config)
    gates = head_gates(head_mask, config.num_layers, config.num_heads, tokens.dtype)
    return _forward(params, tokens, gates, config)


@functools.partial(jax.jit, static_argnames="config")
def _forward(params: Params, tokens: Array, gates: Array, config: Config) -> Trace:
    stream = _embed(params, tokens)
    later, heads = run(stream, (layer_params(params), gates), config)
    return _restore_label_slots(traces.collect(stream, later, heads, params.read_out), params)


def predict(
    params: Params, tokens: Array, config: Config, head_mask: Array | None = None
) -> Array:  # []
    """Return ŷ = minus the query's label slot after the last layer; use ``jax.vmap`` for a batch.

    The last layer runs for the query alone, so that this costs less than ``forward``.
    """
    return _predict(params, tokens, config, head_mask, -1)[0]


def predict_prefixes(
    params: Params, tokens: Array, config: Config, head_mask: Array | None = None
) -> Array:  # [n+1]
    """Return ŷ at x_1, ..., x_n and the query, each from the pairs before it.

    Garg et al. 2208.01066. The last layer runs for these tokens alone. Raises ValueError unless
    the layout is "interleaved".
    """
    if config.layout != "interleaved":
        raise ValueError(
            f"layout is {config.layout!r}, where only the query has a prediction; use predict, "
            "or layout='interleaved'"
        )
    return _predict(params, tokens, config, head_mask, 2)


def _predict(
    params: Params, tokens: Array, config: Config, head_mask: Array | None, step: int
) -> Array:  # [t]
    check_inputs(params, tokens, config)
    gates = head_gates(head_mask, config.num_layers, config.num_heads, tokens.dtype)
    return _last_slots(params, tokens, gates, config, step)


@functools.partial(jax.jit, static_argnames=("config", "step"))
def _last_slots(params: Params, tokens: Array, gates: Array, config: Config, step: int) -> Array:
    """Return minus the label slots of the last token, step -1, or of every ``step``-th one."""
    read = slice(-1, None) if step == -1 else slice(None, None, step)
    stream = run_to(_embed(params, tokens), (layer_params(params), gates), config, read)
    trace = Trace(stream[None], jnp.zeros((0, 0), stream.dtype), params.read_out)
    return -traces.label_slots(_restore_label_slots(trace, params))[0]


def attention(params: Params, trace: Walk, config: Config) -> Array:  # [L, H, T, T]
    """Return the a_ti with which token t (third axis) reads token i (fourth)."""
    weights = functools.partial(attention_weights, config=config)
    scores = jax.vmap(weights)(layer_params(params), trace.stream[:-1])
    return jnp.where(present_heads(config)[:, :, None, None], scores, 0)


def merge(params: Params, config: Config) -> linear_attention.Params:
    """Return the model with w_kq = W_Kᵀ W_Q and w_pv = W_O W_V (docs/theory, "Linear attention").

    Raises ValueError unless the config has a linear kernel and attention alone.
    """
    plain = Config(**{name: getattr(config, name) for name in _MERGED}, kernel="linear")
    others = [name for name, value in vars(plain).items() if getattr(config, name) != value]
    if others:
        has, fits = (
            ", ".join(f"{name}={getattr(model, name)!r}" for name in others)
            for model in (config, plain)
        )
        raise ValueError(
            f"the config has {has}, and merged linear attention has two matrices a head alone: "
            f"only {fits} can be merged; run this one by transformer.forward"
        )
    check_params(params, config)
    return linear_attention.Params(
        w_kq=params.w_k.swapaxes(2, 3) @ params.w_q, w_pv=params.w_o @ params.w_v
    )


def _embed(params: Params, tokens: Array) -> Array:  # [T, e] -> [T, D]
    """Return the stream before the first layer: the tokens, read in, plus their positions."""
    stream = tokens if params.read_in is None else tokens @ params.read_in.T
    if params.read_in_bias is not None:
        stream = stream + params.read_in_bias[None]
    return stream if params.positions is None else stream + params.positions[: tokens.shape[0]]


def _restore_label_slots(trace: Trace, params: Params) -> Trace:
    """Return the trace with its label slots, if they are not just stream @ read_out."""
    final_norm = not_none(params.final_norm_scale, params.final_norm_offset)
    if params.read_out is None or not (final_norm or params.read_out_bias is not None):
        return trace
    rows = trace.stream
    if final_norm:
        rows = jax.vmap(lambda layer: layer_norm(layer, *final_norm))(rows)
    slots = rows @ params.read_out
    if params.read_out_bias is not None:
        slots = slots + params.read_out_bias
    return trace.replace(read_out=None, slots=slots)
