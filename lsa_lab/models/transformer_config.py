"""The shape of a transformer."""

import dataclasses
from typing import Literal

import jax
import numpy as np

from lsa_lab.arguments import check_whole, set_counts
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
    ``norm`` stands before attention and before the MLP, ``final_norm`` before the read-out.
    ``biases``: of attention, read-in and read-out; an MLP always has them. ``num_positions``: so
    many learned positions, one of which every token gets before the first layer. ``init_scale``
    multiplies every drawn matrix but the read-in and read-out, whose entries have variance
    1 / (number of inputs).
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
    biases: bool = False
    final_norm: bool = False
    num_positions: int | None = None  # P

    def __post_init__(self) -> None:
        set_counts(self, "num_layers key_width width mlp_width num_positions")
        set_counts(self, "token_width", 2)
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
        if self.final_norm and self.width is None:
            raise ValueError(
                "final_norm is True, but it stands before a read-out, and the model has none; give "
                f"a width, such as {self.token_width}"
            )
        if not 0 < self.init_scale < float("inf"):
            raise ValueError(
                f"init_scale is {self.init_scale}; it must be positive and finite, such as 0.5"
            )

    def _check_heads(self) -> None:
        if isinstance(self.heads, tuple):
            object.__setattr__(self, "heads", tuple(check_whole(h, "heads") for h in self.heads))
        elif isinstance(self.heads, int | np.integer):
            set_counts(self, "heads")
        else:
            raise ValueError(f"heads is {self.heads!r}; give an int, or a tuple with one per layer")
        if isinstance(self.heads, tuple) and len(self.heads) != self.num_layers:
            nearest = (self.heads + (1,) * self.num_layers)[: self.num_layers]
            raise ValueError(
                f"heads is {self.heads}, {len(self.heads)} counts for num_layers = "
                f"{self.num_layers}; the nearest valid value is {nearest}"
            )
        if min(self.head_counts) < 1:
            raise ValueError(f"heads is {min(self.head_counts)}; the nearest valid value is 1")

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


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; choose one of {choices}")
