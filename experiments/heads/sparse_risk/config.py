"""The sizes of `sparse_risk`, its rules, and its panels."""

from dataclasses import dataclass

from experiments.heads.rule_names import EQUIVARIANT, LASSO, RIDGE, SPARSE_BAYES

SQUARES, DESCENT, PREPROCESSED = "least squares", "descent", "preprocessed descent"
ORACLE = "least squares on the support"
PLAIN = (SQUARES, DESCENT, RIDGE, PREPROCESSED, LASSO, ORACLE)
RULES = (*PLAIN, EQUIVARIANT, SPARSE_BAYES)
DIRECTIONLESS = (SQUARES, DESCENT, RIDGE)
LAWS = ("gaussian", "flat")  # of non-zeros
Growing = tuple[int, ...]


@dataclass(frozen=True)
class Rates:
    """Flat non-zeros ± 1/√s: one of n, s and d grows, two stand still."""

    d: int = 64  # covariates, where n or s grows
    s: int = 4  # non-zeros of w, where n or d grows
    noise_var: float = 0.5  # of a label; its signal has variance 1
    lengths: Growing = (128, 256, 512, 1024, 2048, 4096, 8192, 16_384)  # values of n
    long: int = 2048  # rates against n are slopes from here on; against s and d, at the longest n
    short: int = 1024  # what is left over the rate falls, with n, up to here
    middle: int = 512  # the n at which that grows with s and d
    sparsities: Growing = (1, 2, 4, 8)  # values of s
    widths: Growing = (16, 32, 64, 128)  # values of d
    # Doublings of the number of steps of either descent, each 1 / λ_max of its prompt.
    doublings: int = 12
    prompts: int = 32  # of a run
    # Other prompts, which choose the numbers of steps and the Lasso's penalty.
    tuning: int = 64
    runs: int = 16
    seed: int = 0


@dataclass(frozen=True)
class Duel:
    """Preprocessed descent and the Lasso on the same prompts, from n = d to n far above d."""

    widths: Growing = (16, 64)  # values of d
    per_d: Growing = (1, 2, 4, 8, 16, 32)  # demonstrations for each covariate
    s: int = 4  # non-zeros of w
    noise_var: float = 0.5
    doublings: int = 12
    prompts: int = 32
    tuning: int = 64
    runs: int = 16
    seed: int = 21


@dataclass(frozen=True)
class Config:
    """Rules that know the task of sparse regression, on common prompts.

    x ~ N(0, I), w with s non-zeros on a uniformly random support, E |w|² = 1. Our setting, modelled
    on A4 (2408.04532). The excess risk of a prompt is |ŵ - w|², its mean over queries.
    """

    d: int = 16
    s: int = 4  # non-zeros of w
    noise_var: float = 0.1  # of the labels, in risks against n
    lengths: tuple[int, ...] = (10, 20, 40, 80, 160)  # values of n
    n: int = 40  # against noise, against s, and with every kind of weights
    # Of the labels' noise.
    noise_vars: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
    loud: float = 0.5  # the variance of noise in all other comparisons
    sparsities: tuple[int, ...] = (1, 2, 4, 8, 16)  # values of s
    # The exact Bayes rule stands where it has no more supports to enumerate.
    supports: int = 2000
    doublings: int = 12  # of the number of steps, at most
    prompts: int = 64  # in a run
    # Prompts that choose the steps and the Lasso's penalty, for each task.
    tuning: int = 256
    runs: int = 32
    seed: int = 12
    rates: Rates = Rates()  # slopes of log risk
    duel: Duel = Duel()  # with the Lasso


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
