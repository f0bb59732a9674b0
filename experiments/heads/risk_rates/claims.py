"""What `risk_rates` judges: slopes of log risk over the log of what grows.

A run has a pseudo-value of a slope, so that its spread is seen. The bounds were fixed before the
first run. Known before, from docs/theory, "Trials before the experiments": n · excess / σ² of
preprocessed descent at six sizes with n up to 1024, and that it tends to s.
"""

from collections.abc import Callable

import numpy as np

from experiments.heads.risk_rates.config import (
    DIRECTIONLESS,
    LASSO,
    ORACLE,
    PANELS,
    PREPROCESSED,
)
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.store import results

RATE = "modelled on A4 (2408.04532), its comparison of risks"
ON_LASSO = "modelled on A4 (2408.04532), its comparison with the Lasso"
# Õ(σ²(s/n + ds/n²)) is our reconstruction: its public text has no formula.
LEFT = "modelled on A4 (2408.04532), its risk as we reconstruct it"
KINDS = {  # of rules: whose slope it is, and how a figure calls them
    "preprocessed": ("the risk of preprocessed descent", "preprocessed descent"),
    "directionless": (
        "the risk, of least squares, descent or ridge, whose slope is farthest off,",
        "squares, descent, ridge",
    ),
    "lasso": ("the risk of the Lasso", "Lasso"),
}


def left_over(risks):
    """What preprocessed descent loses beyond least squares on the support."""
    return risks.sel(rule=PREPROCESSED) - risks.sel(rule=ORACLE)


def slopes(risks) -> np.ndarray:  # axes run and one of n, s, d -> [R]
    (axis,) = set(risks.dims) & set(PANELS.values())
    x = np.log(risks[axis].values)

    def slope(means):
        return np.polyfit(x, np.log(means), 1)[0]

    return pseudo_values(slope, risks.transpose("run", axis).values)


def pseudo_values(statistic: Callable, runs: np.ndarray) -> np.ndarray:  # [R, ...] -> [R]
    """R θ(mean of all) - (R - 1) θ(mean of the others), for each run: their mean is the
    jackknife's estimate of θ, their spread tells its error (Tukey 1958)."""
    count, total = len(runs), runs.sum(0)
    others = [statistic((total - run) / (count - 1)) for run in runs]
    return count * statistic(total / count) - (count - 1) * np.array(others)


def risks_along(dataset, axis: str):
    """The risks by which a rate is judged: against n long prompts alone."""
    if axis != "n":
        return dataset[f"by_{axis}"]
    return dataset.by_n.isel(n=(dataset.n >= results.config_of(dataset).long).values)


def rest_along(dataset, axis: str):
    """What is left over the rate: against n short prompts alone."""
    if axis != "n":
        return left_over(dataset[f"short_by_{axis}"])
    short = dataset.n <= results.config_of(dataset).short
    return left_over(dataset.by_n.isel(n=short.values))


def rate(dataset, kind: str, axis: str, target: float = 0.0) -> np.ndarray:  # [R]
    """The slope of one rule; of several that which is farthest from ``target``."""
    rules = {"preprocessed": (PREPROCESSED,), "lasso": (LASSO,), "directionless": DIRECTIONLESS}
    risks = risks_along(dataset, axis)
    each = [slopes(risks.sel(rule=rule)) for rule in rules[kind]]
    return max(each, key=lambda runs: abs(runs.mean() - target))


def statements(config) -> tuple[Statement, ...]:
    return (*_about_rates(config), *_about_the_lasso(config), *_about_the_rest(config))


def _measured(whose: str, axis: str, config) -> str:
    places = {"n": f"n from {config.long} on"}
    places |= {axis: f"{axis} at n = {config.lengths[-1]}" for axis in ("s", "d")}
    return f"the slope of log {whose} over log {places[axis]}"


def _about_rates(config):
    sentences = {
        ("preprocessed", "n"): "The risk of preprocessed descent falls like 1/n",
        ("directionless", "n"): "Least squares, descent and ridge fall like 1/n too",
        ("lasso", "n"): "The risk of the Lasso falls like 1/n",
        ("preprocessed", "s"): "It grows like the number of non-zeros",
        ("directionless", "d"): "They grow like the number of covariates",
        ("preprocessed", "d"): "It does not depend on the number of covariates",
        ("directionless", "s"): "They do not depend on the number of non-zeros",
    }

    def words(kind, axis):
        whose, short = KINDS[kind]
        source = ON_LASSO if kind == "lasso" else RATE
        measured = _measured(whose, axis, config)
        return dict(source=source, sentence=sentences[kind, axis], slope=measured, short=short)

    row = dict(source="{source}", says="{sentence}", measured="{slope}", over="pseudo-runs")
    row |= dict(words=words, label="{short}, {axis}")
    yield Statement(
        "falls_with_n",
        at_least=-1.1,
        at_most=-0.9,
        sample=lambda d, kind, axis: rate(d, kind, axis, -1),
        cells=grid("preprocessed_n directionless_n lasso_n", kind=KINDS, axis=("n",)),
        message="The risks of preprocessed descent, of the Lasso, and of least squares, descent "
        "and ridge fall like 1/n",
        **row,
    )
    yield Statement(
        "pays_for",
        at_least=0.9,
        at_most=1.1,
        sample=lambda d, kind, axis: rate(d, kind, axis, 1),
        cells={
            "preprocessed_s": {"kind": "preprocessed", "axis": "s"},
            "directionless_d": {"kind": "directionless", "axis": "d"},
        },
        message="The risk of preprocessed descent grows like the number of non-zeros, and those of "
        "least squares, descent and ridge like the number of covariates",
        **row,
    )
    yield Statement(
        "does_not_depend",
        at_least=-0.1,
        at_most=0.1,
        sample=lambda d, kind, axis: rate(d, kind, axis, 0),
        cells={
            "preprocessed_d": {"kind": "preprocessed", "axis": "d"},
            "directionless_s": {"kind": "directionless", "axis": "s"},
        },
        message="The risk of preprocessed descent does not depend on the number of covariates, nor "
        "do those of least squares, descent and ridge on the number of non-zeros",
        **row,
    )


def _about_the_lasso(config):
    whose, short = KINDS["lasso"]
    yield Statement(
        "lasso_s",
        ON_LASSO,
        "It grows like s log(d/s): with s, but less",
        _measured(whose, "s", config),
        at_least=0.5,
        at_most=1.0,
        over="pseudo-runs",
        label=f"{short}, s",
        sample=lambda d: rate(d, "lasso", "s"),
    )
    yield Statement(
        "lasso_d",
        ON_LASSO,
        "It grows with d, but like a logarithm",
        _measured(whose, "d", config),
        at_least=0.0,
        at_most=0.5,
        over="pseudo-runs",
        label=f"{short}, d",
        sample=lambda d: rate(d, "lasso", "d"),
    )


def _about_the_rest(config):
    slope = "the slope of log (risk of preprocessed descent - that of least squares on the support)"
    yield Statement(
        "left_n",
        LEFT,
        "What is left over s/n falls like 1/n² or faster",
        f"{slope} over log n up to {config.short}",
        at_most=-2.0,
        over="pseudo-runs",
        label="left over, n",
        sample=lambda d: slopes(rest_along(d, "n")),
    )
    yield Statement(
        "left_s",
        LEFT,
        "It grows with s no faster than s itself",
        f"{slope} over log s at n = {config.middle}",
        at_most=1.25,
        over="pseudo-runs",
        label="left over, s",
        sample=lambda d: slopes(rest_along(d, "s")),
    )
    yield Statement(
        "left_d",
        LEFT,
        "It grows like the number of covariates",
        f"{slope} over log d at n = {config.middle}",
        at_least=0.75,
        at_most=1.25,
        over="pseudo-runs",
        label="left over, d",
        sample=lambda d: slopes(rest_along(d, "d")),
    )
