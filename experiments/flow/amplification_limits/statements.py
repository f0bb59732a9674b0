"""What `amplification_limits` judges, by the criteria in its Config."""

from math import exp

from lsa_lab.claims import Statement

THEOREM = "A1 (2508.00385), Theorem 1, our reading, in our setting"
EVERY = "'every stack' is our quantifier: A1's conditions are not public"


def statements(config) -> tuple[Statement, ...]:
    return (
        *_about_ascent(config),
        *_about_feedback(config),
        _about_self_coupling(config),
    )


def _about_ascent(config):
    of_restarts = {"statistic": "median", "over": "restarts"}
    return (
        Statement(
            "theorem_1",
            THEOREM,
            "In every linear stack, depth enlarges the ratio of two flows",
            "the least change of the log ratio that ascent finds, at the largest budget,",
            at_least=0,
            note=EVERY,
            **of_restarts,
        ),
        Statement(
            "order",
            THEOREM,
            "In every linear stack, the demonstration ahead after one layer stays ahead",
            f"the last log ratio where ascent seeks the least, at budget {config.shown:g},",
            at_least=0,
            note=EVERY,
            **of_restarts,
        ),
        Statement(
            "robust",
            "derived here",
            "The reversals that ascent finds are no accidents of single numbers",
            "the share of copies with errors that reverse the order, too,",
            at_least=config.generic,
            **of_restarts,
        ),
        Statement(
            "small_weights",
            "derived here",
            f"With small weights no ratio changes by more than a factor of {exp(config.small):.2f}",
            "the largest change of the log ratio, up or down, at the smallest budget,",
            at_most=config.small,
            **of_restarts,
        ),
    )


def _about_feedback(config):
    source = 'derived here; docs/theory, "Layers turn the order of flows"'
    grows = "the share of pairs, each alone, whose ratio grows in every layer,"
    return (
        Statement(
            "push",
            source,
            "With nothing but positive feedback the ratio grows in every layer for all pairs",
            f"{grows} at the gain with the fewest,",
            "median",
            at_least=config.generic,
        ),
        Statement(
            "pull",
            source,
            "With nothing but negative feedback the ratio grows in every layer for no pair",
            f"{grows} at the gain with the most,",
            "median",
            at_most=1 - config.generic,
        ),
    )


def _about_self_coupling(config):
    return Statement(
        "kappa_moving",
        "derived here",
        "κ_1 > κ_2 predicts whether a ratio of contributions grows where demonstrations move",
        "the share of pairs with κ > -1 for which it is right",
        "median",
        at_least=config.predicts,
    )
