"""What a trained model is, in numbers and words: its task, its architecture, its training. No jax.

The whole Spec of every model that a result rests on is written into that result.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Task:
    """Prompts of linear regression, y = w·x + noise, or of the two classes that are its signs.

    A fresh w for each prompt has entries N(0, weight_std²), ``sparsity`` of them, or all. With
    labels ±1 the squared error is four times the Brier score of (1 + ŷ) / 2: a model trained on it
    learns the probability of class 1.
    """

    d: int
    lengths: tuple[int, ...]  # demonstrations of a training prompt: one of these at random
    sparsity: int | None = None
    noise_std: float = 0.0
    weight_std: float = 1.0
    labels: Literal["real", "signs"] = "real"

    def __post_init__(self):
        lengths = self.lengths
        if not lengths or min(lengths) < 1 or any(max(lengths) % n for n in lengths):
            raise ValueError(f"lengths = {lengths}: the longest is a multiple of each")


@dataclass(frozen=True)
class Architecture:
    """Layers of attention heads, one after the other, with or without norms and MLPs.

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
    keys: Literal["demonstrations", "all", "causal"] = "demonstrations"  # what a token reads
    padding_slots: int = 0  # empty coordinates of a token, as memory: prompts.pad_covariates
    normalise_prompt: bool = False  # a prompt is read in units of its own: prompts.normalise
    init_scale: float = 0.1  # of merged weights; of factored ones times 1 / √inputs

    def __post_init__(self):
        _check_counts(self, "depth", "heads", "key_width", "width", "mlp_width")
        for row in self.variants:
            if len(row) != self.depth or not 1 <= min(row) <= max(row) <= self.heads:
                need = f"each has {self.depth} layers, and every layer 1 to {self.heads} heads"
                raise ValueError(f"variants = {self.variants}: {need}")
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


@dataclass(frozen=True)
class Recipe:
    """Adam on fresh prompts; the step size rises linearly, then falls as a cosine."""

    steps: int
    batch: int
    learning_rate: float  # the largest
    seeds: int  # of each row of heads
    seed: int = 0  # from which the others come
    clip: float = 1.0  # of the gradient's norm
    beta_2: float = 0.999  # Adam's memory of squared gradients
    checkpoints: int = 1  # equal parts of the training, after each of which weights are kept

    def __post_init__(self):
        _check_counts(self, "steps", "batch", "seeds")
        if self.checkpoints and self.steps % self.checkpoints:
            raise ValueError(f"checkpoints = {self.checkpoints}: it divides steps = {self.steps}")


@dataclass(frozen=True)
class Spec:
    """A trained model: A S runs, every seed of every row of heads."""

    task: Task
    architecture: Architecture
    training: Recipe

    @property
    def token_width(self) -> int:
        """e: covariates, padding, label."""
        return self.task.d + self.architecture.padding_slots + 1

    def load(self, label: str, progress: Any = None) -> Any:
        """Return the Runs of this Spec: committed, cached or trained now."""
        from experiments.models import train

        return train.load(self, label, progress)


def dense_spec(
    kernel: str,
    d: int,
    n: int,
    depth: int,
    *,
    heads: int = 1,
    key_width: int | None = None,
    noise_std: float = 0.0,
    training: dict,  # fields of Recipe
    **shape,  # fields of Architecture
) -> Spec:
    """Return the Spec of a model trained on prompts of n demonstrations with w ~ N(0, I)."""
    scale = 0.1 if key_width is None else 1.0
    shape = dict(kernel=kernel, key_width=key_width, init_scale=scale) | shape
    task = Task(d, (n,), noise_std=noise_std)
    return Spec(task, Architecture(depth, heads, **shape), Recipe(**training))


def plain(spec: Spec) -> dict[str, Any]:
    """Return a Spec as JSON gives it back: dictionaries and lists."""
    return json.loads(json.dumps(asdict(spec)))


def _check_counts(config: Any, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if value is not None and value < 1:
            raise ValueError(f"{name} = {value}: it is a whole number of at least 1")
