"""The sizes of `risk_rates`, its rules and its panels."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import INCREASING, POSITIVE, Bounded, Seed, at_least, between

SQUARES, DESCENT, RIDGE, PREPROCESSED, LASSO, ORACLE = RULES = (
    "least squares",
    "descent",
    "ridge",
    "preprocessed descent",
    "Lasso",
    "least squares on the support",
)
DIRECTIONLESS = (SQUARES, DESCENT, RIDGE)
PANELS = {  # of the Dataset: the axis along which one number grows
    "by_n": "n",
    "by_s": "s",
    "by_d": "d",
    "short_by_s": "s",
    "short_by_d": "d",
}


Growing = Annotated[tuple[int, ...], at_least(1), INCREASING]


@dataclass(frozen=True)
class Config(Bounded):
    """Sparse regression with flat non-zeros ± 1/√s: one of n, s and d grows, two stand still."""

    d: Annotated[int, between(2, 256)] = 64  # covariates, where n or s grows
    s: Annotated[int, between(1, "d")] = 4  # non-zeros of w, where n or d grows
    noise_var: Annotated[float, POSITIVE] = 0.5  # of a label; its signal has variance 1
    lengths: Growing = (128, 256, 512, 1024, 2048, 4096, 8192, 16_384)  # values of n
    long: int = 2048  # rates against n are slopes from here on; against s and d, at the longest n
    short: int = 1024  # what is left over the rate falls, with n, up to here
    middle: int = 512  # the n at which that grows with s and d
    sparsities: Growing = (1, 2, 4, 8)  # values of s
    widths: Growing = (16, 32, 64, 128)  # values of d
    # Doublings of the number of steps of either descent, each 1 / λ_max of its prompt.
    doublings: Annotated[int, at_least(1)] = 12
    prompts: Annotated[int, at_least(1)] = 32  # of a run
    # Other prompts, which choose the numbers of steps and the Lasso's penalty.
    tuning: Annotated[int, at_least(1)] = 64
    runs: Annotated[int, at_least(3)] = 16
    seed: Seed = 0

    def __post_init__(self):
        super().__post_init__()
        for name in ("lengths", "sparsities", "widths"):
            values = getattr(self, name)
            if len(values) < 2:
                raise ValueError(f"{name} = {values}: choose two or more numbers that grow")
        if self.d + 2 > self.lengths[0] or max(self.widths) + 2 > self.middle:
            raise ValueError("d, widths: choose two covariates less than demonstrations, or fewer")
        if max(*self.sparsities, self.s) > min(*self.widths, self.d):
            raise ValueError("sparsities: choose no more non-zeros than covariates")
        for name in ("long", "short", "middle"):
            checks.one_of(self, name, self.lengths)
        if self.long == self.lengths[-1] or self.short == self.lengths[0]:
            raise ValueError("long, short: a slope takes two lengths or more")


TIERS = {
    "smoke": Config(
        d=3,
        s=1,
        lengths=(8, 16, 32),
        long=16,
        short=16,
        middle=16,
        sparsities=(1, 2),
        widths=(3, 4),
        doublings=3,
        prompts=32,
        tuning=4,
        runs=3,
    ),
    "laptop": Config(),
    "paper": Config(widths=(16, 32, 64, 128, 256), prompts=256, tuning=1024, runs=32),
}
