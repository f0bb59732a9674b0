"""The shape of a transformer and its weights."""

import dataclasses
from typing import Literal

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike

from lsa_lab.models.blocks import Kernel, Keys, check_keys


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Config:
    """What a transformer is made of. jit and vmap take it as a constant, wherever it stands.

    ``heads``: one count, or one for each layer such as (8, 1, 1). ``width``: of the stream after a
    read-in; None, no read-in, the stream is the token itself. ``keys`` and ``normalise`` (linear
    kernel: divide by n) are those of ``linear_attention.forward``. In the interleaved layout x_1,
    y_1, ..., x_query the keys are "causal", token t reads tokens 1..t, itself included, and
    ``normalise`` divides by t: so the prediction at each x is the one its prefix alone would get.
    ``norm`` stands before attention and before the MLP. ``init_scale`` multiplies every drawn
    matrix but the read-in and read-out, whose entries have variance 1 / (number of inputs).
    """

    token_width: int  # e = d + 1
    num_layers: int  # L
    heads: int | tuple[int, ...]
    key_width: int  # k
    width: int | None = None  # D
    kernel: Kernel = "softmax"
    keys: Keys = "demonstrations"
    normalise: bool = True
    norm: bool = False
    mlp_width: int | None = None  # m
    layout: Literal["merged", "interleaved"] = "merged"
    init_scale: float = 0.5

    def __post_init__(self) -> None:
        for name in ("num_layers", "key_width", "width", "mlp_width"):
            value = getattr(self, name)
            if value is not None:
                _at_least(name, value, 1)
        _at_least("token_width", self.token_width, 2)
        self._check_heads()
        check_keys(self.keys)
        _one_of("kernel", self.kernel, ("softmax", "linear"))
        _one_of("layout", self.layout, ("merged", "interleaved"))
        if self.layout == "interleaved" and self.keys != "causal":
            raise ValueError(
                f"keys is {self.keys!r}, but y_i must not be read before it comes in the "
                "'interleaved' layout; the nearest valid value is keys='causal'"
            )
        if self.kernel == "softmax" and not self.normalise:
            raise ValueError(
                "normalise is False, but softmax weights always sum to one; "
                "the nearest valid value is normalise=True (or kernel='linear')"
            )
        if not self.init_scale > 0:
            raise ValueError(f"init_scale is {self.init_scale}; it must be positive, such as 0.5")

    def _check_heads(self) -> None:
        if not isinstance(self.heads, int | tuple):
            raise ValueError(f"heads is {self.heads!r}; give an int, or a tuple with one per layer")
        if isinstance(self.heads, tuple) and len(self.heads) != self.num_layers:
            nearest = (self.heads + (1,) * self.num_layers)[: self.num_layers]
            raise ValueError(
                f"heads is {self.heads}, {len(self.heads)} counts for num_layers = "
                f"{self.num_layers}; the nearest valid value is {nearest}"
            )
        for count in self.head_counts:
            _at_least("heads", count, 1)

    @property
    def head_counts(self) -> tuple[int, ...]:  # L of them
        """The number of heads of each layer."""
        return self.heads if isinstance(self.heads, tuple) else (self.heads,) * self.num_layers

    @property
    def num_heads(self) -> int:
        """H, the most heads that a layer has."""
        return max(self.head_counts)

    @property
    def stream_width(self) -> int:
        """D, the width of the residual stream."""
        return self.token_width if self.width is None else self.width


class Params(flax.struct.PyTreeNode):
    """Weights per layer and head; what the Config leaves out is None, absent heads are zero."""

    w_q: Array  # [L, H, k, D]
    w_k: Array  # [L, H, k, D]
    w_v: Array  # [L, H, k, D]
    w_o: Array  # [L, H, D, k]
    read_in: Array | None = None  # [D, e]
    read_out: Array | None = None  # [D]
    attention_norm_scale: Array | None = None  # [L, D]
    attention_norm_offset: Array | None = None  # [L, D]
    mlp_norm_scale: Array | None = None  # [L, D]
    mlp_norm_offset: Array | None = None  # [L, D]
    mlp_in: Array | None = None  # [L, m, D]
    mlp_in_bias: Array | None = None  # [L, m]
    mlp_out: Array | None = None  # [L, D, m]
    mlp_out_bias: Array | None = None  # [L, D]


def init(key: Array, config: Config, dtype: DTypeLike | None = None) -> Params:
    """Gaussian weights: entries of variance init_scale² / (number of inputs), biases zero.

    W_Q and W_K share a further 1/√k, which makes a score's variance independent of k.
    """
    key_q, key_k, key_v, key_o, key_in, key_out, key_mlp_in, key_mlp_out = jax.random.split(key, 8)
    num_layers, num_heads = config.num_layers, config.num_heads
    k, width = config.key_width, config.stream_width
    present = present_heads(config)[:, :, None, None]

    def draw(key: Array, *shape: int, inputs: float, scale: float = config.init_scale) -> Array:
        return scale * inputs**-0.5 * jax.random.normal(key, shape, dtype)

    def heads(key: Array, inputs: float) -> Array:
        return jnp.where(present, draw(key, num_layers, num_heads, k, width, inputs=inputs), 0)

    writers = jnp.asarray(config.head_counts, float if dtype is None else dtype)
    params = Params(
        w_q=heads(key_q, width * k**0.5),
        w_k=heads(key_k, width * k**0.5),
        w_v=heads(key_v, width),
        w_o=heads(key_o, k).swapaxes(2, 3) / jnp.sqrt(writers)[:, None, None, None],
    )
    rows, m = jnp.zeros((num_layers, width), dtype), config.mlp_width
    if config.width is not None:
        read_in = draw(key_in, width, config.token_width, inputs=config.token_width, scale=1.0)
        read_out = draw(key_out, width, inputs=width, scale=1.0)
        params = params.replace(read_in=read_in, read_out=read_out)
    if config.norm:
        params = params.replace(attention_norm_scale=rows + 1, attention_norm_offset=rows)
    if m is not None:
        params = params.replace(
            mlp_norm_scale=rows + 1 if config.norm else None,
            mlp_norm_offset=rows if config.norm else None,
            mlp_in=draw(key_mlp_in, num_layers, m, width, inputs=width),
            mlp_in_bias=jnp.zeros((num_layers, m), dtype),
            mlp_out=draw(key_mlp_out, num_layers, width, m, inputs=m),
            mlp_out_bias=rows,
        )
    return params


def present_heads(config: Config) -> Array:  # [L, H]
    """Which heads exist: False where a layer has fewer than the most."""
    return jnp.arange(config.num_heads)[None] < jnp.asarray(config.head_counts)[:, None]


def check_params(params: Params, config: Config) -> None:
    """Raise unless every array has the shape that ``init`` gives it."""
    expected = jax.eval_shape(lambda key: init(key, config), jax.random.key(0))
    chex.assert_trees_all_equal_shapes(
        params, expected, custom_message="params do not fit the config; draw them with init"
    )


def check_inputs(params: Params, tokens: Array, config: Config, head_fill: Array | None) -> None:
    """Raise unless the arrays that ``transformer.forward`` is given fit together."""
    chex.assert_rank(
        tokens, 2, custom_message="forward takes one prompt [T, e]; use jax.vmap for a batch"
    )
    num_tokens, e = tokens.shape
    if e != config.token_width:
        raise ValueError(f"tokens are {e} wide, config.token_width is {config.token_width}")
    if config.layout == "merged" and num_tokens < 2:
        raise ValueError(f"tokens has {num_tokens} rows; a query needs a demonstration")
    if config.layout == "interleaved" and num_tokens % 2 == 0:
        raise ValueError(
            f"tokens has {num_tokens} rows; x_1, y_1, ..., x_query are an odd number of them"
        )
    check_params(params, config)
    if head_fill is not None:
        writes = (config.num_layers, config.num_heads, num_tokens, config.stream_width)
        chex.assert_shape(head_fill, writes, custom_message="one write per head and token")


def _at_least(name: str, value: int, minimum: int) -> None:
    if value < minimum:
        raise ValueError(f"{name} is {value}; the nearest valid value is {minimum}")


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; choose one of {choices}")
