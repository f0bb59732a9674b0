"""The sizes and the statements of `head_lower_bound`, their bounds fixed before the first run.

That d heads are needed, and what fewer miss, was searched for here until it was proved.
"""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config:
    """Prompts, and descent on what first layers of one to d heads make of their covariates."""

    d: int = 8  # d - s coordinates of w are zero, the others ± 1/√s
    sparsity: int = 2  # non-zeros of w
    n: int = 40
    noise_std: float = 0.5
    heads: tuple[int, ...] = (1, 2, 4, 8)  # in the first layer, coordinates shared out among them
    shares: tuple[float, ...] = (0.25, 0.5, 0.75)  # of raw covariates beside the features
    step_sizes: tuple[float, ...] = (0.25, 0.5, 1.0, 1.5)  # times 1/λ_max of each prompt
    steps: int = 64  # of descent, at most
    prompts: int = 512  # to choose what is free; as many to judge it
    runs: int = 12
    seed: int = 1
    dearer: float = 1.1  # criterion: risk with fewer than d heads over that with d

    def __post_init__(self):
        checks.kinds(self)
        for name in ("n", "steps", "prompts"):
            checks.between(self, name, 1, None)
        checks.between(self, "d", 2, 64)
        checks.between(self, "sparsity", 1, self.d)
        checks.each_between(self, "heads", 1, self.d)
        if max(self.heads) != self.d or len(self.heads) < 2 or len({*self.heads}) < len(self.heads):
            raise ValueError(
                f"heads = {self.heads}: choose different numbers, among them d = {self.d} "
                f"and a smaller one"
            )
        checks.each_positive(self, "shares")
        checks.each_between(self, "shares", None, 0.999)
        checks.each_positive(self, "step_sizes")
        checks.each_between(self, "step_sizes", None, 1.999)
        checks.between(self, "runs", 2, None)
        for name in ("noise_std", "dearer"):
            checks.positive(self, name)
        checks.seed(self, "seed")


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
    "paper": Config(
        d=16,
        sparsity=4,
        heads=(1, 2, 4, 8, 16),
        steps=256,
        prompts=4096,
        runs=32,
    ),
}


def statements(config) -> tuple[Statement, ...]:
    source = "modelled on A4 (2408.04532), abstract"
    over = "the risk over that with d heads, where it is least,"
    fresh = f"{config.runs} fresh runs, 8 before"
    return (
        Statement(
            "cost",
            source,
            "Descent on features of fewer than d heads, which neighbours share, costs risk",
            over,
            "median",
            at_least=config.dearer,
            revision="a step size for each prompt; the same for all exploded on rare ones",
            redrawn=fresh,
        ),
        Statement(
            "cost_beside_raw",
            source,
            "It costs risk even if the raw covariates stay beside the features",
            over,
            "median",
            at_least=config.dearer,
            revision="added",
            redrawn=fresh,
        ),
    )
