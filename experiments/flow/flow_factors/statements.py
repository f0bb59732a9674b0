"""What `flow_factors` judges, by the criteria in its Config."""

from lsa_lab.claims import Statement

A1, OWN = "A1 (2508.00385)", "derived here"
ADDED = "added after a look at these runs, as another reading"


def statements(config) -> tuple[Statement, ...]:
    return (*_about_zeros(config), *_about_forms(), *_about_use(config))


def _about_zeros(config):
    equation = f"{A1}, Eq. 2, our reading, in our setting"
    medians = "the %s of their two median flows, relative to that of all others,"
    yield Statement(
        "either_or_flow",
        equation,
        "From a demonstration that is irrelevant or learned no gradient flows",
        medians % "smaller",
        at_most=config.exact,
        note='of gradient times input it is a theorem: docs/theory, "When the flow vanishes"',
    )
    yield Statement(
        "either_or_less",
        equation,
        "From a demonstration that is irrelevant or learned less gradient flows",
        medians % "larger",
        at_most=config.less,
        revision=ADDED,
    )


def _about_forms():
    advantage = "R² over the cells of the best f(s)g(r) less that of the best f(s) + g(r), of"
    yield Statement(
        "flow_is_a_sum",
        OWN,
        "The flow is a sum of relevance and novelty rather than their product",
        f"{advantage} squared flows",
        at_most=0,
    )
    yield Statement(
        "reduction_is_a_product",
        f"{A1}, open question on the conflict of factors",
        "What a demonstration takes off the error is a product rather than a sum",
        f"{advantage} error reductions, as they are or as roots, whichever is less,",
        at_least=0,
    )


def _about_use(config):
    correlation = "the rank correlation with the error reduction"
    over_classes = f"over {config.classes} classes of"
    measure = f"{A1}, flow as a measure of effectiveness, our reading, in our setting"
    return (
        Statement(
            "figure_2",
            f"{A1}, figure 2, our reading, in our setting",
            "What demonstrations take off the error rises with relevance and with novelty",
            f"the lesser rank correlation of its mean, {over_classes} one or the other,",
            at_least=config.rises,
            revision=ADDED,
        ),
        Statement(
            "flow_predicts",
            measure,
            "The size of a demonstration's flow predicts what it takes off the error",
            correlation,
            at_least=config.predicts,
        ),
        Statement(
            "flow_predicts_on_average",
            measure,
            "The larger the flow, the more do demonstrations take off the error on average",
            f"the rank correlation of its mean, {over_classes} the flow,",
            at_least=config.rises,
            note="relevance, novelty and their sum reach 1 too: this tells none from another",
            revision=ADDED,
        ),
        Statement(
            "contribution_predicts",
            OWN,
            "The size of its contribution predicts what it takes off the error",
            correlation,
            at_least=config.predicts,
        ),
        Statement(
            "contribution_or_flow",
            OWN,
            "The contribution predicts the error reduction better than the flow does",
            f"{correlation} of the contribution less that of the flow",
            at_least=0,
        ),
        Statement(
            "helps",
            f"{A1}, effective demonstrations, our reading, in our setting",
            "A demonstration that is relevant and new lowers the error",
            "the share of those with s r ≠ 0 that do",
            at_least=config.helps,
            note='on average it does, a theorem: docs/theory, "Attention with a prior"',
        ),
    )
