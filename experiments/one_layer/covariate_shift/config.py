"""The sizes and the statements of `covariate_shift`, fixed before its first run."""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

SHIFTS = (1.0, 3.0)  # scales at which the length of the test prompt varies
LEARNERS = ("trained layer", "gradient descent", "ridge", "mean")  # on the table


@dataclass(frozen=True)
class Config:
    """One layer trained at (identity, n), tested at other scales, lengths and on a real table."""

    d: int = 6
    n: int = 15
    scales: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)  # Λ' = c Λ
    lengths: tuple[int, ...] = (5, 10, 15, 30, 60, 120, 240, 480)  # m, at scale 1 and at 3
    runs: int = 8
    steps: int = 1000
    batch: int = 256
    learning_rate: float = 0.05
    init_scale: float = 0.1
    descent_steps: int = 5  # of gradient descent with the step 1 / λ_max of each prompt
    test_prompts: int = 5000  # for each run, its own
    table_lengths: tuple[int, ...] = (5, 10, 20, 40, 80, 160)
    table_prompts: int = 2000
    seed: int = 0
    # Criteria.
    theory_ratio: float = 0.05  # relative difference between measured and predicted risk
    descent_drift: float = 0.05  # relative change of descent's risk / tr Λ' over all scales

    def __post_init__(self):
        checks.between(self, "d", 1, 64)
        checks.between(self, "n", 1, 441)  # the table has 442 rows
        checks.each_positive(self, "scales")
        checks.each_between(self, "lengths", 1, None)
        checks.between(self, "runs", 2, None)
        for name in ("steps", "batch", "descent_steps", "test_prompts", "table_prompts"):
            checks.between(self, name, 1, None)
        checks.each_between(self, "table_lengths", 1, 441)
        for name in ("learning_rate", "init_scale", "theory_ratio", "descent_drift"):
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
        table_lengths=(5,),
        table_prompts=16,
    ),
    "laptop": Config(),
    "paper": Config(d=20, n=40, runs=16, steps=5000, batch=4096, test_prompts=100_000),
}


def cases(config) -> list[tuple[float, int]]:
    """(c, m): m demonstrations with covariates from N(0, cI)."""
    return [(c, config.n) for c in config.scales] + [(c, m) for c in SHIFTS for m in config.lengths]


def statements(config) -> tuple[Statement, ...]:
    source = "derived here from Zhang et al. 2306.09927"
    return (
        Statement(
            "theory",
            source,
            "At other scales and lengths the trained layer has the risk that theory gives Γ^{-1}",
            "measured over predicted risk, at the worst scale and length",
            at_least=1 - config.theory_ratio,
            at_most=1 + config.theory_ratio,
        ),
        Statement(
            "floor",
            source,
            f"At scale {SHIFTS[-1]:g} even the longest prompt leaves it worse than predicting zero",
            f"(risk - risk of zero) / tr Λ', same prompts, m = {config.lengths[-1]}",
            at_least=0.0,
        ),
        Statement(
            "descent",
            "derived here",
            "Descent with each prompt's own step size has the same relative risk at all scales",
            "its largest risk / tr Λ' over its smallest, less one",
            at_most=config.descent_drift,
        ),
        Statement(
            "table",
            "derived here",
            "A layer trained on isotropic Gaussians beats the mean on the diabetes table",
            f"its squared error less that of the mean, m = n = {config.n}",
            at_most=0.0,
            over="prompts",
        ),
        Statement(
            "table_descent",
            "derived here",
            "On that table descent with each prompt's own step size beats the trained layer",
            f"the layer's squared error less that of descent, m = n = {config.n}",
            at_least=0.0,
            over="prompts",
        ),
    )
