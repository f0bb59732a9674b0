"""The shape of a decoder, which tells families from Llama to GPT-NeoX apart; fields of files."""

import dataclasses
import math
import reprlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax

from lsa_lab.arguments import check_choice, check_positive, set_counts

Norm = Literal["rms", "layer"]
Activation = Literal["silu", "gelu", "gelu_tanh"]

_REQUIRED = object()  # the default of a field that a file must have
_WORDS = {bool: "true or false", str: "text", dict: "a group of fields", list: "a list"}
_WORDS |= {int: "a whole number of at least 1", float: "a number above 0"}


class Fields(NamedTuple):
    """The fields of a config.json or of a GGUF's metadata; errors name the source and the field."""

    values: Mapping[str, Any]
    source: Path | str

    def read(
        self,
        key: str,
        kind: type,  # a number is above 0, and a float may be written as a whole number
        default: Any = _REQUIRED,
        *,
        most: float = sys.float_info.max,
        only: tuple[str, ...] = (),
    ) -> Any:
        """Return a field. Where the default is None, null is allowed and means the same."""
        value = self.values.get(key, default)
        if value is None and default is None:
            return None
        if value is _REQUIRED or (value is None and default is _REQUIRED):
            raise ValueError(f"{self.source} does not say {key}; expected {_WORDS[kind]}")
        if kind in (int, float):
            kinds = int if kind is int else (int, float)
            fits = isinstance(value, kinds) and value is not True and 0 < value <= most
        else:
            fits = isinstance(value, kind) and (not only or value in only)
        if not fits:
            expected = f"supported: {', '.join(only)}" if only else f"expected {_WORDS[kind]}"
            raise ValueError(f"{self.source}: {key} is {reprlib.repr(value)}; {expected}")
        return value

    def check(self, key: str, only: Any, default: Any = None) -> None:
        """Raise unless a field is missing, null or has the one value that is computed here."""
        value = self.values.get(key, default)
        are_floats, show = isinstance(only, float) and isinstance(value, float), reprlib.repr
        close = are_floats and math.isclose(value, only, rel_tol=1e-6)
        if value is not None and value != only and not close:
            raise ValueError(f"{self.source}: {key} is {show(value)}; supported: {show(only)}")

    def make_config(self, **parts: Any) -> "Config":
        """Return the Config, or say that this source describes none."""
        try:
            return Config(**parts)
        except ValueError as error:
            raise ValueError(f"{self.source}: {error}") from None


# The fields of a Config that a family fixes.
FAMILIES: dict[str, dict[str, Any]] = {
    **{name: {"norm": "rms"} for name in ("llama", "mistral")},
    "qwen2": {"norm": "rms", "query_biases": True},
    "qwen3": {"norm": "rms", "key_norm": True},
    "gemma": {"norm": "rms", "scaled_embedding": True},
    "gpt2": {"learned_positions": True, "query_biases": True, "write_biases": True},
    "gptj": {"parallel": True, "unembedding_bias": True},
    "gpt_neox": {},
}
for _family in ("gpt2", "gptj", "gpt_neox"):
    FAMILIES[_family] |= {"norm": "layer", "gated": False, "mlp_biases": True}


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Config:
    """The sizes and the parts of a decoder. jit and vmap take it as a constant.

    ``num_groups``: heads h·G/H, ... of one group share keys and values (G = H: none are shared).
    ``rotary_width``: so many coordinates of every query and key are turned by the token's place,
    in pairs (i, i + r/2); None where places are learned, or where there are none at all.
    ``rotary_scaling``, Llama 3's: pairs that turn less than ``low`` times in ``original`` tokens
    turn ``factor`` times slower, those above ``high`` times as they did, between them in between.
    ``parallel``: MLP and attention read the same stream; otherwise the MLP reads what attention
    has left. ``tied``: the unembedding is the embedding; ``scaled_embedding``: the stream begins at
    √D times the embedding, and words are scored by it as it is.
    """

    num_layers: int  # L
    num_heads: int  # H
    num_groups: int  # G
    key_width: int  # k
    width: int  # D
    mlp_width: int  # m
    vocabulary: int  # V
    context: int  # the most tokens of a prompt
    norm: Norm = "rms"
    norm_epsilon: float = 1e-5
    activation: Activation = "silu"
    gated: bool = True
    parallel: bool = False
    rotary_width: int | None = None
    rotary_base: float = 10_000.0
    rotary_scaling: tuple[float, float, float, float] | None = None  # factor, low, high, original
    learned_positions: bool = False
    tied: bool = False
    scaled_embedding: bool = False
    query_biases: bool = False  # of queries, keys and values
    key_norm: bool = False  # of every query and key, before they are turned
    write_biases: bool = False  # of attention's output
    mlp_biases: bool = False
    unembedding_bias: bool = False

    def __post_init__(self) -> None:
        set_counts(self, "num_layers num_heads num_groups key_width width mlp_width")
        set_counts(self, "vocabulary context rotary_width")
        check_choice(self.norm, "norm", Norm)
        check_choice(self.activation, "activation", Activation)
        check_positive(self.norm_epsilon, "norm_epsilon")
        check_positive(self.rotary_base, "rotary_base")
        factor, low, high, original = self.rotary_scaling or (1, 0, 1, 1)
        if not (factor > 0 and original > 0 and low < high):
            raise ValueError(
                f"rotary_scaling is {self.rotary_scaling}; expected a factor and a length above 0, "
                "and low below high"
            )
        if self.num_heads % self.num_groups:
            raise ValueError(
                f"num_groups is {self.num_groups}, which does not divide num_heads = "
                f"{self.num_heads}"
            )
        if self.rotary_width not in (None, *range(2, self.key_width + 1, 2)):
            raise ValueError(
                f"rotary_width is {self.rotary_width}; expected an even number up to key_width = "
                f"{self.key_width}"
            )
