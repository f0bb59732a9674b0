"""The sizes of `covariate_shift`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

SHIFTS = (1.0, 3.0)  # scales at which the length of the test prompt varies
PATIENTS = 442  # rows of the table
LEARNERS = ("trained layer", "gradient descent", "ridge", "mean")  # on the table

Count = Annotated[int, at_least(1)]
Lengths = Annotated[tuple[int, ...], at_least(1)]
Scales = Annotated[tuple[float, ...], POSITIVE]


@dataclass(frozen=True)
class Config(Bounded):
    """One layer trained at (identity, n), tested at other scales, lengths and on a real table."""

    d: Annotated[int, between(1, 64)] = 6
    n: Count = 15
    scales: Scales = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)  # Λ' = c Λ
    lengths: Lengths = (5, 10, 15, 30, 60, 120, 240, 480)  # m, at scale 1 and at 3
    runs: Annotated[int, at_least(2)] = 12
    steps: Count = 1000
    batch: Count = 256
    learning_rate: Annotated[float, POSITIVE] = 0.05
    init_scale: Annotated[float, POSITIVE] = 0.1
    descent_steps: Count = 5  # of gradient descent with the step 1 / λ_max of each prompt
    test_prompts: Count = 5000  # for each run, its own
    # The patients of the table are split into groups: prompts of one share rows, groups do not.
    table_groups: Annotated[int, between(2, PATIENTS // 2)] = 12
    table_prompts: Count = 600  # of each group
    table_lengths: Lengths = (5, 10, 20, 30)  # demonstrations in a prompt from the table
    seed: Seed = 1

    def __post_init__(self):
        super().__post_init__()
        most = PATIENTS // self.table_groups - 1  # and one for the query
        checks.between(self, "n", 1, most)
        checks.each_between(self, "table_lengths", 1, most)


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
