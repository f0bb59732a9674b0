"""The sizes and the statements of `one_layer_optimum`, fixed before its first run."""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

TASKS = ("isotropic", "anisotropic", "noisy")


@dataclass(frozen=True)
class Config:
    """One trained layer beside the closed-form optimum, on three tasks and several lengths."""

    d: int = 5
    lengths: tuple[int, ...] = (4, 8, 16, 32, 64)  # values of n
    heads: tuple[int, ...] = (1, 4)  # of the layer, trained with each number
    noise_var: float = 0.5  # of the task "noisy"
    runs: int = 8
    steps: int = 1200
    batch: int = 64
    learning_rate: float = 0.15
    init_scale: float = 0.1
    test_prompts: int = 20_000
    seed: int = 0
    # Criteria.
    excess: float = 0.02  # trained risk above the optimum, as a share of the optimum
    cosine: float = 0.99  # between the learned matrix and A*
    head_ratio: float = 0.02  # relative difference that more heads may make

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 1, 64)
        checks.each_between(self, "lengths", 1, None)
        checks.each_between(self, "heads", 1, None)
        checks.between(self, "noise_var", 0, None)
        checks.between(self, "runs", 2, None)
        for name in ("steps", "batch", "test_prompts"):
            checks.between(self, name, 1, None)
        for name in ("learning_rate", "init_scale", "excess", "head_ratio"):
            checks.positive(self, name)
        checks.between(self, "cosine", 0, 1)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(d=2, lengths=(2, 4), heads=(1, 2), runs=2, steps=10, batch=8, test_prompts=64),
    "laptop": Config(),
    "paper": Config(d=8, lengths=(4, 8, 16, 32, 64, 128, 256), runs=16, steps=2000, batch=4096),
}


def statements(config) -> tuple[Statement, ...]:
    source = "Zhang et al. 2306.09927, in our setting; with label noise derived here"
    worst = "at the worst task, n and number of heads"
    return (
        Statement(
            "risk",
            source,
            "A trained layer reaches the least risk that any layer has, known in closed form",
            f"the excess over the optimum's risk on the same prompts, as a share of it, {worst}",
            at_most=config.excess,
        ),
        Statement(
            "matrix",
            source,
            "The trained layer's matrix is A* = Γ^{-1}, with label noise (Γ + σ²/n I)^{-1}",
            f"the cosine of the matrix with A* {worst}",
            at_least=config.cosine,
        ),
        Statement(
            "heads",
            "derived here",
            "Trained with more heads, one layer ends at the same risk: they merge into one matrix",
            f"the relative change of the risk from {config.heads[0]} to more heads, where largest",
            margin=config.head_ratio,
            note="that they merge is a theorem; here that training is not led elsewhere",
        ),
    )
