from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config:
    n: int = 20
    d: int = 4
    noise_std: float = 0.5
    penalties: tuple[float, ...] = (0.0125, 0.05, 0.2, 1.0, 5.0)
    steps: int = 1000
    runs: int = 9
    test_prompts: int = 1000
    seed: int = 0
    far: float = 0.1  # squared distance to the nearest ridge over the square of the prediction

    def __post_init__(self):
        for name in ("n", "d", "steps", "test_prompts"):
            checks.between(self, name, 1)
        checks.between(self, "runs", 2)
        checks.positive(self, "noise_std")
        checks.each_positive(self, "penalties")
        checks.seed(self)


TIERS = {
    "smoke": Config(d=2, penalties=(0.05, 1.0), steps=20, runs=2, test_prompts=20),
    "laptop": Config(),
    "paper": Config(n=40, d=20, steps=20_000, test_prompts=10_000),
}


def statements(config) -> tuple[Statement, ...]:
    return (
        Statement(
            "ridge",
            "derived here",
            "One layer is not ridge regression with any penalty",
            "the layer's squared distance to the nearest ridge over its mean square",
            at_least=config.far,
        ),
    )
