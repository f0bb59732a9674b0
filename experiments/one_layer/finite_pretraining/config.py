"""The sizes of `finite_pretraining`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import INCREASING, POSITIVE, Bounded, Seed, at_least, between

RISKS = ("new tasks", "pretraining tasks")

Positive = Annotated[float, POSITIVE]
Runs = Annotated[int, at_least(3)]
Sizes = Annotated[tuple[int, ...], between(2, 128), INCREASING]
Shares = Annotated[tuple[float, ...], INCREASING]
Taus = Annotated[tuple[float, ...], between(0.1, 16), INCREASING]
LEAST = {"sizes": 2, "alphas": 1, "kappas": 2, "taus": 3}  # entries


@dataclass(frozen=True)
class Config(Bounded):
    """One layer fitted by least squares to N = tau d² prompts with tasks from k = kappa d."""

    sizes: Sizes = (16, 32)  # values of d, growing; the last two are extrapolated
    alphas: Shares = (1.0, 10.0)  # demonstrations of a prompt / d, growing
    kappas: Shares = (0.5, 1.0, 2.0, 4.0)  # tasks / d, growing
    taus: Taus = (0.25, 0.5, 0.75, 0.9, 1.1, 1.5, 2.0, 4.0)  # prompts / d², growing
    near: Positive = 1.6  # judged against the closed form where tau or 1 / tau is above it
    noise_var: Positive = 0.1  # of a label, relative to its signal
    runs: Runs = 32  # fits at the largest d; of a smaller d each run is a mean of (largest / d)²
    seed: Seed = 1

    def __post_init__(self):
        super().__post_init__()
        checks.each_between(self, "alphas", 2 / min(self.sizes), None)  # two demonstrations
        checks.each_between(self, "kappas", 1 / min(self.sizes), None)  # one task
        for name, least in LEAST.items():
            values = getattr(self, name)
            if len(values) < least:
                raise ValueError(f"{name} = {values}: choose {least} or more numbers that grow")
        if not self.taus[0] < self.taus[1] < 1 < self.taus[-2]:
            raise ValueError(f"taus = {self.taus}: choose two or more below 1, and above 1")


TIERS = {
    "smoke": Config(sizes=(4, 8), kappas=(0.5, 2.0), taus=(0.25, 0.5, 1.5, 4.0), near=1.2, runs=3),
    "laptop": Config(),
    "paper": Config(sizes=(32, 64)),
}
