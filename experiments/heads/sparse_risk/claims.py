"""What `sparse_risk` judges: paired differences of two rules, ratios to the Lasso, and slopes.

Bounds of orders and of slopes were fixed before the first runs; the sizes of what is paired were
settled in four runs at the laptop tier. Known before the slopes were n · excess / σ² of
preprocessed descent at six sizes (docs/theory, "Trials before the experiments"), and that it tends
to s. The duel with the Lasso was judged at large n and flat weights alone; both laws, n = d and the
factor of 1.5, which heads_per_layer has for what is near the sparse Bayes rule, were added after a
look at that. All but the rates was then sampled anew, once, with steps that are powers of two.
"""

from functools import partial

import numpy as np

from experiments.heads.rule_names import LASSO, RIDGE
from experiments.heads.sparse_risk.config import DIRECTIONLESS, LAWS, ORACLE, PREPROCESSED, Duel
from lsa_lab.judging.statements import Statement, grid, having
from lsa_lab.judging.statistics import jackknife
from lsa_lab.store import parts, results

HERE = "derived here"
A4 = "modelled on A4 (2408.04532), abstract"
ON_LASSO = "modelled on A4 (2408.04532), its comparison with the Lasso"
RATE = "modelled on A4 (2408.04532), its comparison of risks"
# Õ(σ²(s/n + ds/n²)) is our reconstruction: its public text has no formula.
LEFT = "modelled on A4 (2408.04532), its risk as we reconstruct it"
LASSO_S = "the risk of preprocessed descent over that of the Lasso"
FACTOR = 1.5  # within which two risks are about the same
ERRORS = 4.0  # half the width of the intervals of orders, in standard errors
PAIRED = f"mean paired difference / bound, ± {ERRORS:g} standard errors, at its least clear"
KINDS = {  # of rules: how they are called, and which of them is judged
    "preprocessed": ("preprocessed descent", ""),
    "directionless": ("squares, descent, ridge", ", whichever is farthest off,"),
    "lasso": ("the Lasso", ""),
}


def bound_ratios(dataset, panel):
    """The risks of a panel over the least of rules linear in the labels that ignore directions."""
    return dataset[panel] / dataset[f"{panel}_bound"]


def paired(dataset, panel, better, worse):
    """What ``worse`` loses beyond ``better``, over the bound."""
    over = bound_ratios(dataset, panel)
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


def ridge_ratios(dataset, panel: str):
    """What ridge loses beyond preprocessed descent, where w has zeros."""
    difference = paired(dataset, panel, PREPROCESSED, RIDGE)
    if panel == "by_s":
        difference = difference.isel(s=(dataset.s < results.config_of(dataset).d).values)
    return difference


def lasso_ratios(dataset, width: int):  # (law, per_d, run)
    """The risk of preprocessed descent over that of the Lasso, at one number of covariates."""
    risk = parts.part(dataset, "duel").risk.sel(width=width)
    return risk.sel(rule=PREPROCESSED) / risk.sel(rule=LASSO)


def left_over(risks):
    """What preprocessed descent loses beyond least squares on the support."""
    return risks.sel(rule=PREPROCESSED) - risks.sel(rule=ORACLE)


def slopes(risks) -> np.ndarray:  # axes run and one of n, s, d -> [R]
    (axis,) = set(risks.dims) & {"n", "s", "d"}
    x = np.log(risks[axis].values)

    def slope(means):
        return np.polyfit(x, np.log(means), 1)[0]

    return jackknife(slope, risks.transpose("run", axis).values)


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
    lasso, rates = _about_the_lasso(config.duel), _about_rates(config.rates)
    return (*_about_orders(config), *lasso, *rates)


def _about_orders(config):
    against = {
        "by_n": dict(source=A4, place="n", every="n"),
        "by_noise": dict(source=A4, place="noise", every="level of noise"),
        "by_s": dict(source=HERE, place="s", every="sparsity below d"),
    }

    # The samples are the paired differences at the place where the order is least clear.
    order = partial(
        Statement,
        statistic="estimate",
        at_least=0.0,
        standard_errors=ERRORS,
        revision="sizes settled in four looks",
        redrawn="sampled anew from fresh seeds",
    )

    def dense(d):
        both = (paired(d, "by_law", RIDGE, rule) for rule in (LASSO, PREPROCESSED))
        return least_clear(*(difference.sel(law="dense") for difference in both))

    yield order(
        "preprocessed_over_ridge",
        "{source}",
        "Preprocessed descent is better than ridge at every {every}",
        f"{PAIRED} {{place}}",
        sample=lambda d, panel: least_clear(ridge_ratios(d, panel)),
        cells=grid("preprocessed noise less_sparse", panel=against),
        words=lambda panel: against[panel],
        message="Preprocessed descent is better than ridge at every n, at every level of noise "
        "and at every sparsity below d",
    )
    yield order(
        "dense",
        HERE,
        "Control: for dense weights neither the Lasso nor preprocessed descent is as good as ridge",
        f"{PAIRED} rule",
        sample=dense,
    )


def _about_the_lasso(config):
    everywhere = grid(
        "gaussian_16_1 gaussian_16_2 gaussian_16_4 gaussian_16_8 gaussian_16_16 gaussian_16_32 "
        "gaussian_64_1 gaussian_64_2 gaussian_64_4 gaussian_64_8 gaussian_64_16 gaussian_64_32 "
        "flat_16_1 flat_16_2 flat_16_4 flat_16_8 flat_16_16 flat_16_32 "
        "flat_64_1 flat_64_2 flat_64_4 flat_64_8 flat_64_16 flat_64_32",
        law=LAWS,
        width=Duel.widths,
        per_d=Duel.per_d,
    )
    cells = having(everywhere, width=config.widths, per_d=config.per_d)
    row = partial(Statement, source=ON_LASSO, statistic="ratio", over="runs")
    comparable = row(
        "comparable",
        says="With {law} non-zeros, d = {width} and n = {per_d} d, preprocessed descent and the "
        "Lasso lose about the same",
        measured=LASSO_S,
        margin=FACTOR - 1,
        note="A4 says it for d up to n, in words",
        revision="added after a look at flat weights with n >> d, where it is a third",
        redrawn="fresh prompts, both laws and n = d among them",
        sample=lambda d, law, width, per_d: lasso_ratios(d, width).sel(law=law, per_d=per_d).values,
        cells=cells,
        message="Preprocessed descent and the Lasso lose about the same, within a factor of 1.5",
    )
    yield from (comparable,) * bool(cells)
    yield row(
        "flat",
        says="With flat non-zeros and n >> d preprocessed descent is better than the Lasso",
        measured=f"{LASSO_S} at d = {config.widths[0]}, n = {config.per_d[-1]} d,",
        at_most=1.0,
        note="where it is clearest: see comparable for all n / d and both laws",
        revision="sizes settled in four looks; a ratio, it was a difference",
        redrawn="fresh prompts",
        sample=lambda d: lasso_ratios(d, config.widths[0]).sel(law="flat")[-1].values,
    )


def _about_rates(config):
    def words(kind, axis):
        place = f"n from {config.long} on" if axis == "n" else f"{axis} at n = {config.lengths[-1]}"
        name, farthest = KINDS[kind]
        number = {"s": "non-zeros", "d": "covariates"}.get(axis, "")
        slope = f"the slope of log risk of {name}{farthest} over log {place}"
        source = ON_LASSO if kind == "lasso" else RATE
        return dict(source=source, name=name, number=number, slope=slope)

    runs = partial(Statement, over="pseudo-runs")
    row = partial(runs, source="{source}", measured="{slope}", words=words)
    yield row(
        "falls_with_n",
        says="The risk of {name} falls like 1/n",
        at_least=-1.1,
        at_most=-0.9,
        sample=lambda d, kind, axis: rate(d, kind, axis, -1),
        cells=grid("preprocessed_n directionless_n lasso_n", kind=KINDS, axis=("n",)),
        message="The risks of preprocessed descent, of the Lasso, and of least squares, descent "
        "and ridge fall like 1/n",
    )
    yield row(
        "pays_for",
        says="The risk of {name} grows like the number of {number}",
        at_least=0.9,
        at_most=1.1,
        sample=lambda d, kind, axis: rate(d, kind, axis, 1),
        cells={
            "preprocessed_s": {"kind": "preprocessed", "axis": "s"},
            "directionless_d": {"kind": "directionless", "axis": "d"},
        },
        message="The risk of preprocessed descent grows like the number of non-zeros, and those of "
        "least squares, descent and ridge like the number of covariates",
    )
    yield row(
        "does_not_depend",
        says="The risk of {name} does not depend on the number of {number}",
        at_least=-0.1,
        at_most=0.1,
        sample=rate,
        cells={
            "preprocessed_d": {"kind": "preprocessed", "axis": "d"},
            "directionless_s": {"kind": "directionless", "axis": "s"},
        },
        message="The risk of preprocessed descent does not depend on the number of covariates, nor "
        "do those of least squares, descent and ridge on the number of non-zeros",
    )
    left = "the slope of log (risk of preprocessed descent - that of least squares on the support)"
    middle = f"at n = {config.middle}"
    for id, grows, over, bounds in (
        ("left_n", "falls like 1/n² or faster", f"n up to {config.short}", (None, -2.0)),
        ("left_s", "grows with s no faster than s itself", f"s {middle}", (None, 1.25)),
        ("left_d", "grows like the number of covariates", f"d {middle}", (0.75, 1.25)),
    ):
        yield runs(
            id,
            LEFT,
            f"What is left over s/n {grows}",
            f"{left} over log {over}",
            at_least=bounds[0],
            at_most=bounds[1],
            sample=lambda d, axis=id[-1]: rest(d, axis),
        )
