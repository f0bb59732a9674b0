"""The flow from every token of a prompt to what a layer makes of its last one.

The prediction of a layer is a reading of one row of the stream after it: the margin of one word
over another through the logit lens, m_l = (U_a - U_b) · norm(h_l) (nostalgebraist 2020), or any
other ``read``. Its flow ∂m_l/∂e_i is a row for every token i of the prompt, and a demonstration's
is that of its span of tokens, ``amplification.log_sizes`` (A1, docs/theory, "The amplification
theorem").
"""

import functools
import itertools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import check_indices, check_whole, is_concrete
from lsa_lab.lm import layers
from lsa_lab.lm.config import Config
from lsa_lab.lm.decoder import logits, stack_layers
from lsa_lab.lm.layers import Layer
from lsa_lab.lm.weights import Params, check_params

Read = Callable[[Array], Array]  # row of the stream [D] -> [], or any number of readings


def margin(params: Params, config: Config, word: int, other: int) -> Read:
    """Return a read: the logit of one word minus that of another, after any layer."""
    words = jnp.array([word, other])
    check_indices(words, config.vocabulary, "words")
    return jax.tree_util.Partial(_margin, params, words, config)


def _margin(params: Params, words: Array, config: Config, row: Array) -> Array:
    first, second = logits(params, row, config, words)
    return first - second


def token_flow(
    params: Params,
    stream: Array,  # [T, D], from ``decoder.embed``
    config: Config,
    read: Read,  # [D] -> [...]
    *,
    layers: Sequence[int],
    place: int | Array = -1,
) -> Array:  # [len(layers), ..., T, D]
    """Return ∂ read(h_l at ``place``) / ∂ stream for some layers l.

    One pass forward and one backward, which adds the slope of every layer on its way: it costs
    Σ_l l/L reverse passes for each number that ``read`` gives.

    Args:
        read: maps a row of the stream to one or more readings, as ``margin`` does.
        layers: numbers of layers, ascending, from 1 (after the first layer) to L.
        place: the token whose row is read, by default the last.

    Raises:
        ValueError: a layer or the place does not exist, or layers do not ascend.
    """
    _check(params, stream, config, layers, place)
    return _flows(params, stream[:0], stream, read, place, config, tuple(layers))[1]


def prefix_flow(
    params: Params,
    prefix: Array,  # [P, D], from ``decoder.embed``
    stream: Array,  # [T, D], from ``decoder.embed`` with start = P
    config: Config,
    read: Read,
    *,
    layers: Sequence[int],
    place: int | Array = -1,
) -> Array:  # [len(layers), ..., P, D]
    """Return ``token_flow`` from the rows of a prefix, after which the prompt stands.

    Under ``jax.vmap`` over streams the prefix runs once for all of them. ``place`` is one of the
    stream; other arguments and errors are those of ``token_flow``.
    """
    _check(params, stream, config, layers, place)
    return _flows(params, prefix, stream, read, place, config, tuple(layers))[0]


@functools.partial(jax.jit, static_argnames="layers")
def _flows(
    params: Params,
    prefix: Array,  # [P, D]
    stream: Array,  # [T, D]
    read: Read,
    place: int | Array,
    config: Config,
    layers: tuple[int, ...],
) -> tuple[Array, Array]:  # [len(layers), ..., P, D], [len(layers), ..., T, D]
    stack = stack_layers(params, config)
    rows, pulls, slopes = (prefix, stream), [], []
    for start, stop in itertools.pairwise((0, *layers)):
        part = functools.partial(_run_layers, stack=stack, start=start, stop=stop, config=config)
        rows, pull = jax.vjp(part, rows)
        pulls.append(pull)
        slopes.append(jax.jacrev(read)(rows[1][place]))  # [..., D]
    numbers = slopes[0].shape[:-1]
    flows = tuple(jnp.zeros((0, *rows.shape), rows.dtype) for rows in rows)
    for pull, slope in zip(pulls[::-1], slopes[::-1], strict=True):
        slope = slope.reshape(-1, slope.shape[-1])
        added = [jnp.zeros((len(slope), *rows.shape), rows.dtype) for rows in rows]
        added[1] = added[1].at[:, place].set(slope)
        flows = jax.tree.map(lambda new, old: jnp.concatenate([new, old]), tuple(added), flows)
        (flows,) = jax.vmap(pull)(flows)
    return jax.tree.map(lambda flow: flow.reshape(len(layers), *numbers, *flow.shape[1:]), flows)


def _run_layers(
    rows: tuple[Array, Array], stack: Layer, start: int, stop: int, config: Config
) -> tuple[Array, Array]:
    """Run prefix and prompt from before layer ``start`` to before layer ``stop``."""

    @jax.checkpoint
    def step(rows: tuple[Array, Array], number: Array) -> tuple[tuple[Array, Array], None]:
        layer = jax.tree.map(lambda leaf: leaf[number], stack)
        prefix, layer = layers.step_prefix(rows[0], layer, config)
        return (prefix, layers.step(rows[1], layer, config)[0]), None

    return jax.lax.scan(step, rows, jnp.arange(start, stop))[0]


def _check(
    params: Params, stream: Array, config: Config, layers: Sequence[int], place: int | Array
) -> None:
    check_params(params, config)
    for number in layers:
        if not 1 <= check_whole(number, "layer") <= config.num_layers:
            raise ValueError(f"layer {number}: flows arrive after layers 1 to {config.num_layers}")
    if not len(layers) or list(layers) != sorted(set(layers)):
        raise ValueError(f"layers {tuple(layers)}: name each once, in ascending order")
    count = len(stream)
    if is_concrete(place) and not -count <= check_whole(place, "place") < count:
        raise ValueError(f"place = {place}: the prompt has {count} tokens, the last of them -1")
