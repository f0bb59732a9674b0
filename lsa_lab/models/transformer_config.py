"""The config of a transformer."""

import dataclasses
from typing import Literal

import jax

from lsa_lab.arguments import check_at_least, check_choice, check_positive, set_counts
from lsa_lab.models.blocks import Kernel, Keys


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Config:
    """The sizes and parts of a transformer; jit and vmap treat it as a constant.

    Args:
        heads: one count, or one for each layer such as (8, 1, 1).
        width: of the stream after a read-in; None for no read-in, the stream is the token itself.
        keys, normalise: as in ``linear_attention.forward``; ``normalise`` of the linear kernel.
        norm, final_norm: layer norms before attention and MLP, and before the read-out.
        layout: "merged", or "interleaved" x_1, y_1, ..., x_query, where keys are "causal", token t
            reads tokens 1..t and ``normalise`` divides by t, so that the prediction at each x is
            that of its prefix alone.
        init_scale: factor of every drawn matrix but read-in and read-out, whose entries have
            variance 1 / (number of inputs).
        biases: of attention, read-in and read-out; an MLP always has them.
        num_positions: the number of learned positions, added to the tokens.

    Raises:
        ValueError: a count, a name or a combination is impossible.
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
        check_choice(self.keys, "keys", Keys)
        check_choice(self.kernel, "kernel", Kernel)
        check_choice(self.layout, "layout", ("merged", "interleaved"))
        check_positive(self.init_scale, "init_scale")
        if self.layout == "interleaved" and self.keys != "causal":
            raise ValueError(
                f"keys is {self.keys!r} in the interleaved layout, where x_i must not read y_i; "
                "the nearest valid value is keys='causal'"
            )
        if self.kernel == "softmax" and not self.normalise:
            raise ValueError(
                "normalise is False, but softmax weights always sum to one; "
                "the nearest valid value is normalise=True (or kernel='linear')"
            )
        if self.final_norm and self.width is None:
            raise ValueError(
                "final_norm is True, and the model has no read-out after it; give a width, such as "
                f"{self.token_width}"
            )

    def _check_heads(self) -> None:
        if self.heads is None or isinstance(self.heads, list):
            raise ValueError(f"heads is {self.heads}; give an int, or a tuple with one per layer")
        counts = tuple(check_at_least(count, "heads") for count in self.head_counts)
        object.__setattr__(self, "heads", counts if isinstance(self.heads, tuple) else counts[0])
        if isinstance(self.heads, tuple) and len(self.heads) != self.num_layers:
            nearest = (self.heads + (1,) * self.num_layers)[: self.num_layers]
            raise ValueError(
                f"heads is {self.heads}, {len(self.heads)} counts for num_layers = "
                f"{self.num_layers}; the nearest valid value is {nearest}"
            )

    @property
    def head_counts(self) -> tuple[int, ...]:  # L of them
        """The number of heads in each layer."""
        return self.heads if isinstance(self.heads, tuple) else (self.heads,) * self.num_layers

    @property
    def num_heads(self) -> int:
        """H, the most heads that a layer has."""
        return max(self.head_counts)

    @property
    def stream_width(self) -> int:
        """D, the width of the residual stream."""
        return self.token_width if self.width is None else self.width
