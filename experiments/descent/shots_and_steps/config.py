"""The sizes and the statements of `shots_and_steps`."""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

MODELS = ("linear", "softmax")


@dataclass(frozen=True)
class Config:
    """Trained linear and softmax transformers, with and without noise, at several lengths."""

    d: int = 5
    n: int = 10  # shots in training
    shots: tuple[int, ...] = (2, 3, 5, 7, 10, 20)  # shots in the test: d, 2d and n among them
    noise_std: float = 0.5  # where there is noise
    depth: int = 3
    heads: int = 2  # of a softmax layer, each as wide as a token; a linear layer has one
    runs: int = 12  # with noise, and as many without
    linear_steps: int = 800  # training steps of linear stacks
    linear_batch: int = 64  # prompts in each of these steps
    softmax_steps: int = 700  # training steps of softmax stacks
    softmax_batch: int = 32  # prompts in each of these steps
    learning_rate: float = 0.02
    looks: int = 10  # checkpoints during training at which the error is measured
    test_prompts: int = 1000  # of each run, its own
    seed: int = 1
    # Criteria.
    growth: float = 1.0  # error over that with fewer shots or steps, at its worst
    bayes_factor: float = 1.5  # error over that of the Bayes rule, with noise, at n shots
    zero: float = 0.01  # share of the error without shots that counts as no error

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 1, 64)
        checks.between(self, "n", 2, None)
        checks.each_between(self, "shots", 1, None)
        if list(self.shots) != sorted({*self.shots, self.d, 2 * self.d, self.n}):
            raise ValueError(
                f"shots = {self.shots!r}: choose increasing numbers with d = {self.d}, 2d and "
                f"n = {self.n} among them; nearest "
                f"{tuple(sorted({*self.shots, self.d, 2 * self.d, self.n}))}"
            )
        checks.between(self, "depth", 1, 8)
        checks.between(self, "heads", 1, 8)
        checks.between(self, "runs", 2, None)
        for name in ("linear_batch", "softmax_batch", "test_prompts"):
            checks.between(self, name, 1, None)
        for name in ("linear_steps", "softmax_steps"):
            checks.divides(self, "looks", name)
        for name in ("noise_std", "learning_rate", "growth", "bayes_factor", "zero"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        shots=(2, 4),
        depth=2,
        runs=2,
        linear_steps=10,
        linear_batch=8,
        softmax_steps=10,
        softmax_batch=8,
        looks=2,
        test_prompts=16,
    ),
    "laptop": Config(),
    "paper": Config(runs=36, seed=11),
    # The dimension of Garg et al. (2208.01066); their model is deeper and wider than this one.
    "gpu": Config(
        d=20,
        n=40,
        shots=(5, 10, 15, 20, 25, 30, 40, 60, 80),
        linear_steps=50_000,
        linear_batch=512,
        softmax_steps=50_000,
        softmax_batch=512,
        learning_rate=0.003,
        looks=50,
        test_prompts=10_000,
    ),
}


def statements(config) -> tuple[Statement, ...]:
    return tuple(each for name in MODELS for each in about_model(name, config))


def about_model(name, config) -> tuple[Statement, ...]:
    fresh = f"{config.runs} fresh runs, 8 before"
    share = "the excess risk without noise, as a share of that without shots,"
    # At lengths it was not trained at the mean over prompts is that of the rare prompt at which a
    # polynomial of degree 3^L explodes.
    rare = f"mean over prompts; polynomials of degree {3**config.depth} explode on a few of them"
    limit = rare if name == "linear" else ""

    def at_most(which, says, measured, bound, note="", revision=""):
        return Statement(
            f"{name}_{which}",
            "Garg et al. 2208.01066; A2 (2406.03768), figure 5, in our setting",
            f"The error of our trained {name} attention {says}",
            measured,
            "median",
            at_most=bound,
            note=note,
            revision=revision,
            redrawn=fresh,
        )

    # Of linear attention at few shots a single prompt decides the mean over runs.
    changed, added = "it was the mean", "added"
    return (
        at_most(
            "shots",
            f"falls with every further shot up to the {config.n} of training",
            "the largest ratio of neighbours, with noise and without,",
            config.growth,
            limit,
            changed,
        ),
        at_most(
            "fewest",
            f"is smaller at the {config.n} shots of training than at {min(config.shots)}",
            "the ratio of the two, the larger of those with noise and without,",
            config.growth,
            limit,
            added,
        ),
        at_most(
            "steps",
            f"at {config.n} shots is smaller at the end of training than after a tenth of it",
            "the ratio of the two, the larger of those with noise and without,",
            config.growth,
            revision=added,
        ),
        at_most(
            "steps_everywhere",
            f"falls with training at every number of shots up to {config.n}, as in figure 5(b)",
            "the error at the end over that after a tenth of training, the largest over numbers of "
            "shots, with noise and without,",
            config.growth,
            limit or "at two shots there is next to nothing to learn",
            added,
        ),
        at_most(
            "bayes",
            "comes close to that of the Bayes rule at the trained length",
            f"the ratio of excess risks with noise {config.noise_std}",
            config.bayes_factor,
            revision=changed,
        ),
        at_most("zero_d", "is zero at d shots", share, config.zero, limit, changed),
        at_most("zero_2d", "is zero at 2d shots", share, config.zero, revision=changed),
    )
