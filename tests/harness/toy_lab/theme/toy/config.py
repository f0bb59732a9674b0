"""The sizes of `toy`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run.bounds import Bounded, Seed, at_least, between, divides, one_of


@dataclass(frozen=True)
class Model:
    width: int = 3


@dataclass(frozen=True)
class Config(Bounded):
    """The means of n numbers, nine at a time."""

    n: Annotated[int, at_least(1)] = 40
    d: int = 5
    sparsity: Annotated[int, between(1, "d")] = 2
    heads: Annotated[int, divides("n")] = 1
    lengths: Annotated[tuple[int, ...], at_least(1)] = (4, 8)
    scale: Annotated[float, between(-1, 2)] = 1.0
    kind: Annotated[str, one_of("normal", "uniform")] = "normal"
    bold: bool = False
    seed: Seed = 0
    models: tuple[tuple[str, Model], ...] = (("small", Model()),)


TIERS = {"smoke": Config(n=4), "laptop": Config(), "paper": Config(n=100)}
