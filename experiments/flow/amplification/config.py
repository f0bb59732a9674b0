"""The sizes of `amplification`, and the models that follow from them."""

from dataclasses import dataclass
from typing import Annotated

from experiments.models.named import MODELS, Named, tiny
from experiments.models.specs import dense_spec
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import INCREASING, POSITIVE, Bounded, Seed, at_least, between

KINDS = ("linear", "softmax", "norm", "MLP")  # "norm" has softmax, "MLP" a norm and softmax
TRAINED = {  # kind: the shared model, of those that are near ridge regression
    "linear": "linear attention",
    "softmax": "softmax attention",
    "MLP": "transformer",
}

Count, Several = Annotated[int, at_least(1)], Annotated[int, at_least(2)]
Depth = Annotated[int, between(2, 8)]
Widths = Annotated[tuple[int, ...], at_least(0), INCREASING]


@dataclass(frozen=True)
class Width(Bounded):
    """The same in trained stacks that have empty slots to work in, and read prompts in units of
    their own."""

    trained_d: Count = 3  # covariates
    scratch: Widths = (0, 4, 12)  # empty slots beside d + 1 others
    shots: Several = 12  # demonstrations in a prompt
    trained_depth: Depth = 3  # layers
    noise_std: Annotated[float, at_least(0)] = 0.5  # of the labels in training
    steps: Count = 5000  # of the training
    seeds: Several = 9  # trainings at each width
    trained_pairs: Several = 256  # two of the demonstrations of as many prompts, for each seed
    seed: Seed = 0

    def __post_init__(self):
        super().__post_init__()
        if len(self.scratch) < 2:
            raise ValueError(f"scratch = {self.scratch!r}: choose two or more")

    @property
    def models(self) -> Named:
        """Trained by the recipe that does not explode (experiments/models/named.py)."""
        recipe = dict(batch=64, learning_rate=0.005, clip=0.1, beta_2=0.99)
        recipe |= dict(steps=self.steps, seeds=self.seeds, seed=self.seed)
        sizes = (self.trained_d, self.shots, self.trained_depth)
        rest = dict(noise_std=self.noise_std, normalise_prompt=True, training=recipe)
        specs = (
            dense_spec("linear", *sizes, padding_slots=slots, **rest) for slots in self.scratch
        )
        return tuple((f"width {spec.token_width}", spec) for spec in specs)


@dataclass(frozen=True)
class Config(Bounded):
    """The flows of two demonstrations, layer by layer, in random and in trained stacks.

    The gain of a random stack is the size of what a layer writes, over that of a token: matrices
    grow like √gain, and so do the inputs of a softmax, whose scores then grow like the gain.
    """

    trained: Named  # trained stacks, by kind
    kinds: tuple[str, ...] = KINDS  # some of them, in this order, the first among them
    d: Annotated[int, between(1, 64)] = 5
    depth: Depth = 6
    gains: Annotated[tuple[float, ...], POSITIVE, INCREASING] = (0.1, 1.0, 3.0)  # of linear stacks
    gain: float = 1.0  # one of them: of softmax stacks
    skip: Annotated[float, POSITIVE] = 0.5  # the weight of a weak residual connection, otherwise 1
    mlp_width: Count = 24  # of the hidden layer
    runs: Several = 32  # each with its own weights
    pairs: Several = 64  # of demonstrations, for each run
    # Trained stacks.
    trained_runs: Several = 9  # trainings of each kind
    trained_pairs: Several = 128  # two of the demonstrations of as many prompts, for each run
    seed: Seed = 1
    width: Width = Width()  # trained stacks of other widths

    def __post_init__(self):
        super().__post_init__()
        best = tuple(kind for kind in KINDS if kind in self.kinds or kind == "linear")
        if tuple(self.kinds) != best:
            raise ValueError(f"kinds = {self.kinds!r}: choose some of {KINDS}; nearest {best}")
        checks.one_of(self, "gain", self.gains)
        checks.between(self, "trained_runs", 2, min(m.training.seeds for _, m in self.trained))

    @property
    def models(self) -> Named:
        return self.trained + self.width.models


def _shared(*kinds: str, small: bool = False) -> Named:
    return tuple((kind, (tiny if small else MODELS.get)(TRAINED[kind])) for kind in kinds)


_TINY_WIDE = dict(trained_d=2, scratch=(0, 1), shots=4, trained_depth=2, steps=4, seeds=2)
TIERS = {
    "smoke": Config(
        _shared("linear", small=True),
        kinds=("linear", "norm"),
        gains=(0.1, 1.0),
        mlp_width=4,
        trained_runs=2,
        d=2,
        depth=2,
        runs=2,
        pairs=8,
        trained_pairs=8,
        width=Width(**_TINY_WIDE, trained_pairs=8),
    ),
    "laptop": Config(_shared(*TRAINED)),
}
