"""The sizes of `one_layer_optimum`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

Count = Annotated[int, at_least(1)]
Counts = Annotated[tuple[int, ...], at_least(1)]
Scales = Annotated[tuple[float, ...], POSITIVE]
TASKS = ("isotropic", "anisotropic", "noisy")
SHIFTS = (1.0, 3.0)  # scales at which the length of the test prompt varies
PATIENTS = 442  # rows of the table
LEARNERS = ("trained layer", "gradient descent", "ridge", "mean")  # on the table


@dataclass(frozen=True)
class Shift(Bounded):
    """One layer trained at (identity, n), tested at other scales, lengths and on a real table."""

    d: Annotated[int, between(1, 64)] = 6
    n: Count = 15
    scales: Scales = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)  # Λ' = c Λ
    lengths: Counts = (5, 10, 15, 30, 60, 120, 240, 480)  # m, at scale 1 and at 3
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
    table_lengths: Counts = (5, 10, 20, 30)  # demonstrations in a prompt from the table
    seed: Seed = 1

    def __post_init__(self):
        super().__post_init__()
        most = PATIENTS // self.table_groups - 1  # and one for the query
        checks.between(self, "n", 1, most)
        checks.each_between(self, "table_lengths", 1, most)


@dataclass(frozen=True)
class Config(Bounded):
    """One trained layer beside the closed-form optimum, on three tasks and several lengths."""

    d: Annotated[int, between(1, 64)] = 5
    lengths: Counts = (4, 8, 16, 32, 64)  # values of n
    heads: Counts = (1, 4)  # of the layer, trained with each number
    noise_var: Annotated[float, at_least(0)] = 0.5  # of the task "noisy"
    runs: Annotated[int, at_least(2)] = 8
    steps: Count = 1200
    batch: Count = 64
    learning_rate: Annotated[float, POSITIVE] = 0.15
    init_scale: Annotated[float, POSITIVE] = 0.1
    test_prompts: Count = 20_000
    seed: Seed = 0
    shift: Shift = Shift()  # covariates whose law differs between training and test


_SMALL = dict(d=2, runs=2, steps=10, batch=8, test_prompts=64)
_TABLE = dict(table_groups=3, table_prompts=4, table_lengths=(5,))
_LARGE = dict(runs=16, batch=4096)
TIERS = {
    "smoke": Config(
        **_SMALL,
        lengths=(2, 4),
        heads=(1, 2),
        shift=Shift(**_SMALL, **_TABLE, n=4, scales=(1.0, 3.0), lengths=(2, 4)),
    ),
    "laptop": Config(),
    "paper": Config(
        **_LARGE,
        d=8,
        lengths=(4, 8, 16, 32, 64, 128, 256),
        steps=2000,
        shift=Shift(**_LARGE, d=20, n=40, steps=5000, test_prompts=100_000, table_groups=10),
    ),
}


def cases(config) -> list[tuple[float, int]]:
    """(c, m): m demonstrations with covariates from N(0, cI)."""
    return [(c, config.n) for c in config.scales] + [(c, m) for c in SHIFTS for m in config.lengths]
