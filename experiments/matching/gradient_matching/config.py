"""The rules and sizes of `gradient_matching`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.matching.configs import AtLeastTwo, Count, Positive
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import Bounded, Seed, at_least, between

# A subset of each size by each of these rules,
WHITE = "matching, whitened"
MATCHING = ("matching", "matching, prefix", "moments", WHITE, "greedy only", "mismatching")
OTHERS = ("k-means", "determinantal", "leverage", "stratified")
# and several by each of these: the best on validation, the median, one for each query.
SEVERAL = ("best of 5", "random", "similarity")
RULES = (*MATCHING, *OTHERS, *SEVERAL)
LENGTH = 4  # tokens of the prefix whose gradients are matched at every size: A3's
# One checkpoint of the proxy, or as many as ``saves``: its first steps, its last, and evenly.
CHECKPOINTS = ("first", "last", "early", "late", "along")


@dataclass(frozen=True)
class Curriculum(Bounded):
    """Equally many checkpoints from different parts of the proxy's training."""

    runs: AtLeastTwo = 32
    seed: Seed = 31


@dataclass(frozen=True)
class Config(Bounded):
    """Subsets of a pool by gradient matching and by its rivals, before one constructed stack.

    The linear proxy and the prefix are trained as A3's code does (docs/theory, "Gradient
    matching"), with learning rates of their own: 40 steps of 0.001 would leave weights of size one
    where they start.
    """

    d: Annotated[int, between(1, 64)] = 8
    m: AtLeastTwo = 256  # the pool
    noise_std: Positive = 1.0  # of its labels; w ~ N(0, I)
    # Demonstrations that are chosen.
    sizes: Annotated[tuple[int, ...], between(1, "m")] = (4, 8, 16, 32, 64, 128)
    ablation_size: int = 32  # the size at which parts of the method are changed
    depth: Count = 12  # of the stack that answers: steps of gradient descent
    step: Positive = 0.25  # size of a step of that descent
    epochs: Count = 10  # of the proxies' training
    batch: Count = 64  # examples of the pool in a training step
    linear_rate: Positive = 0.1  # learning rate of the linear proxy
    prefix_rate: Positive = 0.03  # learning rate of the prefix
    saves: Count = 10  # checkpoints of each training, at which gradients are matched
    prefix_lengths: Annotated[tuple[int, ...], at_least(1)] = (1, 2, 4, 8)  # tokens of the prefix
    # Checkpoints whose gradients count.
    used: Annotated[tuple[int, ...], between(1, "saves")] = (1, 2, 4, 6, 8, 9, 10)
    # Swaps; the last three are A3's.
    budgets: Annotated[tuple[int, ...], at_least(0)] = (0, 1, 3, 32, 1000)
    random_draws: AtLeastTwo = 20  # random subsets, to compare with
    tries: AtLeastTwo = 5  # random subsets of best-of-5
    validation: Count = 32  # noisy examples that choose among the tries
    strata: Count = 4  # of the labels' ranks
    queries: Count = 128  # after each prompt
    runs: AtLeastTwo = 32
    seed: Seed = 1
    curriculum: Curriculum = Curriculum()  # one checkpoint or ten, from other parts of training

    def __post_init__(self):
        super().__post_init__()
        checks.one_of(self, "ablation_size", self.sizes)
        if LENGTH not in self.prefix_lengths:
            raise ValueError(f"prefix_lengths = {self.prefix_lengths!r}: {LENGTH} is among them")


TIERS = {
    "smoke": Config(
        d=2,
        m=32,
        sizes=(8,),
        ablation_size=8,
        depth=2,
        saves=3,
        prefix_lengths=(2, 4),
        used=(1, 3),
        budgets=(0, 1000),
        random_draws=4,
        queries=8,
        runs=2,
        curriculum=Curriculum(runs=2),
    ),
    "laptop": Config(),
    # 144 runs from seed 11 left two rows undecided, both narrowly.
    "paper": Config(runs=240, seed=12, curriculum=Curriculum(runs=240, seed=32)),
}
