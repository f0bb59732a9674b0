"""The rules, the pools and the sizes of `whitened_matching`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

MATCHING = ("matching, whitened", "matching", "matching, scaled")
RIVALS = ("k-means", "determinantal", "random", "stratified")  # of the last two several subsets
RULES = (*MATCHING, *RIVALS)
FEW = (*MATCHING, "random")  # where the other rivals are left out


@dataclass(frozen=True)
class Case:
    """A pool that is unlike the usual one in some respect: words of ``PoolTask``."""

    spectrum: tuple[float, float] = (0.4, 2.0)  # ends of the covariates' variances
    queried: tuple[float, float] | None = None  # of the queries', where they are others
    noise_std: float = 0.5  # of the labels
    words: tuple[tuple[str, object], ...] = ()


CLUSTERS = (("shares", (0.75, 0.25)), ("separation", 2.0))
CASES = {
    "usual": Case(),
    "noisy labels": Case(noise_std=2.0),
    "wrong labels": Case(words=(("flips", 0.2),)),
    "heavy tails": Case(words=(("tail", 3.0),)),
    "nearly singular": Case(spectrum=(1e-4, 2.0)),
    "shifted queries": Case(spectrum=(0.1, 2.0), queried=(2.0, 0.1)),
    "two tasks": Case(words=(("num_weights", 2),)),
    "a task each": Case(words=(*CLUSTERS, ("num_weights", "cluster"))),
    "two classes": Case(noise_std=0.0, words=(*CLUSTERS, ("labels", "cluster"))),
    "signs": Case(noise_std=0.0, words=(("labels", "sign"),)),
}

Count = Annotated[int, at_least(1)]
Several = Annotated[int, at_least(2)]


@dataclass(frozen=True)
class Config(Bounded):
    """Subsets by plain and by whitened matching, of the same pools, before descent in context.

    Gradients are those of the linear proxy along its training (A3's recipe, with a learning rate of
    its own), at more checkpoints than covariates. A gap is the root mean square over queries of
    ŷ(subset) - ŷ(pool), over that of ŷ(pool); an error is that of ŷ(subset) on queries without
    noise.
    """

    d: Annotated[int, between(1, 32)] = 5
    m: Several = 1024  # the pool
    n: Several = 96  # demonstrations that are chosen
    # Covariates of the usual pool.
    dims: Annotated[tuple[int, ...], between(1, 32)] = (2, 4, 8, 12, 16)
    # Demonstrations, of the usual pool alone.
    sizes: Annotated[tuple[int, ...], at_least(2)] = (8, 16)
    most: int = 9  # checkpoints at d covariates
    # Layers of the descent that learns from the subsets.
    depths: Annotated[tuple[int, ...], at_least(1)] = (1, 8, 64)
    depth: int = 8  # the one that is judged where nothing else is said
    step: Annotated[float, POSITIVE] = 0.2  # size of a step of that descent
    batch: Count = 64  # of the proxy, trained for 10 epochs
    rate: Annotated[float, POSITIVE] = 0.1  # learning rate of the proxy
    queries: Count = 128  # after each prompt
    strata: Count = 4  # of the labels' ranks
    random_draws: Several = 40  # random subsets, and stratified ones
    runs: Several = 40
    seed: Seed = 2

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "n", 2, self.m - 1)
        checks.each_between(self, "sizes", 2, self.m - 1)
        checks.between(self, "most", self.d + 1, 32)
        checks.one_of(self, "depth", self.depths)


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
}


def directions(d: int) -> int:
    """What d + 1 checkpoints see: d (d + 1) / 2 products of covariates, and d with the label."""
    return d * (d + 3) // 2


def served_dims(config) -> list[int]:
    """The dims of which n demonstrations can serve all directions."""
    return [d for d in config.dims if directions(d) < config.n]
