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

A4 = "modelled on A4 (2408.04532), abstract"
ON_LASSO = "modelled on A4 (2408.04532), its comparison with the Lasso"
RATE = "modelled on A4 (2408.04532), its comparison of risks"
# Õ(σ²(s/n + ds/n²)) is our reconstruction: its public text has no formula.
LEFT = "modelled on A4 (2408.04532), its risk as we reconstruct it"
FACTOR = 1.5  # within which two risks are about the same
ERRORS = 4.0  # half the width of the intervals of orders, in standard errors
PAIRED = f"the mean paired difference over the bound, ± {ERRORS:g} standard errors, at the"
KINDS = {"preprocessed": (PREPROCESSED,), "directionless": DIRECTIONLESS, "lasso": (LASSO,)}
WIDTHS = {f"d = {width}": width for width in Duel.widths}
LENGTHS = {f"n = {ratio} d": ratio for ratio in Duel.per_d}


def bound_ratios(dataset, panel):
    """The risks of a panel over the least of rules linear in the labels that ignore directions."""
    return dataset[panel] / dataset[f"{panel}_bound"]


def paired(dataset, panel, better, worse):
    """What ``worse`` loses beyond ``better``, over the bound."""
    over = bound_ratios(dataset, panel)
    return over.sel(rule=worse) - over.sel(rule=better)


def least_clear(*differences) -> tuple[float, float]:  # each with an axis "run"
    """The mean and its standard error, at the place where their ratio is smallest."""
    rows = [
        each.transpose("run", ...).values.reshape(each.sizes["run"], -1) for each in differences
    ]
    rows = np.concatenate(rows, axis=1)  # [run, place]
    means, errors = rows.mean(0), rows.std(0, ddof=1) / len(rows) ** 0.5
    place = np.argmin(means / errors)
    return float(means[place]), float(errors[place])


def ridge_lead(dataset, panel: str) -> tuple[float, float]:
    """What ridge loses beyond preprocessed descent, where w has zeros."""
    difference = paired(dataset, panel, PREPROCESSED, RIDGE)
    if panel == "by_s":
        difference = difference.isel(s=(dataset.s < results.config_of(dataset).d).values)
    return least_clear(difference)


def dense_lead(dataset) -> tuple[float, float]:
    """What the Lasso and preprocessed descent lose beyond ridge, where w has no zeros."""
    both = (paired(dataset, "by_law", RIDGE, rule) for rule in (LASSO, PREPROCESSED))
    return least_clear(*(difference.sel(law="dense") for difference in both))


def lasso_ratios(dataset, width: int):  # (law, per_d, run)
    """The risk of preprocessed descent over that of the Lasso, at one number of covariates."""
    risk = parts.part(dataset, "duel").risk.sel(width=width)
    return risk.sel(rule=PREPROCESSED) / risk.sel(rule=LASSO)


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
    each = [slopes(risks.sel(rule=rule)) for rule in KINDS[kind]]
    return max(each, key=lambda runs: abs(runs.mean() - target))


def rest(dataset, axis: str) -> np.ndarray:  # [R]
    """The slope of what preprocessed descent loses beyond least squares on the support, over short
    prompts."""
    rates = parts.part(dataset, "rates")
    short = (rates.n <= results.config_of(rates).short).values
    risks = rates.by_n.isel(n=short) if axis == "n" else rates[f"short_by_{axis}"]
    return slopes(risks.sel(rule=PREPROCESSED) - risks.sel(rule=ORACLE))


def statements(config) -> tuple[Statement, ...]:
    rows = (*_about_orders(), _about_the_lasso(config.duel), *_about_rates(config.rates))
    return tuple(row for row in rows if row.cells or row.id != "comparable")


def _about_orders():
    # The samples are the paired differences at the place where the order is least clear.
    order = partial(
        Statement,
        statistic="estimate",
        at_least=0.0,
        standard_errors=ERRORS,
        revision="numbers of runs and of prompts were chosen in four looks",
        redrawn="from fresh seeds",
    )
    yield order(
        "preprocessed_over_ridge",
        "{source}",
        "Preprocessed descent is better than ridge at every n, at every level of noise and at "
        "every sparsity below d",
        f"{PAIRED} place where it is least clear",
        sample=ridge_lead,
        cells=grid("preprocessed noise less_sparse", panel=("by_n", "by_noise", "by_s")),
        words=lambda panel: dict(source="derived here" if panel == "by_s" else A4),
    )
    yield order(
        "dense",
        "derived here",
        "Control: for dense weights neither the Lasso nor preprocessed descent is as good as ridge",
        f"{PAIRED} rule for which it is least clear",
        sample=dense_lead,
    )


def _about_the_lasso(config) -> Statement:
    everywhere = grid(
        "gaussian_16_1 gaussian_16_2 gaussian_16_4 gaussian_16_8 gaussian_16_16 gaussian_16_32 "
        "gaussian_64_1 gaussian_64_2 gaussian_64_4 gaussian_64_8 gaussian_64_16 gaussian_64_32 "
        "flat_16_1 flat_16_2 flat_16_4 flat_16_8 flat_16_16 flat_16_32 "
        "flat_64_1 flat_64_2 flat_64_4 flat_64_8 flat_64_16 flat_64_32",
        law=LAWS,
        width=WIDTHS,
        per_d=LENGTHS,
    )

    def ratio(dataset, law, width, per_d):
        return lasso_ratios(dataset, WIDTHS[width]).sel(law=law, per_d=LENGTHS[per_d]).values

    return Statement(
        "comparable",
        ON_LASSO,
        "With {law} non-zeros, {width} and {per_d}, preprocessed descent and the Lasso lose about "
        "the same",
        "the risk of preprocessed descent over that of the Lasso",
        "ratio",
        margin=FACTOR - 1,
        note="A4 says it for d up to n, in words",
        revision="added, for flat weights with n >> d have a third of the Lasso's risk",
        redrawn="fresh prompts, both laws and n = d among them",
        sample=ratio,
        cells=having(
            everywhere,
            width=[name for name, width in WIDTHS.items() if width in config.widths],
            per_d=[name for name, ratio in LENGTHS.items() if ratio in config.per_d],
        ),
        message="Preprocessed descent and the Lasso lose about the same, within a factor of 1.5",
    )


def _about_rates(config):
    runs = partial(Statement, over="pseudo-runs")

    def words(kind, **_):
        return dict(source=ON_LASSO if kind == "lasso" else RATE)

    row = partial(runs, source="{source}", words=words)
    slope = "the slope of log risk over log {axis}"
    farthest = "of least squares, descent and ridge the one that is farthest off"
    yield row(
        "falls_with_n",
        says="The risks of preprocessed descent, of the Lasso, and of least squares, descent and "
        "ridge fall like 1/n",
        measured=f"{slope} from {config.long} on",
        at_least=-1.1,
        at_most=-0.9,
        note=farthest,
        sample=lambda d, kind, axis: rate(d, kind, axis, -1),
        cells=grid("preprocessed_n directionless_n lasso_n", kind=KINDS, axis=("n",)),
    )
    at = f"at n = {config.lengths[-1]}"
    yield row(
        "pays_for",
        says="The risk of preprocessed descent grows like the number of non-zeros, and those of "
        "least squares, descent and ridge like the number of covariates",
        measured=f"{slope} {at}",
        at_least=0.9,
        at_most=1.1,
        note=farthest,
        sample=lambda d, kind, axis: rate(d, kind, axis, 1),
        cells={
            "preprocessed_s": dict(kind="preprocessed", axis="s"),
            "directionless_d": dict(kind="directionless", axis="d"),
        },
    )
    yield row(
        "does_not_depend",
        says="The risk of preprocessed descent does not depend on the number of covariates, nor do "
        "those of least squares, descent and ridge on the number of non-zeros",
        measured=f"{slope} {at}",
        at_least=-0.1,
        at_most=0.1,
        note=farthest,
        sample=rate,
        cells={
            "preprocessed_d": {"kind": "preprocessed", "axis": "d"},
            "directionless_s": {"kind": "directionless", "axis": "s"},
        },
    )
    left = "the slope of log (risk of preprocessed descent - that of least squares on the support)"
    for id, grows, over, *bounds in (
        ("left_n", "falls like 1/n² or faster", f"n up to {config.short}", None, -2.0),
        ("left_s", "grows no faster than s itself", f"s at n = {config.middle}", None, 1.25),
        ("left_d", "grows like the number of covariates", f"d at n = {config.middle}", 0.75, 1.25),
    ):
        words = f"What is left over s/n {grows}", f"{left} over log {over}"
        sample = partial(rest, axis=id[-1])
        yield runs(id, LEFT, *words, "mean", *bounds, sample=sample)
