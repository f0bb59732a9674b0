"""The sizes and the statements of `bound_and_gap`, fixed before its first run."""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

GRID = ("noise", "shots", "depth")


@dataclass(frozen=True)
class Config:
    """Stacks that descend with their best step size, on prompts of one task at a time."""

    d: int = 4
    depths: tuple[int, ...] = (1, 2, 3, 4)
    shots: tuple[int, ...] = (8, 16, 32, 64)  # n, divisors of the largest
    noises: tuple[float, ...] = (0.0, 0.5, 1.0)  # standard deviation of the labels' noise
    update_noise: float = 0.01  # c of C = cI, an assumption of the theorem
    other_noises: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # for one panel
    largest_loss: float = 16.0  # squared errors are clipped to [0, b], so that R = b/2
    groups: int = 16  # tasks
    prompts: int = 64  # of each task
    tuning_prompts: int = 16  # of each task, for the step size
    population: int = 128  # fresh pairs for each prompt
    step_sizes: int = 24  # the best of so many
    seed: int = 0
    # Criteria.
    least_margin: float = 0.0  # of bound - gap
    rank_correlation: float = 0.5  # of bound and gap over the grid
    advantage: float = 0.0  # of that correlation over the one of 1/√n and the gap

    def __post_init__(self):
        checks.between(self, "d", 1, 64)
        checks.each_between(self, "depths", 1, 8)
        checks.each_between(self, "shots", 1, None)
        checks.each_between(self, "noises", 0, None)
        checks.each_positive(self, "other_noises")
        for name in ("update_noise", "largest_loss"):
            checks.positive(self, name)
        for name in ("groups", "prompts", "tuning_prompts", "population", "step_sizes"):
            checks.between(self, name, 2, None)
        checks.between(self, "least_margin", 0, None)
        checks.between(self, "rank_correlation", -1, 1)
        checks.between(self, "advantage", -2, 2)
        checks.seed(self, "seed")
        if any(max(self.shots) % n for n in self.shots):
            raise ValueError(f"shots = {self.shots!r}: each divides the largest")
        for name in ("depths", "shots"):
            if len(set(getattr(self, name))) < 2:
                raise ValueError(f"{name} = {getattr(self, name)!r}: ranks need two or more values")


TIERS = {
    "smoke": Config(
        d=2,
        depths=(1, 2),
        shots=(4, 8),
        noises=(0.5, 1.0),
        other_noises=(0.01, 1.0),
        groups=2,
        prompts=4,
        population=8,
        step_sizes=4,
    ),
    "laptop": Config(),
    "paper": Config(d=8, shots=(8, 16, 32, 64, 128, 256), groups=64, prompts=512, population=512),
}


def statements(config) -> tuple[Statement, ...]:
    c, theorem = f"(c = {config.update_noise:g})", "A2 (2406.03768), Theorem 2"

    def about_tasks(name, says, measured, at_least, source=theorem):
        return Statement(name, source, says, measured, at_least=at_least, over="tasks")

    return (
        about_tasks(
            "above",
            f"The bound lies above the gap of descent, which has no noise {c}",
            "bound - |gap|, a comparison and not a test, at the worst place of the grid",
            config.least_margin,
        ),
        about_tasks(
            "above_with_noise",
            f"The bound lies above the gap of descent with the noise assumed {c}",
            "bound - |gap| at the worst place of the grid",
            config.least_margin,
        ),
        about_tasks(
            "says_something",
            f"The bound is below the largest loss {config.largest_loss:g}, "
            f"which bounds every gap {c}",
            "largest loss - bound where the bound is largest",
            0.0,
        ),
        about_tasks(
            "ranks",
            "The bound ranks depths, numbers of demonstrations and noises as the gap does",
            "Spearman's correlation over the whole grid",
            config.rank_correlation,
        ),
        about_tasks(
            "ranks_at_equal_n",
            "It ranks depths and noises as the gap does where n is the same",
            "Spearman's correlation at equal n, averaged over n,",
            config.rank_correlation,
        ),
        about_tasks(
            "better_than_counting",
            "The bound ranks the grid at least as well as 1/√n alone",
            "the paired difference of the rank correlations",
            config.advantage,
            source="derived here",
        ),
    )
