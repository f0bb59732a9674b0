"""The config and the weights of a recurrent model; ``recurrent`` has the formulas."""

import dataclasses
from typing import Any, Literal

import flax.struct
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike

from lsa_lab.arguments import check_choice, check_positive, set_counts

Kind = Literal[
    "additive", "retention", "gla", "ssd", "lms", "longhorn", "delta", "gated_delta",
    "gdn2", "delta_product", "ttt", "rwkv7", "mesa",
]  # fmt: skip
_GATED = ("retention", "gla", "ssd", "gated_delta", "gdn2", "rwkv7", "mesa")
_BY_CHANNEL = ("gdn2", "rwkv7")  # a gate and a step for each channel of the key
_STEPLESS = ("additive", "retention", "gla")


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Config:
    """The kind and the sizes of a recurrent model; width, norm, mlp_width as in ``transformer``.

    Args:
        inner: keys and values a token (delta_product), or steps a token (ttt).
        diagonal: a gate for each channel of the key (gla, gated_delta).
        largest_step: β is this times a sigmoid; up to 2 the eigenvalues of a delta rule stay in
            [-1, 1].
        normalise: divide a read by the number of tokens written (additive).
        solve: of mesa, Carlson's updates, whose gates forget the penalty too, or Cholesky's factors
            for every token, which keep it (MesaNet's).
    """

    kind: Kind
    token_width: int  # e
    num_layers: int = 1  # L
    num_heads: int = 1  # H
    key_width: int = 8  # k
    value_width: int | None = None  # v, by default k
    width: int | None = None  # D
    norm: bool = False
    mlp_width: int | None = None  # m
    layout: Literal["merged", "bound"] = "merged"
    inner: int = 1
    diagonal: bool = False
    largest_step: float = 1.0
    normalise: bool = True
    solve: Literal["recursive", "cholesky"] = "recursive"
    init_scale: float = 0.5

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", Kind)
        check_choice(self.layout, "layout", ("merged", "bound"))
        check_choice(self.solve, "solve", ("recursive", "cholesky"))
        check_positive(self.init_scale, "init_scale")
        set_counts(self, "token_width num_layers num_heads key_width value_width")
        set_counts(self, "width mlp_width inner")
        if self.inner > 1 and self.kind not in ("delta_product", "ttt"):
            raise ValueError(f"inner is {self.inner}; {self.kind} takes one step a token")
        if not 0 < self.largest_step <= 2:
            raise ValueError(f"largest_step is {self.largest_step}: steps lie in (0, 2]")
        if self.diagonal and self.kind not in ("gla", "gated_delta"):
            raise ValueError(f"diagonal is True; {self.kind} has no gate to be diagonal")

    @property
    def stream_width(self) -> int:
        """D, the width of the residual stream."""
        return self.token_width if self.width is None else self.width

    @property
    def values(self) -> int:
        """v, the width of a value."""
        return self.value_width or self.key_width

    @property
    def keys_a_token(self) -> int:
        """J, the number of keys and values that a token writes."""
        return self.inner if self.kind == "delta_product" else 1

    @property
    def gate_width(self) -> int:
        """The number of gates a token."""
        return self.key_width if self.diagonal or self.kind in _BY_CHANNEL else 1

    @property
    def step_width(self) -> int:
        """The number of steps a token."""
        return self.key_width if self.kind in _BY_CHANNEL else self.keys_a_token


class Params(flax.struct.PyTreeNode):
    """Weights by layer and head; a part that the Config does not have is None."""

    w_q: Array  # [L, H, k, D]
    w_k: Array  # [L, H, J k, D]
    w_v: Array  # [L, H, J v, D]
    w_o: Array  # [L, H, D, v]
    w_step: Array | None = None  # [L, H, j, D]  β = largest_step sigmoid(w_step u + b_step), or
    b_step: Array | None = None  # [L, H, j]     softplus of it (ssd, lms, longhorn), or it (ttt)
    w_gate: Array | None = None  # [L, H, g, D]  g = sigmoid(w_gate u + b_gate), or
    b_gate: Array | None = None  # [L, H, g]     exp(-e^b_gate β) (ssd)
    w_write: Array | None = None  # [L, H, v, D]  gdn2: v gets the factor
    b_write: Array | None = None  # [L, H, v]     sigmoid(w_write u + b_write)
    log_penalty: Array | None = None  # [L, H]  log λ of mesa
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
    """Draw Gaussian weights of variance init_scale² / (number of inputs).

    Gates start near .95, steps at half of the largest, λ at 1.
    """
    keys = iter(jax.random.split(key, 11 if config.kind == "gdn2" else 10))
    L, H, D, J = config.num_layers, config.num_heads, config.stream_width, config.keys_a_token

    def draw(*shape: int, inputs: int, scale: float = float(config.init_scale)) -> Array:
        return scale * inputs**-0.5 * jax.random.normal(next(keys), shape, dtype)

    shapes = {"w_q": config.key_width, "w_k": J * config.key_width, "w_v": J * config.values}
    leaves: dict[str, Any] = {name: draw(L, H, size, D, inputs=D) for name, size in shapes.items()}
    leaves["w_o"] = draw(L, H, D, config.values, inputs=config.values * H)
    if config.kind not in _STEPLESS:
        leaves["w_step"] = draw(L, H, config.step_width, D, inputs=D)
        leaves["b_step"] = jnp.zeros((L, H, config.step_width), dtype)
    if config.kind in _GATED:
        leaves["b_gate"] = jnp.full((L, H, config.gate_width), 3.0, dtype)
        if config.kind not in ("retention", "ssd"):
            leaves["w_gate"] = draw(L, H, config.gate_width, D, inputs=D)
    if config.kind == "ssd":
        leaves["b_gate"] = jnp.full((L, H, 1), -3.0, dtype)
    if config.kind == "gdn2":
        leaves["w_write"] = draw(L, H, config.values, D, inputs=D)
        leaves["b_write"] = jnp.zeros((L, H, config.values), dtype)
    if config.kind == "mesa":
        leaves["log_penalty"] = jnp.zeros((L, H), dtype)
    rows, m = jnp.zeros((L, D), dtype), config.mlp_width
    if config.width is not None:
        leaves["read_in"] = draw(D, config.token_width, inputs=config.token_width, scale=1.0)
        leaves["read_out"] = draw(D, inputs=D, scale=1.0)
    if config.norm:
        leaves |= dict(attention_norm_scale=rows + 1, attention_norm_offset=rows)
    if m is not None:
        leaves["mlp_in"], leaves["mlp_out"] = draw(L, m, D, inputs=D), draw(L, D, m, inputs=m)
        leaves |= dict(mlp_in_bias=jnp.zeros((L, m), dtype), mlp_out_bias=rows)
        leaves |= dict(mlp_norm_scale=rows + 1, mlp_norm_offset=rows) if config.norm else {}
    return Params(**leaves)
