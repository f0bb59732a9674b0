"""The sizes of `width_and_ratio`, and the models that follow from them."""

from dataclasses import dataclass
from typing import Annotated

from experiments.models.named import Named
from experiments.models.regression import dense
from lsa_lab.harness.run.bounds import INCREASING, POSITIVE, Bounded, Seed, at_least, between

# What is wide: the token's empty slots, the covariates, or the stream after a read-in.
UNTRAINED = ("linear", "linear, covariates", "softmax")
TRAINED = "trained linear"

Count, Several = Annotated[int, at_least(1)], Annotated[int, at_least(2)]
Depth = Annotated[int, between(2, 8)]


@dataclass(frozen=True)
class Config(Bounded):
    """The flows of two demonstrations, layer by layer, in stacks of growing width.

    Random stacks have one gain at all widths: what a layer writes over the size of a token.
    Trained ones have empty slots to work in, and prompts are read in units of their own.
    """

    d: Count = 5  # covariates, where these are not what is wide
    # Of tokens, or of the stream; the first is d + 1.
    widths: Annotated[tuple[int, ...], INCREASING] = (6, 12, 24, 48)
    depth: Depth = 4  # layers of a random stack
    gain: Annotated[float, POSITIVE] = 1.0  # of random stacks
    runs: Several = 32  # each with its own random weights
    pairs: Several = 64  # of demonstrations, for each run
    # Trained stacks.
    trained_d: Count = 3  # covariates of trained stacks
    # Empty slots beside d + 1 others.
    scratch: Annotated[tuple[int, ...], at_least(0), INCREASING] = (0, 4, 12)
    shots: Several = 12  # demonstrations in a prompt
    trained_depth: Depth = 3  # layers of trained stacks
    noise_std: Annotated[float, at_least(0)] = 0.5  # of the labels in training
    steps: Count = 5000  # of the training
    seeds: Several = 9  # trainings at each width
    trained_pairs: Several = 256  # two of the demonstrations of as many prompts, for each seed
    seed: Seed = 0

    def __post_init__(self):
        super().__post_init__()
        for name in ("widths", "scratch"):
            values = getattr(self, name)
            if len(values) < 2:
                raise ValueError(f"{name} = {values!r}: choose two or more increasing ones")
        if self.widths[0] <= self.d:
            raise ValueError(f"widths = {self.widths!r}: a token has d + 1 = {self.d + 1} slots")

    @property
    def models(self) -> Named:
        """Trained by the recipe that does not explode (experiments/models/named.py)."""
        recipe = dict(batch=64, learning_rate=0.005, clip=0.1, beta_2=0.99)
        recipe |= dict(steps=self.steps, seeds=self.seeds, seed=self.seed)
        sizes = (self.trained_d, self.shots, self.trained_depth)
        rest = dict(noise_std=self.noise_std, own_units=True, training=recipe)
        specs = (dense("linear", *sizes, scratch=slots, **rest) for slots in self.scratch)
        return tuple((f"width {spec.token_width}", spec) for spec in specs)


TIERS = {
    "smoke": Config(
        d=2,
        widths=(3, 4),
        depth=2,
        runs=2,
        pairs=8,
        trained_d=2,
        scratch=(0, 1),
        shots=4,
        trained_depth=2,
        steps=4,
        seeds=2,
        trained_pairs=8,
    ),
    "laptop": Config(),
    "paper": Config(runs=256, seeds=36, seed=1),
}
