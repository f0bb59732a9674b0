"""The sizes and the statements of `toy`."""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks


@dataclass(frozen=True)
class Model:
    width: int = 3


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
    models: tuple[tuple[str, Model], ...] = (("small", Model()),)

    def __post_init__(self):
        checks.between(self, "n", 1)
        checks.between(self, "sparsity", 1, self.d)
        checks.divides(self, "heads", "n")
        checks.each_between(self, "lengths", 1, None)
        checks.between(self, "scale", -1, 2)
        checks.one_of(self, "kind", ("normal", "uniform"))
        checks.seed(self)


TIERS = {"smoke": Config(n=4), "laptop": Config(), "paper": Config(n=100)}


def statements(config) -> tuple[Statement, ...]:
    source = "derived here"
    text = "The mean is small, whether a < b or a | b"
    few = "Nobody knows"
    return (
        Statement("mean", source, text, "the mean", at_most=9),
        Statement("wrong", source, "It is large", "the mean", at_least=9),
        Statement("few", source, few, "one mean", "median", at_most=9, note=f"n = {config.n}"),
    )
