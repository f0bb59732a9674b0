"""The shape of a decoder: what tells families from Llama to GPT-NeoX apart."""

import dataclasses
import math
from typing import Literal, get_args

import jax

from lsa_lab.arguments import set_counts

Norm = Literal["rms", "layer"]
Activation = Literal["silu", "gelu", "gelu_tanh"]


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Config:
    """What a decoder is made of. jit and vmap take it as a constant, wherever it stands.

    ``num_groups``: heads h·G/H, ... of one group share keys and values (G = H: each has its own).
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
        for name, kinds in {"norm": get_args(Norm), "activation": get_args(Activation)}.items():
            if getattr(self, name) not in kinds:
                listed = ", ".join(kinds)
                raise ValueError(f"{name} is {getattr(self, name)!r}; supported are {listed}")
        for name in ("norm_epsilon", "rotary_base"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; expected a number above 0")
        if self.rotary_scaling is not None:
            factor, low, high, original = self.rotary_scaling
            if not (factor > 0 and original > 0 and low < high):
                raise ValueError(
                    f"rotary_scaling is {self.rotary_scaling}; expected a factor and a length "
                    "above 0, and low below high"
                )
        if self.num_heads % self.num_groups:
            raise ValueError(
                f"num_groups is {self.num_groups}, which does not divide num_heads = "
                f"{self.num_heads}: every group has equally many heads"
            )
        rotary = self.rotary_width
        if rotary is not None and not (rotary % 2 == 0 and 0 < rotary <= self.key_width):
            raise ValueError(
                f"rotary_width is {rotary}; expected an even number up to key_width = "
                f"{self.key_width}"
            )
