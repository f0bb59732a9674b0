"""The sizes and the statements of `width_and_ratio`."""

from dataclasses import dataclass

from experiments.flow.width_and_ratio.statements import statements as statements
from experiments.models.regression import dense
from experiments.models.specs import Spec
from lsa_lab.harness import checks

# What is wide: the token's empty slots, the covariates, or the stream after a read-in.
UNTRAINED = ("linear", "linear, covariates", "softmax")
TRAINED = "trained linear"


@dataclass(frozen=True)
class Config:
    """The flows of two demonstrations, layer by layer, in stacks of growing width.

    Random stacks have one gain at all widths: what a layer writes over the size of a token.
    Trained ones have empty slots to work in, and prompts are read in units of their own.
    """

    d: int = 5  # covariates, where these are not what is wide
    widths: tuple[int, ...] = (6, 12, 24, 48)  # of tokens, or of the stream; the first is d + 1
    depth: int = 4  # layers of a random stack
    gain: float = 1.0  # of random stacks
    runs: int = 32  # each with its own random weights
    pairs: int = 64  # of demonstrations, for each run
    # Trained stacks.
    trained_d: int = 3  # covariates of trained stacks
    scratch: tuple[int, ...] = (0, 4, 12)  # empty slots beside d + 1 others
    shots: int = 12  # demonstrations in a prompt
    trained_depth: int = 3  # layers of trained stacks
    noise_std: float = 0.5  # of the labels in training
    steps: int = 5000  # of the training
    seeds: int = 9  # trainings at each width
    trained_pairs: int = 256  # two of the demonstrations of as many prompts, for each seed
    seed: int = 0
    # Criteria.
    clear: float = 0.1  # a lead that changes by this with a doubling of the width is wider
    factor: float = 1.1  # a growth of the disparity that is larger by this is more
    same: float = 0.1  # a growth whose logarithm changes by less with a doubling is the same
    trained: float = 1.5  # the excess risk over that of ridge regression, at most

    def __post_init__(self):
        checks.kinds(self)
        for name in ("widths", "scratch"):
            grid = getattr(self, name)
            if len(grid) < 2 or list(grid) != sorted(set(grid)):
                raise ValueError(f"{name} = {grid!r}: choose two or more increasing ones")
        if self.widths[0] <= self.d:
            raise ValueError(f"widths = {self.widths!r}: a token has d + 1 = {self.d + 1} slots")
        for name in ("d", "trained_d", "steps"):
            checks.between(self, name, 1, None)
        for name in ("depth", "trained_depth"):
            checks.between(self, name, 2, 8)
        checks.each_between(self, "scratch", 0, None)
        for name in ("runs", "pairs", "seeds", "trained_pairs", "shots"):
            checks.between(self, name, 2, None)
        checks.between(self, "noise_std", 0, None)
        checks.between(self, "factor", 1.0, None)
        for name in ("gain", "clear", "trained"):
            checks.positive(self, name)
        checks.between(self, "same", 0, 100)
        checks.seed(self, "seed")

    @property
    def specs(self) -> dict[int, Spec]:  # {width: Spec}
        """Trained by the recipe that does not explode (experiments/models/named.py)."""
        recipe = dict(batch=64, learning_rate=0.005, clip=0.1, beta_2=0.99)
        recipe |= dict(steps=self.steps, seeds=self.seeds, seed=self.seed)
        sizes = (self.trained_d, self.shots, self.trained_depth)
        rest = dict(noise_std=self.noise_std, own_units=True, training=recipe)
        return {
            self.trained_d + 1 + slots: dense("linear", *sizes, scratch=slots, **rest)
            for slots in self.scratch
        }


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
    "gpu": Config(
        widths=(6, 12, 24, 48, 96, 192),
        runs=64,
        pairs=1024,
        scratch=(0, 4, 12, 28),
        steps=30_000,
        trained_pairs=2048,
    ),
}
