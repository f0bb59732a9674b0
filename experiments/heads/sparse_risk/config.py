"""The sizes of `sparse_risk`, its rules, and its panels."""

from dataclasses import dataclass
from typing import Annotated

from experiments.heads.rule_names import EQUIVARIANT, LASSO, RIDGE, SPARSE_BAYES
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import INCREASING, POSITIVE, Bounded, Seed, at_least, between

SQUARES, DESCENT, PREPROCESSED = "least squares", "descent", "preprocessed descent"
ORACLE = "least squares on the support"
PLAIN = (SQUARES, DESCENT, RIDGE, PREPROCESSED, LASSO, ORACLE)
RULES = (*PLAIN, EQUIVARIANT, SPARSE_BAYES)
DIRECTIONLESS = (SQUARES, DESCENT, RIDGE)
LAWS = ("gaussian", "flat")  # of non-zeros
Growing = Annotated[tuple[int, ...], at_least(1), INCREASING]


@dataclass(frozen=True)
class Rates(Bounded):
    """Flat non-zeros ± 1/√s: one of n, s and d grows, two stand still."""

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
        if self.d + 2 > self.lengths[0] or max(self.widths) + 2 > self.middle:
            raise ValueError("d, widths: choose two covariates less than demonstrations, or fewer")
        if max(*self.sparsities, self.s) > min(*self.widths, self.d):
            raise ValueError("sparsities: choose no more non-zeros than covariates")
        for name in ("long", "short", "middle"):
            checks.one_of(self, name, self.lengths)
        if self.long == self.lengths[-1] or self.short == self.lengths[0]:
            raise ValueError("long, short: a slope takes two lengths or more")


@dataclass(frozen=True)
class Duel(Bounded):
    """Preprocessed descent and the Lasso on the same prompts, from n = d to n far above d."""

    widths: Growing = (16, 64)  # values of d
    per_d: Growing = (1, 2, 4, 8, 16, 32)  # demonstrations for each covariate
    s: Annotated[int, at_least(1)] = 4  # non-zeros of w
    noise_var: Annotated[float, POSITIVE] = 0.5
    doublings: Annotated[int, at_least(1)] = 12
    prompts: Annotated[int, at_least(1)] = 32
    tuning: Annotated[int, at_least(1)] = 64
    runs: Annotated[int, at_least(3)] = 16
    seed: Seed = 21


@dataclass(frozen=True)
class Config(Bounded):
    """Rules that know the task of sparse regression, on common prompts.

    x ~ N(0, I), w with s non-zeros on a uniformly random support, E |w|² = 1. Our setting, modelled
    on A4 (2408.04532). The excess risk of a prompt is |ŵ - w|², its mean over queries.
    """

    d: Annotated[int, between(2, 64)] = 16
    s: Annotated[int, at_least(1)] = 4  # non-zeros of w
    noise_var: Annotated[float, POSITIVE] = 0.1  # of the labels, in risks against n
    lengths: Annotated[tuple[int, ...], at_least(1)] = (10, 20, 40, 80, 160)  # values of n
    n: int = 40  # against noise, against s, and with every kind of weights
    # Of the labels' noise.
    noise_vars: Annotated[tuple[float, ...], POSITIVE] = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
    loud: float = 0.5  # the variance of noise in all other comparisons
    sparsities: Annotated[tuple[int, ...], between(1, "d")] = (1, 2, 4, 8, 16)  # values of s
    # The exact Bayes rule stands where it has no more supports to enumerate.
    supports: Annotated[int, at_least(1)] = 2000
    doublings: Annotated[int, at_least(1)] = 12  # of the number of steps, at most
    prompts: Annotated[int, at_least(1)] = 64  # in a run
    # Prompts that choose the steps and the Lasso's penalty, for each task.
    tuning: Annotated[int, at_least(1)] = 256
    runs: Annotated[int, at_least(2)] = 32
    seed: Seed = 12
    rates: Rates = Rates()  # slopes of log risk
    duel: Duel = Duel()  # with the Lasso

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "s", 1, self.d - 1)
        checks.between(self, "n", self.d + 2, None)


TIERS = {
    "smoke": Config(
        d=3,
        s=1,
        lengths=(8,),
        n=8,
        noise_vars=(0.5,),
        sparsities=(1, 3),
        doublings=2,
        prompts=2,
        tuning=4,
        runs=2,
        rates=Rates(
            3, 1, 0.5, (8, 16, 32), 16, 16, 16, (1, 2), (3, 4), doublings=3, tuning=4, runs=3
        ),
        duel=Duel((3,), (1, 3), 1, doublings=2, prompts=2, tuning=4, runs=3),
    ),
    "laptop": Config(),
    "paper": Config(runs=80, seed=13),
}
