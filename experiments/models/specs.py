"""What a trained model is, in numbers and words: its task, its architecture, its training. No jax.

A result's config holds the whole Spec of every model that it rests on.
"""

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Literal, get_args

from lsa_lab.harness.run import checks

KERNELS = ("linear", "softmax")  # that most experiments compare
Keys = Literal["demonstrations", "all", "causal"]  # what a token reads: models.blocks.Keys


@dataclass(frozen=True)
class Task:
    """Prompts of linear regression, y = w·x + noise, on covariates or on polynomials of them.

    A fresh w for each prompt has entries N(0, weight_std²), ``sparsity`` of them, or all.
    """

    d: int  # covariates; above degree 1 the variables, and the polynomials are the covariates
    lengths: tuple[int, ...]  # demonstrations of a training prompt: one of these at random
    degree: int = 1  # of the polynomials at most
    sparsity: int | None = None
    noise_std: float = 0.0
    weight_std: float = 1.0
    labels = "real"  # no field: it differs in ``Classes`` alone

    def __post_init__(self):
        for name in ("d", "degree"):
            checks.between(self, name, 1, None)
        checks.each_between(self, "lengths", 1, None)
        if any(max(self.lengths) % n for n in self.lengths):
            raise ValueError(f"lengths = {self.lengths!r}: the longest is a multiple of each")
        if self.sparsity is not None:
            checks.between(self, "sparsity", 1, self.width)
        checks.between(self, "noise_std", 0, None)
        checks.positive(self, "weight_std")

    @property
    def width(self) -> int:
        """How many covariates a prompt shows: the polynomials but for the constant."""
        return math.comb(self.d + self.degree, self.degree) - 1


@dataclass(frozen=True)
class Classes(Task):
    """The same prompts with two classes, ±1: the sign of y.

    The squared error is then four times the Brier score of (1 + ŷ) / 2, the probability of class 1:
    a model that is trained on it learns that probability, E y = 2 p - 1.
    """

    labels: Literal["signs"] = "signs"

    def __post_init__(self):
        super().__post_init__()
        checks.one_of(self, "labels", ("signs",))
        if self.degree > 1:
            raise ValueError(f"degree = {self.degree}: classes are signs of a linear rule, 1")


@dataclass(frozen=True)
class Architecture:
    """Layers of attention heads, each after the other, and what may stand beside them.

    Without ``key_width`` a head has merged weights W_KᵀW_Q and W_OW_V as wide as a token, and the
    layers are linear attention alone. ``variants`` are models with fewer heads, the others gated,
    that one program trains; without them there are no gates.
    """

    depth: int
    heads: int = 1  # H, of every layer
    variants: tuple[tuple[int, ...], ...] = ()  # heads of each layer
    kernel: Literal["linear", "softmax"] = "linear"
    key_width: int | None = None
    width: int | None = None  # D, of the stream after a read-in
    norm: bool = False
    mlp_width: int | None = None
    keys: Keys = "demonstrations"
    scratch: int = 0  # empty slots of a token, to work in: prompts.with_scratch
    own_units: bool = False  # a prompt is read in units of its own: prompts.normalised
    init_scale: float = 0.1  # of merged weights; of factored ones times 1 / √inputs

    def __post_init__(self):
        checks.one_of(self, "kernel", KERNELS)
        checks.one_of(self, "keys", get_args(Keys))
        checks.between(self, "scratch", 0, None)
        checks.positive(self, "init_scale")
        for name in ("depth", "heads", "key_width", "width", "mlp_width"):
            if getattr(self, name) is not None:
                checks.between(self, name, 1, None)
        for row in self.variants:
            if len(row) != self.depth or not 1 <= min(row) <= max(row) <= self.heads:
                raise ValueError(
                    f"variants = {self.variants!r}: each has {self.depth} layers, and every layer "
                    f"1 to {self.heads} heads"
                )
        more = (self.kernel, self.width, self.norm, self.mlp_width, self.keys)
        if self.merged and more != ("linear", None, False, None, "demonstrations"):
            raise ValueError(f"{self}: merged weights have none of that; choose a key_width")

    @property
    def merged(self) -> bool:
        return self.key_width is None

    @property
    def rows(self) -> tuple[tuple[int, ...], ...]:  # A of them
        """The heads of each layer, for every variant, or for the model that has none."""
        return self.variants or ((self.heads,) * self.depth,)

    @property
    def places(self) -> dict[str, int]:
        """The rows that experiments compare, by name: one head in each layer, all heads in the
        first layer alone, in all later ones alone, and the last row."""
        single, many = (1,) * (self.depth - 1), (self.heads,) * (self.depth - 1)
        wanted = {"single": (1, *single), "first": (self.heads, *single), "later": (1, *many)}
        wanted["full"] = self.rows[-1]
        return {name: self.rows.index(row) for name, row in wanted.items() if row in self.rows}


@dataclass(frozen=True)
class Recipe:
    """Adam on fresh prompts; the step size rises in a line, then falls as a cosine."""

    steps: int
    batch: int
    learning_rate: float  # the largest
    seeds: int  # of each row of heads
    seed: int = 0  # from which the others come
    clip: float = 1.0  # of the gradient's norm
    beta_2: float = 0.999  # Adam's memory of squared gradients
    rise: int = 20  # the step size rises for steps // rise
    fall: float = 100.0  # and ends at learning_rate / fall
    checkpoints: int = 1  # equal parts of the training, after each of which weights are kept

    def __post_init__(self):
        for name in ("steps", "batch", "seeds", "rise"):
            checks.between(self, name, 1, None)
        for name in ("learning_rate", "clip", "fall"):
            checks.positive(self, name)
        checks.between(self, "beta_2", 0, 1)
        if self.checkpoints:
            checks.divides(self, "checkpoints", "steps")
        checks.seed(self, "seed")


@dataclass(frozen=True)
class Spec:
    """A trained model: A S runs, every seed of every row of heads."""

    task: Task
    architecture: Architecture
    training: Recipe

    @property
    def token_width(self) -> int:
        """e: covariates, scratch, label."""
        return self.task.width + self.architecture.scratch + 1


def restored(saved: SimpleNamespace) -> Spec:
    """The Spec that a result was computed from, out of ``results.config_of`` its Dataset; a Spec
    itself is restored to an equal one."""

    def frozen(value):
        return tuple(map(frozen, value)) if isinstance(value, list) else value

    task = Classes if "labels" in vars(saved.task) else Task
    groups = {"task": task, "architecture": Architecture, "training": Recipe}
    fields = {group: vars(getattr(saved, group)).items() for group in groups}
    return Spec(
        **{
            group: kind(**{name: frozen(value) for name, value in fields[group]})
            for group, kind in groups.items()
        }
    )
