"""The sizes and the statements of `risk_rates`, fixed before its first run.

Known before, from docs/theory, "Trials before the experiments": n · excess / σ² of preprocessed
descent at six sizes with n up to 1024, and that it tends to s.
"""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

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


@dataclass(frozen=True)
class Config:
    """Sparse regression with flat non-zeros ± 1/√s: one of n, s and d grows, two stand still."""

    d: int = 64  # covariates, where n or s grows
    s: int = 4  # non-zeros of w, where n or d grows
    noise_var: float = 0.5  # of a label; its signal has variance 1
    lengths: tuple[int, ...] = (128, 256, 512, 1024, 2048, 4096, 8192, 16_384)  # values of n
    long: int = 2048  # rates against n are slopes from here on; against s and d, at the longest n
    short: int = 1024  # what is left over the rate falls, with n, up to here
    middle: int = 512  # the n at which that grows with s and d
    sparsities: tuple[int, ...] = (1, 2, 4, 8)  # values of s
    widths: tuple[int, ...] = (16, 32, 64, 128)  # values of d
    doublings: int = 12  # of the number of steps of either descent, each 1 / λ_max of its prompt
    prompts: int = 32  # of a run
    tuning: int = 64  # other prompts, which choose the numbers of steps and the Lasso's penalty
    runs: int = 16
    seed: int = 0
    # Criteria: slopes of log risk over the log of what grows.
    margin: float = 0.1  # from the slope that is said
    logarithm: float = 0.5  # the most that a logarithm of d may look like
    least: float = 0.5  # slope of s log(d/s) over log s: from here to 1
    left_margin: float = 0.25  # of what is left over the rate, against s and d

    def __post_init__(self):
        checks.kinds(self)
        for name in ("lengths", "sparsities", "widths"):
            values = getattr(self, name)
            checks.each_between(self, name, 1, None)
            if len(values) < 2 or list(values) != sorted({*values}):
                raise ValueError(f"{name} = {values}: choose two or more numbers that grow")
        checks.between(self, "d", 2, 256)
        checks.between(self, "s", 1, self.d)
        if self.d + 2 > self.lengths[0] or max(self.widths) + 2 > self.middle:
            raise ValueError("d, widths: choose two covariates less than demonstrations, or fewer")
        if max(*self.sparsities, self.s) > min(*self.widths, self.d):
            raise ValueError("sparsities: choose no more non-zeros than covariates")
        for name in ("long", "short", "middle"):
            checks.one_of(self, name, self.lengths)
        if self.long == self.lengths[-1] or self.short == self.lengths[0]:
            raise ValueError("long, short: a slope takes two lengths or more")
        for name in ("doublings", "prompts", "tuning"):
            checks.between(self, name, 1, None)
        checks.between(self, "runs", 3, None)
        for name in ("noise_var", "margin", "logarithm", "least", "left_margin"):
            checks.positive(self, name)
        checks.seed(self, "seed")


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

_RATE = "modelled on A4 (2408.04532), its comparison of risks"
_LASSO = "modelled on A4 (2408.04532), its comparison with the Lasso"
_LEFT = "modelled on A4 (2408.04532), its risk as we reconstruct it"


def statements(config) -> tuple[Statement, ...]:
    return (*_rates(config), *_of_the_lasso(config), *_left_over(config))


def _row(config, id, source, says, whose, low, high) -> Statement:
    """A slope between two bounds; against what, the end of the id says."""
    config_of = {
        "n": f"n from {config.long} on",
        "s": f"s at n = {config.lengths[-1]}",
        "d": f"d at n = {config.lengths[-1]}",
        "left_n": f"n up to {config.short}",
        "left_s": f"s at n = {config.middle}",
        "left_d": f"d at n = {config.middle}",
    }
    axis = id if id in config_of else id[-1]
    measured = f"the slope of log {whose} over log {config_of[axis]}"
    return Statement(id, source, says, measured, at_least=low, at_most=high, over="pseudo-runs")


def _rates(config):
    own, margin = "the risk of preprocessed descent", config.margin
    others = "the risk, of least squares, descent or ridge, whose slope is farthest off,"
    for id, says, whose, slope in (
        ("preprocessed_n", "The risk of preprocessed descent falls like 1/n", own, -1),
        ("preprocessed_s", "It grows like the number of non-zeros", own, 1),
        ("preprocessed_d", "It does not depend on the number of covariates", own, 0),
        ("directionless_n", "Least squares, descent and ridge fall like 1/n too", others, -1),
        ("directionless_s", "They do not depend on the number of non-zeros", others, 0),
        ("directionless_d", "They grow like the number of covariates", others, 1),
    ):
        yield _row(config, id, _RATE, says, whose, slope - margin, slope + margin)


def _of_the_lasso(config):
    own, margin = "the risk of the Lasso", config.margin
    for id, says, *bounds in (
        ("lasso_n", "The risk of the Lasso falls like 1/n", -1 - margin, -1 + margin),
        ("lasso_s", "It grows like s log(d/s): with s, but less", config.least, 1.0),
        ("lasso_d", "It grows with d, but like a logarithm", 0.0, config.logarithm),
    ):
        yield _row(config, id, _LASSO, says, own, *bounds)


def _left_over(config):
    """Õ(σ²(s/n + ds/n²)) is our reconstruction: its public text has no formula."""
    own = "(risk of preprocessed descent - that of least squares on the support)"
    margin = config.left_margin
    for id, says, low, high in (
        ("left_n", "What is left over s/n falls like 1/n² or faster", None, -2.0),
        ("left_s", "It grows with s no faster than s itself", None, 1 + margin),
        ("left_d", "It grows like the number of covariates", 1 - margin, 1 + margin),
    ):
        yield _row(config, id, _LEFT, says, own, low, high)
