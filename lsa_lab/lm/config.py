"""The shape of a decoder, which tells families from Llama to GPT-NeoX apart; fields of files."""

import dataclasses
import math
import numbers
import reprlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax

from lsa_lab.arguments import check_choice, check_positive, set_counts

Norm = Literal["rms", "layer"]
Activation = Literal["silu", "gelu", "gelu_tanh"]

REQUIRED = object()  # the default of a field that a file must have
_WORDS = {bool: "true or false", str: "text", dict: "a group of fields", list: "a list"}
_WORDS |= {int: "a whole number of at least 1", float: "a number above 0"}


class Field(NamedTuple):
    """The allowed values of a field of config.json or of a GGUF's metadata.

    A number is above 0 and at most ``most``; a float may be written as a whole number. ``default``
    is the value of a missing field. Where it is None, null is allowed and means the same.
    """

    kind: type  # bool, int, float, str, dict, list or that of None
    default: Any = REQUIRED
    most: float = sys.float_info.max
    only: tuple[Any, ...] = ()  # the values that our decoder computes, where there are others

    def read(self, fields: Mapping[str, Any], key: str, source: Path | str) -> Any:
        """Return the value of a field; raise ValueError with the value and the allowed ones."""
        value = fields.get(key, self.default)
        if value is None and self.default is None:
            return None
        if value is REQUIRED or (value is None and self.default is REQUIRED):
            raise ValueError(f"{source} does not say {key}; {self._describe()}")
        if not self._fits(value):
            implied = "" if key in fields else ", its default"
            raise ValueError(
                f"{source}: {key} is {reprlib.repr(value)}{implied}; {self._describe()}"
            )
        return value

    def _fits(self, value: Any) -> bool:
        if self.kind not in (int, float):
            return isinstance(value, self.kind) and (not self.only or value in self.only)
        kind: Any = numbers.Integral if self.kind is int else numbers.Real
        if isinstance(value, bool) or not isinstance(value, kind):
            return False
        number = value if isinstance(value, int) else float(value)
        if not 0 <= number <= self.most:
            return False
        if self.only:
            return any(math.isclose(number, only, rel_tol=1e-6) for only in self.only)
        return number > 0

    def _describe(self) -> str:
        if self.only:
            return f"supported: {', '.join(map(repr, self.only))}"
        most = f" and at most {self.most}" if self.most < sys.float_info.max else ""
        return f"expected {_WORDS[self.kind]}{most}"


def allow_only(value: Any) -> Field:
    """Return a field that may be missing and, if present, must have this value."""
    return Field(type(value), None, only=(value,))


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
        heads, groups, rotary = self.num_heads, self.num_groups, self.rotary_width
        even = rotary is None or (rotary % 2 == 0 and 0 < rotary <= self.key_width)
        table = {
            f"rotary_scaling is {self.rotary_scaling}; expected a factor and a length above 0, and "
            "low below high": factor > 0 and original > 0 and low < high,
            f"num_groups is {groups}, which does not divide num_heads = {heads}": (
                heads % groups == 0
            ),
            f"rotary_width is {rotary}; expected an even number up to key_width = "
            f"{self.key_width}": even,
        }
        for message, holds in table.items():
            if not holds:
                raise ValueError(message)
