"""The sizes and the statements of `head_lower_bound`, fixed before its first run.

Before it, the tests of ``theory.head_bound`` had shown searches that end at d - H. After it two
measurements changed, and say so; no bound did.
"""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

HERE = "derived here"
FLOOR = 1e-18  # what is smaller is drawn here


@dataclass(frozen=True)
class Config:
    """Searches for one layer that preprocesses, and what it costs to descend without such a layer.

    The residual of a layer is the sum of squares by which its coefficients miss those of x̃.
    """

    sizes: tuple[int, ...] = (2, 3, 4)  # d, each with 1 to d heads
    restarts: int = 15
    image_d: int = 4  # the control: images of x̃ of rank 1 to d - 1, with as many heads
    image_restarts: int = 10  # each with an image of its own
    d: int = 8  # of the risk: d - s coordinates of w are zero, the others ± 1/√s
    sparsity: int = 2
    n: int = 40
    noise_std: float = 0.5
    heads: tuple[int, ...] = (1, 2, 4, 8)  # in the first layer, coordinates shared out among them
    step_sizes: tuple[float, ...] = (0.25, 0.5, 1.0, 1.5)  # times 1/λ_max of each prompt
    steps: int = 64
    prompts: int = 512  # to choose the step size and the number of steps; as many to judge them
    runs: int = 8
    seed: int = 0
    # Criteria.
    needed: float = 0.5  # at least this is a residual: of every restart with too few heads
    reached: float = 1e-10  # at most this is none: of the best restart with enough heads
    off: float = 1e-6  # least residual and d - H, at the worst d and number of heads H < d
    dearer: float = 1.1  # risk with fewer than d heads over that with d, where it is least

    def __post_init__(self):
        checks.each_between(self, "sizes", 2, 8)
        checks.between(self, "image_d", 3, 8)
        for name in ("restarts", "image_restarts", "n", "steps", "prompts"):
            checks.between(self, name, 1, None)
        checks.between(self, "d", 2, 64)
        checks.between(self, "sparsity", 1, self.d)
        checks.each_between(self, "heads", 1, self.d)
        if max(self.heads) != self.d or len(self.heads) < 2 or len({*self.heads}) < len(self.heads):
            raise ValueError(
                f"heads = {self.heads}: choose different numbers, among them d = {self.d} "
                f"and a smaller one"
            )
        checks.each_positive(self, "step_sizes")
        checks.each_between(self, "step_sizes", None, 1.999)
        checks.between(self, "runs", 2, None)
        for name in ("noise_std", "needed", "reached", "off", "dearer"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        sizes=(2,),
        restarts=3,
        image_d=3,
        image_restarts=1,
        d=2,
        sparsity=1,
        n=8,
        heads=(1, 2),
        step_sizes=(0.5,),
        steps=2,
        prompts=4,
        runs=2,
    ),
    "laptop": Config(),
    "paper": Config(
        sizes=(2, 3, 4, 5),
        restarts=100,
        image_d=5,
        image_restarts=30,
        d=16,
        sparsity=4,
        heads=(1, 2, 4, 8, 16),
        steps=256,
        prompts=4096,
        runs=32,
    ),
}


def statements(config) -> tuple[Statement, ...]:
    best = "residual of the best restart"
    return (
        Statement(
            "fewer",
            HERE,
            "Fewer than d heads of one layer do not preprocess d covariates",
            "least residual of all restarts, d and numbers of heads below d",
            "value",
            at_least=config.needed,
        ),
        Statement(
            "enough",
            HERE,
            "d heads of one layer do preprocess d covariates",
            f"{best} with d heads, at the worst d",
            "value",
            at_most=config.reached,
        ),
        Statement(
            "count",
            HERE,
            "What H < d heads miss is d - H: a coordinate for each missing head",
            f"|{best} - (d - H)|, at the worst d and H",
            "value",
            at_most=config.off,
        ),
        Statement(
            "image",
            HERE,
            "Control: an image of the preprocessed covariates of rank r < d needs no more than r "
            "heads",
            "residual of r heads written down, at the worst r",
            "value",
            at_most=config.reached,
            note="at first of the best of 5 searches, which missed them at r = 3",
        ),
        Statement(
            "image_fewer",
            HERE,
            "Control: an image of rank r < d needs no fewer than r heads either",
            "least residual of all restarts, r and numbers of heads below r",
            "value",
            at_least=config.needed,
        ),
        Statement(
            "cost",
            f"{HERE}; our setting, modelled on Chen et al. 2408.04532",
            "Descent on features of fewer than d heads, which neighbours share, costs risk",
            "the risk over that with d heads, where it is least,",
            "median",
            at_least=config.dearer,
            note="step sizes now of each prompt; a first run's, the same for all prompts, "
            "exploded on rare ones",
        ),
    )
