"""What `flow_factors` judges."""

from functools import partial

from experiments.flow.flow_factors.config import OVER
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst

PREDICTS = 0.3  # a rank correlation of at least this is a prediction
RISES = 0.9  # a rank correlation over classes of at least this is a rise
A1, OWN = "A1 (2508.00385)", "derived here"
EFFECT = f"{A1}, effective demonstrations, our reading, in our setting"
MEASURE = f"{A1}, flow as a measure of effectiveness, our reading, in our setting"
ADDED = "added after a look at these runs, as another reading"


def numbers(dataset):
    """The Dataset, a run after the other."""
    return dataset.transpose("run", ...)


def zero_flows(best):  # -> (run, kind)
    return best.of_kind.sel(measure="flow", kind=["irrelevant", "learned"])


def product_advantage(best, quantity):  # -> (run, scale)
    """R² of the best product less that of the best sum."""
    ahead = best.r2.sel(form="product") - best.r2.sel(form="sum")
    return ahead.sel(quantity=quantity)


def correlation(best, predictor, over=OVER[0]):  # -> (run, ...)
    return best.correlation.sel(over=over, predictor=predictor)


def class_correlation(best, factors):  # -> [R]
    """The rank correlation over classes of the flow, or the lesser of relevance and of novelty."""
    names = ["relevance", "novelty"] if factors == "relevance and novelty" else [factors]
    return correlation(best, names, OVER[1]).min("predictor").values


def statements(config) -> tuple[Statement, ...]:
    return (*_form_statements(), *_zero_statements(), *_use_statements(config))


def _form_statements():
    advantage = "R² over the cells of the best f(s)g(r) less that of the best f(s) + g(r), of"
    return (
        Statement(
            "reduction_is_a_product",
            f"{A1}, open question on the conflict of factors",
            "What a demonstration takes off the error is a product rather than a sum",
            f"{advantage} error reductions, as they are or as roots, whichever is less,",
            at_least=0,
            sample=lambda r: worst(
                product_advantage(r, "error reduction"), lambda runs: -runs.mean()
            ),
        ),
    )


def _zero_statements():
    equation = f"{A1}, Eq. 2, our reading, in our setting"
    medians = "of their two median flows, relative to that of all others,"
    return (
        Statement(
            "either_or_flow",
            equation,
            "From a demonstration that is irrelevant or learned no gradient flows",
            f"the smaller {medians}",
            at_most=1e-10,
            note='of gradient times input it is a theorem: docs/theory, "When the flow vanishes"',
            sample=lambda r: zero_flows(r).min("kind").values,
        ),
        Statement(
            "either_or_less",
            equation,
            "From a demonstration that is irrelevant or learned less gradient flows",
            f"the larger {medians}",
            at_most=1 / 1.1,
            revision=ADDED,
            sample=lambda r: zero_flows(r).max("kind").values,
        ),
    )


def _use_statements(config):
    again = partial(Statement, redrawn=f"{config.runs} fresh runs")
    average = {
        "flow": dict(
            source=MEASURE,
            says="The larger the flow, the more do demonstrations take off the error on average",
            what="the rank correlation of its mean,",
            of="the flow",
            note="relevance, novelty and their sum reach 1 too: this tells none from another",
        ),
        "relevance and novelty": dict(
            source=f"{A1}, figure 2, our reading, in our setting",
            says="What demonstrations take off the error rises with relevance and with novelty",
            what="the lesser rank correlation of its mean,",
            of="one or the other",
            note="",
        ),
    }
    single = {
        "flow": dict(source=MEASURE, whose="a demonstration's"),
        "contribution": dict(source=OWN, whose="its"),
    }
    return (
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
            revision="added after a look, in place of that bound",
            sample=lambda r, rule: r.lowers.sel(rule=rule).values,
            cells=grid("share_of_attention share_of_bayes", rule=("attention", "Bayes rule")),
            message="A demonstration that is relevant and new lowers the error of attention and of "
            "the Bayes rule in these shares of cases",
        ),
        Statement(
            "predicts",
            "{source}",
            "The size of {whose} {predictor} predicts what it takes off the error",
            "the rank correlation with the error reduction",
            at_least=PREDICTS,
            note="the best predictor is in predicts_ceiling",
            sample=lambda r, predictor: correlation(r, predictor).values,
            cells=grid("flow_predicts contribution_predicts", predictor=("flow", "contribution")),
            words=lambda predictor: single[predictor],
            message="The size of a demonstration's flow, or of its contribution, predicts what it "
            "takes off the error",
        ),
        again(
            "predicts_ceiling",
            OWN,
            "What a demonstration is expected to take off the error, given the prompt, predicts "
            "what it does by this much",
            "the rank correlation with the error reduction",
            unjudged="the best that a predictor of single demonstrations can do",
            revision="added after a look: the null of both predictions",
            sample=lambda r: r.ceiling.values,
        ),
        Statement(
            "rises",
            "{source}",
            "{says}",
            f"{{what}} over {config.classes} classes of {{of}},",
            at_least=RISES,
            note="{note}",
            revision=ADDED,
            sample=class_correlation,
            cells=grid(
                "flow_predicts_on_average figure_2", factors=("flow", "relevance and novelty")
            ),
            words=lambda factors: average[factors],
            message="What demonstrations take off the error on average rises with their flow, and "
            "with relevance and novelty",
        ),
    )
