"""The sizes and the criteria of `clipping_curves`; what it judges stands in its statements."""

from dataclasses import dataclass

from experiments.clipping.clipping_curves.statements import statements as statements
from experiments.clipping.transformer_config import GPU, PAPER, SMOKE, TransformerConfig
from lsa_lab.harness import checks

DROPPED = 1.0  # the rate that stands for rank 0


@dataclass(frozen=True)
class Config(TransformerConfig):
    """The mean risk of trained transformers after one part of one layer is clipped.

    Shots 4 and 10 are A2's. It also has 0, at which attention over demonstrations reads nothing.
    Its rates 0.99 and 0.995 keep as little of a matrix of rank 32 as 0.95: one direction.
    """

    shots: tuple[int, ...] = (4, 10, 40)  # beside the n of training, some of them fewer, some more
    rates: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)  # of clipping
    prompts: int = 500  # of each run, the same for all edits
    ends: int = 2  # layers that are called shallow, and deep
    high: float = 0.75  # from this rate on clipping is drastic
    seed: int = 1
    # Criteria, on changes of the risk over the risk unclipped unless they say otherwise.
    flat: float = 0.1  # at most this is not much
    gain: float = 0.01  # a fall by at least this is an improvement
    guess: float = 0.9  # of the risk of predicting zero: at least this is no better than guessing
    as_good: float = 1.1  # risk over ridge's: at most this is as good

    def __post_init__(self):
        super().__post_init__()
        checks.each_between(self, "shots", 1, None)
        few, many = min(self.shots), max(self.shots)
        if list(self.shots) != sorted({*self.shots} - {self.n}) or not few < self.n < many:
            nearest = tuple(sorted({*self.shots, max(1, self.n // 2), 2 * self.n} - {self.n}))
            raise ValueError(
                f"shots = {self.shots!r}: choose increasing numbers, some below n = {self.n} and "
                f"some above; nearest {nearest}"
            )
        checks.each_between(self, "rates", 0.0, 0.999)
        if list(self.rates) != sorted({*self.rates}):
            raise ValueError(
                f"rates = {self.rates!r}: choose increasing rates; nearest "
                f"{tuple(sorted({*self.rates}))}"
            )
        checks.between(self, "prompts", 2, None)
        checks.between(self, "ends", 1, self.depth // 2)
        checks.between(self, "high", min(self.rates), max(self.rates))
        for name in ("flat", "gain", "guess", "as_good"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(**SMOKE, shots=(2, 8), rates=(0.5, 0.75), prompts=16, ends=1),
    "laptop": Config(),
    "paper": Config(**PAPER, prompts=1000, seed=2),
    "gpu": Config(
        **GPU,
        shots=(4, 10, 20, 80),
        rates=(0.1, 0.25, 0.5, 0.625, 0.75, 0.875, 0.9, 0.95, 0.99),
        prompts=10_000,
    ),
}
