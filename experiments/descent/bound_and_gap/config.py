"""The sizes and the statements of `bound_and_gap`."""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

GRID = ("noise", "shots", "depth")


@dataclass(frozen=True)
class Config:
    """Stacks that descend with their best step size, on prompts of one task at a time."""

    d: int = 4
    depths: tuple[int, ...] = (1, 2, 3, 4)  # steps of descent, one a layer
    shots: tuple[int, ...] = (8, 16, 32, 64)  # n, divisors of the largest
    noises: tuple[float, ...] = (0.0, 0.5, 1.0)  # standard deviation of the labels' noise
    update_noises: tuple[float, ...] = (  # c of C = cI, the noise that the theorem assumes
        *(1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3),
        *(1.0, 3.0, 10.0, 30.0, 100.0),
    )
    largest_loss: float = 16.0  # squared errors are clipped to [0, b], so that R = b/2
    groups: int = 16  # tasks
    prompts: int = 64  # of each task
    tuning_prompts: int = 16  # of each task, for the step size
    population: int = 128  # fresh pairs for each prompt
    step_sizes: int = 24  # the best of so many
    seed: int = 1
    # Criteria.
    least_margin: float = 0.0  # of bound - gap
    rank_correlation: float = 0.5  # of bound and gap over the grid
    advantage: float = 0.0  # of that correlation over the one of 1/√n and the gap

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 1, 64)
        checks.each_between(self, "depths", 1, 8)
        checks.each_between(self, "shots", 1, None)
        checks.each_between(self, "noises", 0, None)
        checks.each_positive(self, "update_noises")
        checks.positive(self, "largest_loss")
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
        update_noises=(0.01, 1.0),
        groups=2,
        prompts=4,
        population=8,
        step_sizes=4,
    ),
    "laptop": Config(),
    "paper": Config(d=8, shots=(8, 16, 32, 64, 128, 256), groups=64, prompts=512, population=512),
}


def statements(config) -> tuple[Statement, ...]:
    return (
        *_about_the_height(config),
        *_about_the_order(config, "", BEST_C),
        *_about_the_order(config, "_by_spread", SPREAD),
    )


_THEOREM = "A2 (2406.03768), Theorem 2"
BEST_C = "c is free: of all c that which ranks best on the other tasks, one for the whole grid"
SPREAD = "c_t is the spread of G_t over the prompts of a task, tr Cov / e², as Assumption 1 has it"


def _about_the_height(config):
    vacuous = f"the largest loss {config.largest_loss:g}, which bounds every gap"
    bound = {"at_least": config.least_margin, "over": "tasks"}
    fresh, alone = "fresh tasks", "it was c = 0.01 alone"
    return (
        Statement(
            "above",
            f"{_THEOREM} and Assumption 1, our reading, in our setting",
            "With noise as large as the spread of the updates the bound lies above descent's gap",
            "bound - |gap| at the worst place of the grid",
            note=SPREAD,
            revision=f"{alone}, which was ours",
            redrawn=fresh,
            **bound,
        ),
        Statement(
            "above_with_noise",
            f"{_THEOREM}, as stated",
            "The bound lies above the gap of descent that has the noise assumed, whatever its c",
            "bound - |gap| at the worst c and place of the grid",
            note="the updates are those of the noisy path; a mean stands inside the logarithm",
            revision=f"{alone}, with the updates of the path without noise",
            redrawn=fresh,
            **bound,
        ),
        Statement(
            "says_something",
            f"modelled on {_THEOREM}",
            f"The least bound over c on the gap of descent without noise is below {vacuous}",
            "largest loss - least of (bound + what the noise changes in the two risks), where that "
            "is smallest",
            note="the bound at c holds with that noise; c is chosen on the other tasks",
            revision=alone,
            redrawn=fresh,
            **bound,
        ),
        Statement(
            "says_something_by_spread",
            f"{_THEOREM} and Assumption 1, our reading, in our setting",
            f"With noise as large as the spread of the updates the bound is below {vacuous}",
            "largest loss - bound where the bound is largest",
            note=SPREAD,
            revision="added",
            redrawn=fresh,
            **bound,
        ),
    )


def _about_the_order(config, suffix, which):
    which_c = "at the best c" if suffix == "" else "with noise as large as its spread"
    changed = "it was c = 0.01 alone" if suffix == "" else "added"
    said = {"over": "tasks", "note": which, "revision": changed, "redrawn": "fresh tasks"}
    source = f"{_THEOREM} and Remark 4, our reading, in our setting"
    return (
        Statement(
            f"ranks{suffix}",
            source,
            "The bound ranks depths, numbers of demonstrations and noises as the gap does, "
            f"{which_c}",
            "Spearman's correlation over the whole grid",
            at_least=config.rank_correlation,
            **said,
        ),
        Statement(
            f"ranks_at_equal_n{suffix}",
            source,
            f"It ranks depths and noises as the gap does where n is the same, {which_c}",
            "Spearman's correlation at equal n, averaged over n,",
            at_least=config.rank_correlation,
            **said,
        ),
        Statement(
            f"better_than_counting{suffix}",
            "derived here",
            f"The bound ranks the grid at least as well as 1/√n alone, {which_c}",
            "the paired difference of the rank correlations",
            at_least=config.advantage,
            **said,
        ),
    )
