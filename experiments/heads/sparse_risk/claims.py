"""What `sparse_risk` judges: paired differences of two rules, and slopes of log risk.

The bounds were fixed before the first runs. The sizes of what is paired were settled in four runs
at the laptop tier, with 32, 48, 64 and 64 prompts in a run: "noise" held in the first three,
"less_sparse" was undecided in the second and third; no other verdict that is still judged moved.
n = 28 and 56 were left out, and 250 steps taken for 500, to pay for the prompts. Then all was
sampled anew, once, from seed 1. Known before the slopes, from docs/theory, "Trials before the
experiments": n · excess / σ² of preprocessed descent at six sizes with n up to 1024, and that it
tends to s.
"""

from collections.abc import Callable

import numpy as np

from experiments.heads.rule_names import EQUIVARIANT, LASSO, RIDGE
from experiments.heads.sparse_risk.config import DIRECTIONLESS, ORACLE, PANELS, PREPROCESSED
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst
from lsa_lab.store import parts, results

HERE = "derived here"
A4 = "modelled on A4 (2408.04532), abstract"
ON_LASSO = "modelled on A4 (2408.04532), its comparison with the Lasso"
RATE = "modelled on A4 (2408.04532), its comparison of risks"
# Õ(σ²(s/n + ds/n²)) is our reconstruction: its public text has no formula.
LEFT = "modelled on A4 (2408.04532), its risk as we reconstruct it"
ERRORS = 4.0  # half the width of the intervals of orders, in standard errors
PAIRED = f"mean paired difference / bound, ± {ERRORS:g} standard errors, at its least clear"
LOOKED = dict(
    revision="sizes settled in four looks", redrawn="sampled anew, once, from a fresh seed"
)
# Of an order the samples are the paired differences at the place where it is least clear.
ORDER = dict(statistic="estimate", at_least=0.0, standard_errors=ERRORS, **LOOKED)
KINDS = {  # of rules: whose slope it is, and how a figure calls them
    "preprocessed": ("the risk of preprocessed descent", "preprocessed descent"),
    "directionless": (
        "the risk, of least squares, descent or ridge, whose slope is farthest off,",
        "squares, descent, ridge",
    ),
    "lasso": ("the risk of the Lasso", "Lasso"),
}


def over_bound(dataset, panel):
    """The risks of a panel over the least of rules linear in the labels that ignore directions."""
    return dataset[panel] / dataset[f"{panel}_bound"]


def paired(dataset, panel, better, worse):
    """What ``worse`` loses beyond ``better``, over the bound."""
    over = over_bound(dataset, panel)
    return over.sel(rule=worse) - over.sel(rule=better)


def places_of(*arrays) -> np.ndarray:  # [run, place]
    """Arrays with an axis "run", their other axes flattened, side by side."""
    rows = [array.transpose("run", ...).values for array in arrays]
    return np.concatenate([row.reshape(len(row), -1) for row in rows], axis=1)


def least_clear(*differences) -> tuple[float, float]:  # each with an axis "run"
    """The mean and its standard error, at the place where their ratio is smallest."""
    rows = places_of(*differences)
    means, errors = rows.mean(0), rows.std(0, ddof=1) / len(rows) ** 0.5
    place = np.argmin(means / errors)
    return float(means[place]), float(errors[place])


def over_ridge(dataset, panel: str):
    """What ridge loses beyond preprocessed descent, where w has zeros."""
    difference = paired(dataset, panel, PREPROCESSED, RIDGE)
    if panel == "by_s":
        difference = difference.isel(s=(dataset.s < results.config_of(dataset).d).values)
    return difference


def duel(dataset, signal: str):  # (run, length)
    """What the Lasso loses beyond preprocessed descent."""
    return paired(dataset, "long", PREPROCESSED, LASSO).sel(signal=signal)


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


def rate(dataset, kind: str, axis: str, target: float = 0.0) -> np.ndarray:  # [R]
    """The slope of one rule, against n over long prompts alone; of several rules that which is
    farthest from ``target``."""
    rates = parts.part(dataset, "rates")
    risks = rates[f"by_{axis}"]
    if axis == "n":
        risks = risks.isel(n=(rates.n >= results.config_of(rates).long).values)
    rules = {"preprocessed": (PREPROCESSED,), "lasso": (LASSO,), "directionless": DIRECTIONLESS}
    each = [slopes(risks.sel(rule=rule)) for rule in rules[kind]]
    return max(each, key=lambda runs: abs(runs.mean() - target))


def rest(dataset, axis: str) -> np.ndarray:  # [R]
    """The slope of what is left over the rate, over short prompts."""
    rates = parts.part(dataset, "rates")
    if axis != "n":
        return slopes(left_over(rates[f"short_by_{axis}"]))
    short = (rates.n <= results.config_of(rates).short).values
    return slopes(left_over(rates.by_n.isel(n=short)))


def statements(config) -> tuple[Statement, ...]:
    return (*_about_orders(config), *_about_rates(config.rates))


def _about_orders(config):
    against = {
        "by_n": dict(source=A4, place="n", every="n", axis="n"),
        "by_noise": dict(source=A4, place="noise", every="level of noise", axis="σ²"),
        "by_s": dict(source=HERE, place="s", every="sparsity below d", axis="s"),
    }

    panels = ("by_n", "by_noise", "by_s", "by_law")

    def dense(d):
        both = (paired(d, "by_law", RIDGE, rule) for rule in (LASSO, PREPROCESSED))
        return least_clear(*(difference.sel(law="dense") for difference in both))

    def flat(d):
        wide = paired(d, "wide", PREPROCESSED, LASSO).isel(wide_n=-1)
        return least_clear(duel(d, "flat").isel(length=-1), wide)

    yield Statement(
        "preprocessed_over_ridge",
        "{source}",
        "Preprocessed descent is better than ridge at every {every}",
        f"{PAIRED} {{place}}",
        label="preprocessed < ridge, every {axis}",
        sample=lambda d, panel: least_clear(over_ridge(d, panel)),
        cells=grid("preprocessed noise less_sparse", panel=against),
        words=lambda panel: against[panel],
        message="Preprocessed descent is better than ridge at every n, at every level of noise "
        "and at every sparsity below d",
        **ORDER,
    )
    yield Statement(
        "dense",
        HERE,
        "Control: for dense weights neither the Lasso nor preprocessed descent is as good as ridge",
        f"{PAIRED} rule",
        label="ridge < both, dense weights",
        sample=dense,
        **ORDER,
    )
    yield Statement(
        "gaussian",
        ON_LASSO,
        "With Gaussian non-zeros preprocessed descent is not as good as the Lasso at any n",
        f"{PAIRED} n",
        label="Lasso < preprocessed, Gaussian",
        sample=lambda d: least_clear(-duel(d, "gaussian")),
        **ORDER,
    )
    yield Statement(
        "flat",
        ON_LASSO,
        "With flat non-zeros and n >> d preprocessed descent is better than the Lasso",
        f"{PAIRED} d of {config.d} and {config.wide_d}, at the largest n",
        label="preprocessed < Lasso, flat",
        sample=flat,
        **ORDER,
    )
    yield Statement(
        "nonlinear",
        HERE,
        "Rules that are not linear in the labels gain little if they commute with rotations",
        "gain of the best of them / bound, where largest,",
        at_most=0.1,
        label="gain of equivariant Bayes",
        sample=lambda d: worst(
            places_of(*(paired(d, panel, EQUIVARIANT, RIDGE) for panel in panels)), np.mean
        ),
        **LOOKED,
    )


def _about_rates(config):
    grows = {
        ("preprocessed", "n"): "The risk of preprocessed descent falls like 1/n",
        ("directionless", "n"): "Least squares, descent and ridge fall like 1/n too",
        ("lasso", "n"): "The risk of the Lasso falls like 1/n",
        ("preprocessed", "s"): "It grows like the number of non-zeros",
        ("directionless", "d"): "They grow like the number of covariates",
        ("preprocessed", "d"): "It does not depend on the number of covariates",
        ("directionless", "s"): "They do not depend on the number of non-zeros",
    }

    def words(kind, axis):
        place = f"n from {config.long} on" if axis == "n" else f"{axis} at n = {config.lengths[-1]}"
        (whose, short), source = KINDS[kind], ON_LASSO if kind == "lasso" else RATE
        slope = f"the slope of log {whose} over log {place}"
        return dict(source=source, grows=grows[kind, axis], slope=slope, short=short)

    left = "the slope of log (risk of preprocessed descent - that of least squares on the support)"
    runs = dict(over="pseudo-runs")
    row = dict(source="{source}", says="{grows}", measured="{slope}", words=words, **runs)
    row["label"] = "{short}, {axis}"
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
        sample=rate,
        cells={
            "preprocessed_d": {"kind": "preprocessed", "axis": "d"},
            "directionless_s": {"kind": "directionless", "axis": "s"},
        },
        message="The risk of preprocessed descent does not depend on the number of covariates, nor "
        "do those of least squares, descent and ridge on the number of non-zeros",
        **row,
    )
    yield Statement(
        "left_n",
        LEFT,
        "What is left over s/n falls like 1/n² or faster",
        f"{left} over log n up to {config.short}",
        at_most=-2.0,
        label="left over, n",
        sample=lambda d: rest(d, "n"),
        **runs,
    )
    yield Statement(
        "left_s",
        LEFT,
        "What is left over s/n grows with s no faster than s itself",
        f"{left} over log s at n = {config.middle}",
        at_most=1.25,
        label="left over, s",
        sample=lambda d: rest(d, "s"),
        **runs,
    )
    yield Statement(
        "left_d",
        LEFT,
        "What is left over s/n grows like the number of covariates",
        f"{left} over log d at n = {config.middle}",
        at_least=0.75,
        at_most=1.25,
        label="left over, d",
        sample=lambda d: rest(d, "d"),
        **runs,
    )
