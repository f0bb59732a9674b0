"""The sizes of `head_lower_bound`.

That d heads are needed, and what fewer miss, was searched for here until it was proved.
"""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, at_most, between


@dataclass(frozen=True)
class Config(Bounded):
    """Prompts, and descent on what first layers of one to d heads make of their covariates."""

    d: Annotated[int, between(2, 64)] = 8  # d - s coordinates of w are zero, the others ± 1/√s
    sparsity: Annotated[int, between(1, "d")] = 2  # non-zeros of w
    n: Annotated[int, at_least(1)] = 40
    noise_std: Annotated[float, POSITIVE] = 0.5
    # Heads in the first layer, coordinates shared out among them.
    heads: Annotated[tuple[int, ...], between(1, "d")] = (1, 2, 4, 8)
    # Shares of raw covariates beside the features.
    shares: Annotated[tuple[float, ...], POSITIVE, at_most(0.999)] = (0.25, 0.5, 0.75)
    # Step sizes times 1/λ_max of each prompt.
    step_sizes: Annotated[tuple[float, ...], POSITIVE, at_most(1.999)] = (0.25, 0.5, 1.0, 1.5)
    steps: Annotated[int, at_least(1)] = 64  # of descent, at most
    prompts: Annotated[int, at_least(1)] = 512  # to choose what is free; as many to judge it
    runs: Annotated[int, at_least(2)] = 12
    seed: Seed = 1

    def __post_init__(self):
        super().__post_init__()
        if max(self.heads) != self.d or len(self.heads) < 2 or len({*self.heads}) < len(self.heads):
            raise ValueError(
                f"heads = {self.heads}: choose different numbers, among them d = {self.d} "
                f"and a smaller one"
            )


TIERS = {
    "smoke": Config(
        d=2,
        sparsity=1,
        n=8,
        heads=(1, 2),
        shares=(0.5,),
        step_sizes=(0.5,),
        steps=2,
        prompts=4,
        runs=2,
    ),
    "laptop": Config(),
    "paper": Config(d=16, sparsity=4, heads=(1, 2, 4, 8, 16), steps=256, prompts=4096, runs=32),
}
