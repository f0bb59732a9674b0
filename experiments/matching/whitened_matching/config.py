"""The sizes and the criteria of `whitened_matching`; what it judges stands in its statements."""

from dataclasses import dataclass

from experiments.matching.whitened_matching.statements import statements as statements
from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config:
    """Subsets by plain and by whitened matching, of the same pools, before descent in context.

    Gradients are those of the linear proxy along its training (A3's recipe, with a learning rate of
    its own), at more checkpoints than covariates. A gap is the root mean square over queries of
    ŷ(subset) - ŷ(pool), over that of ŷ(pool); an error is that of ŷ(subset) on queries without
    noise.
    """

    d: int = 5
    m: int = 1024  # the pool
    n: int = 96  # demonstrations that are chosen
    dims: tuple[int, ...] = (2, 4, 8, 12, 16)  # covariates of the usual pool
    sizes: tuple[int, ...] = (8, 16)  # the same, of the usual pool alone
    most: int = 9  # checkpoints at d covariates
    depths: tuple[int, ...] = (1, 8, 64)  # layers of the descent that learns from the subsets
    depth: int = 8  # the one that is judged where nothing else is said
    step: float = 0.2  # size of a step of that descent
    batch: int = 64  # of the proxy, trained for 10 epochs
    rate: float = 0.1  # learning rate of the proxy
    queries: int = 128  # after each prompt
    strata: int = 4  # of the labels' ranks
    random_draws: int = 40  # random subsets, and stratified ones
    runs: int = 40
    seed: int = 2
    # Criteria. Ratios of gaps or of errors, whitened over its rival; medians over runs.
    knee: float = 0.5  # the gap at d + 1 checkpoints over that at d
    nearer: float = 0.5  # over plain matching, with no more directions than demonstrations
    not_farther: float = 1.0  # over plain matching, with more
    no_worse: float = 1.05  # error in an unusual pool
    bound: float = 10.0  # the bound over what it bounds

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 1, 32)
        checks.between(self, "m", 2, None)
        checks.between(self, "n", 2, self.m - 1)
        checks.each_between(self, "dims", 1, 32)
        checks.each_between(self, "sizes", 2, self.m - 1)
        checks.between(self, "most", self.d + 1, 32)
        checks.one_of(self, "depth", self.depths)
        for name in ("batch", "queries", "strata"):
            checks.between(self, name, 1, None)
        for name in ("random_draws", "runs"):
            checks.between(self, name, 2, None)
        for name in ("knee", "nearer", "not_farther", "no_worse", "bound", "step", "rate"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        d=2,
        m=32,
        n=8,
        dims=(2, 3),
        sizes=(4,),
        most=4,
        depths=(1, 2),
        depth=2,
        batch=8,
        queries=8,
        random_draws=4,
        runs=2,
    ),
    "laptop": Config(),
    "paper": Config(runs=144, seed=12),
    "gpu": Config(m=8192, n=192, dims=(2, 4, 8, 12, 16, 20), queries=512, runs=48),
}


def directions(d: int) -> int:
    """What d + 1 checkpoints see: d (d + 1) / 2 products of covariates, and d with the label."""
    return d * (d + 3) // 2


def served(config) -> list[int]:
    """The dims of which n demonstrations can serve all directions."""
    return [d for d in config.dims if directions(d) < config.n]


def beyond(config) -> list[int]:
    return [d for d in config.dims if d not in served(config)]
