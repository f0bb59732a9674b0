"""Settings and criteria of `demonstration_order`, fixed before its first run."""

from dataclasses import dataclass

from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config:
    """Causal stacks, random, constructed and trained, asked with sorted demonstrations."""

    d: int = 5
    n: int = 16
    noise_std: float = 0.5  # of the labels, in training and in the test
    depth: int = 3
    heads: int = 2
    kernels: tuple[str, ...] = ("linear", "softmax")
    random_scale: float = 1.0  # of weights that are not trained
    random_orders: int = 16  # of each prompt, with whose mean a rule is compared
    runs: int = 12
    steps: int = 500
    batch: int = 32
    learning_rate: float = 0.01
    test_prompts: int = 400  # of each run; half choose the best rule, half judge it
    left_out: float = 0.02  # share of prompts with the largest error in any order
    seed: int = 0
    # Criteria, on the change of the error against random orders, as a share of theirs; medians
    # over runs, for linear stacks explode on rare prompts.
    none: float = 1e-10  # at most this much of a prediction's size is no effect
    gain: float = 0.02  # the best rule helps if it lowers the error by this share

    def __post_init__(self):
        checks.between(self, "d", 1, 32)
        checks.between(self, "n", 2, None)
        checks.between(self, "depth", 2, 8)
        checks.between(self, "heads", 1, 8)
        for name in ("random_orders", "runs"):
            checks.between(self, name, 2, None)
        for name in ("steps", "batch"):
            checks.between(self, name, 1, None)
        checks.between(self, "test_prompts", 4, None)
        for name in ("noise_std", "random_scale", "learning_rate", "none", "gain"):
            checks.positive(self, name)
        checks.between(self, "left_out", 0, 0.5)
        if not self.kernels or {*self.kernels} - {"linear", "softmax"}:
            raise ValueError(f"kernels = {self.kernels!r}: choose 'linear', 'softmax' or both")
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        depth=2,
        heads=1,
        kernels=("softmax",),
        random_orders=2,
        runs=2,
        steps=4,
        batch=4,
        test_prompts=8,
    ),
    "laptop": Config(),
    "paper": Config(
        d=10,
        n=64,
        depth=6,
        heads=4,
        random_orders=64,
        runs=32,
        steps=20_000,
        batch=256,
        learning_rate=0.002,
        test_prompts=4000,
    ),
}
