"""The rules and sizes of `gradient_matching`."""

from dataclasses import dataclass

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
class Curriculum:
    """Equally many checkpoints from different parts of the proxy's training."""

    runs: int = 32
    seed: int = 31


@dataclass(frozen=True)
class Config:
    """Subsets of a pool by gradient matching and by its rivals, before one constructed stack.

    The linear proxy and the prefix are trained as A3's code does (docs/theory, "Gradient
    matching"), with learning rates of their own: 40 steps of 0.001 would leave weights of size one
    where they start.
    """

    d: int = 8
    m: int = 256  # the pool
    noise_std: float = 1.0  # of its labels; w ~ N(0, I)
    # Demonstrations that are chosen.
    sizes: tuple[int, ...] = (4, 8, 16, 32, 64, 128)
    ablation_size: int = 32  # the size at which parts of the method are changed
    depth: int = 12  # of the stack that answers: steps of gradient descent
    step: float = 0.25  # size of a step of that descent
    epochs: int = 10  # of the proxies' training
    batch: int = 64  # examples of the pool in a training step
    linear_rate: float = 0.1  # learning rate of the linear proxy
    prefix_rate: float = 0.03  # learning rate of the prefix
    saves: int = 10  # checkpoints of each training, at which gradients are matched
    prefix_lengths: tuple[int, ...] = (1, 2, 4, 8)  # tokens of the prefix
    # Checkpoints whose gradients count.
    used: tuple[int, ...] = (1, 2, 4, 6, 8, 9, 10)
    # Swaps; the last three are A3's.
    budgets: tuple[int, ...] = (0, 1, 3, 32, 1000)
    random_draws: int = 20  # random subsets, to compare with
    tries: int = 5  # random subsets of best-of-5
    validation: int = 32  # noisy examples that choose among the tries
    strata: int = 4  # of the labels' ranks
    queries: int = 128  # after each prompt
    runs: int = 32
    seed: int = 1
    curriculum: Curriculum = Curriculum()  # one checkpoint or ten, from other parts of training


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
