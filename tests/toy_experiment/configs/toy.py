"""Settings of an experiment that exists only for the tests of the harness."""

from dataclasses import dataclass

from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config:
    n: int = 40
    d: int = 5
    sparsity: int = 2
    heads: int = 1
    lengths: tuple[int, ...] = (4, 8)
    scale: float = 1.0
    kind: str = "normal"
    bold: bool = False
    seed: int = 0

    def __post_init__(self):
        checks.between(self, "n", 1)
        checks.between(self, "sparsity", 1, self.d)
        checks.divides(self, "heads", "n")
        checks.each_between(self, "lengths", 1, None)
        checks.between(self, "scale", -1, 2)
        checks.one_of(self, "kind", ("normal", "uniform"))
        checks.seed(self)


TIERS = {"smoke": Config(n=4), "laptop": Config(), "paper": Config(n=100)}
