"""The sizes and the statements of `covariate_shift`, fixed before its first run."""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

SHIFTS = (1.0, 3.0)  # scales at which the length of the test prompt varies
PATIENTS = 442  # rows of the table
LEARNERS = ("trained layer", "gradient descent", "ridge", "mean")  # on the table


@dataclass(frozen=True)
class Config:
    """One layer trained at (identity, n), tested at other scales, lengths and on a real table."""

    d: int = 6
    n: int = 15
    scales: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)  # Λ' = c Λ
    lengths: tuple[int, ...] = (5, 10, 15, 30, 60, 120, 240, 480)  # m, at scale 1 and at 3
    runs: int = 12
    steps: int = 1000
    batch: int = 256
    learning_rate: float = 0.05
    init_scale: float = 0.1
    descent_steps: int = 5  # of gradient descent with the step 1 / λ_max of each prompt
    test_prompts: int = 5000  # for each run, its own
    # The patients of the table are split into groups: prompts of one share rows, groups do not.
    table_groups: int = 12
    table_prompts: int = 600  # of each group
    table_lengths: tuple[int, ...] = (5, 10, 20, 30)  # demonstrations in a prompt from the table
    seed: int = 1
    # Criteria.
    theory_ratio: float = 0.05  # relative difference between measured and predicted risk

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 1, 64)
        checks.between(self, "table_groups", 2, PATIENTS // 2)
        most = PATIENTS // self.table_groups - 1  # and one for the query
        checks.between(self, "n", 1, most)
        checks.each_between(self, "table_lengths", 1, most)
        checks.each_positive(self, "scales")
        checks.each_between(self, "lengths", 1, None)
        checks.between(self, "runs", 2, None)
        for name in ("steps", "batch", "descent_steps", "test_prompts", "table_prompts"):
            checks.between(self, name, 1, None)
        for name in ("learning_rate", "init_scale", "theory_ratio"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        scales=(1.0, 3.0),
        lengths=(2, 4),
        runs=2,
        steps=10,
        batch=8,
        test_prompts=64,
        table_groups=3,
        table_prompts=4,
        table_lengths=(5,),
    ),
    "laptop": Config(),
    "paper": Config(
        d=20, n=40, runs=16, steps=5000, batch=4096, test_prompts=100_000, table_groups=10
    ),
}


def cases(config) -> list[tuple[float, int]]:
    """(c, m): m demonstrations with covariates from N(0, cI)."""
    return [(c, config.n) for c in config.scales] + [(c, m) for c in SHIFTS for m in config.lengths]


def statements(config) -> tuple[Statement, ...]:
    return (*about_shifts(config), *about_the_table(config))


def about_shifts(config) -> tuple[Statement, ...]:
    source = "derived here from Zhang et al. 2306.09927"
    fresh = f"{config.runs} fresh runs, 8 before"
    return (
        Statement(
            "theory",
            source,
            "At other scales and lengths the trained layer has the risk that theory gives Γ^{-1}",
            "measured over predicted risk, at the worst scale and length",
            at_least=1 - config.theory_ratio,
            at_most=1 + config.theory_ratio,
            redrawn=fresh,
        ),
        Statement(
            "floor",
            source,
            f"At scale {SHIFTS[-1]:g} even the longest prompt leaves it worse than predicting zero",
            f"(risk - risk of zero) / tr Λ', same prompts, m = {config.lengths[-1]}",
            at_least=0.0,
            redrawn=fresh,
        ),
    )


def about_the_table(config) -> tuple[Statement, ...]:
    mean = f"mean of {config.runs} layers and {config.table_prompts} prompts of a group's own rows"
    groups = dict(
        over="disjoint groups of patients",
        note=f"{mean}; columns standardised over the whole table",
        revision="it was overlapping prompts of the same table, judged as independent",
    )
    return (
        Statement(
            "table",
            "derived here",
            "A layer trained on isotropic Gaussians beats the mean on a real table (diabetes)",
            f"its squared error less that of the mean, m = n = {config.n},",
            at_most=0.0,
            **groups,
        ),
        Statement(
            "table_descent",
            "derived here",
            "On that real table descent with each prompt's own step size beats the trained layer",
            f"the layer's squared error less that of descent, m = n = {config.n},",
            at_least=0.0,
            **groups,
        ),
    )
