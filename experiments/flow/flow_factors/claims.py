"""What `flow_factors` judges."""

from functools import partial

from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst

A1 = "A1 (2508.00385)"
EQUATION = f"{A1}, Eq. 2, our reading, in our setting"
EFFECT = f"{A1}, effective demonstrations, our reading, in our setting"
MEASURE = f"{A1}, flow as a measure of effectiveness, our reading, in our setting"
ADDED = "added as another reading"


def numbers(dataset):
    """The Dataset, a run after the other."""
    return dataset.transpose("run", ...)


def zero_flows(best):  # -> (run, kind)
    return best.of_kind.sel(measure="flow", kind=["irrelevant", "learned"])


def product_advantage(best):  # -> [R]
    """R² of the best product less that of the best sum, in the scale where it is less."""
    r2 = best.r2.sel(quantity="error reduction")
    return worst(r2.sel(form="product") - r2.sel(form="sum"), lambda runs: -runs.mean())


def class_correlation(best, factors):  # -> [R]
    """The rank correlation over classes of the flow, or the lesser of relevance and of novelty."""
    of_factor = best.correlation.sel(over="classes", predictor=factors.split(" and "))
    return of_factor.min("predictor").values


def statements(config) -> tuple[Statement, ...]:
    again = partial(Statement, redrawn=f"{config.runs} fresh runs")
    return (
        Statement(
            "reduction_is_a_product",
            f"{A1}, open question on the conflict of factors",
            "What a demonstration takes off the error is a product rather than a sum",
            "R² over the cells of the best f(s)g(r) less that of the best f(s) + g(r), of error "
            "reductions, as they are or as roots, whichever is less,",
            at_least=0,
            sample=product_advantage,
        ),
        Statement(
            "either_or_flow",
            EQUATION,
            "From a demonstration that is irrelevant or learned no gradient flows",
            "the smaller of their two median flows, relative to that of all others,",
            at_most=1e-10,
            note='of gradient times input it is a theorem: docs/theory, "When the flow vanishes"',
            sample=lambda r: zero_flows(r).min("kind").values,
        ),
        Statement(
            "either_or_less",
            EQUATION,
            "From a demonstration that is irrelevant or learned less gradient flows",
            "the larger of their two median flows, relative to that of all others,",
            at_most=1 / 1.1,
            revision=ADDED,
            sample=lambda r: zero_flows(r).max("kind").values,
        ),
        again(
            "helps",
            EFFECT,
            "A demonstration that is relevant and new lowers the error on average",
            "what those with s r ≠ 0 take off the error, over the error without",
            at_least=0,
            note='a theorem: docs/theory, "Attention with a prior"',
            revision="it was the share that lowers the error, at least .9",
            sample=lambda r: r.taken.values,
        ),
        again(
            "share",
            EFFECT,
            "A demonstration that is relevant and new lowers the error of {rule} in this share of "
            "cases",
            "the share of those with s r ≠ 0 that do",
            unjudged="at least .9 was asked, which the Bayes rule is far from",
            revision="added in place of that bound",
            sample=lambda r, rule: r.lowers.sel(rule=rule).values,
            cells=grid("share_of_attention share_of_bayes", rule=("attention", "Bayes rule")),
            message="A demonstration that is relevant and new lowers the error of attention and of "
            "the Bayes rule in these shares of cases",
        ),
        Statement(
            "predicts",
            "{source}",
            "The size of a demonstration's {predictor} predicts what it takes off the error",
            "the rank correlation with the error reduction",
            at_least=0.3,
            note="the best predictor is in predicts_ceiling",
            sample=lambda r, predictor: (
                r.correlation.sel(over="demonstrations", predictor=predictor).values
            ),
            cells=grid("flow_predicts contribution_predicts", predictor=("flow", "contribution")),
            words=lambda predictor: dict(source=MEASURE if predictor == "flow" else "derived here"),
            message="The size of a demonstration's flow, or of its contribution, predicts what it "
            "takes off the error",
        ),
        again(
            "predicts_ceiling",
            "derived here",
            "What a demonstration is expected to take off the error, given the prompt, predicts "
            "what it does by this much",
            "the rank correlation with the error reduction",
            unjudged="the best that a predictor of single demonstrations can do",
            revision="added: the null of both predictions",
            sample=lambda r: r.ceiling.values,
        ),
        Statement(
            "rises",
            "{source}",
            "What demonstrations take off the error on average rises with {factors}",
            f"the rank correlation of the mean reduction with the factor, over {config.classes} "
            "classes of it, or the lesser of two,",
            at_least=0.9,
            note="flow: relevance, novelty and their sum reach 1 too: this tells none from another",
            revision=ADDED,
            sample=class_correlation,
            cells=grid(
                "flow_predicts_on_average figure_2", factors=("flow", "relevance and novelty")
            ),
            words=lambda factors: dict(
                source=MEASURE
                if factors == "flow"
                else f"{A1}, figure 2, our reading, in our setting"
            ),
            message="What demonstrations take off the error on average rises with their flow, and "
            "with relevance and novelty",
        ),
    )
