"""What `amplification_limits` judges, by the criteria in its Config; fixed before its first run."""

from lsa_lab.claims import Statement

THEOREM = "A1 (2508.00385), Theorem 1"


def statements(config) -> tuple[Statement, ...]:
    return (
        *_about_ascent(config),
        *_about_feedback(config),
        *_about_self_coupling(config),
        *_about_examples(config),
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
            **of_restarts,
        ),
        Statement(
            "order",
            f"modelled on {THEOREM}",
            "In every linear stack, the demonstration ahead after one layer stays ahead",
            f"the last log ratio where ascent seeks the least, at budget {config.shown:g},",
            at_least=0,
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
            "With small weights nothing amplifies or equalises",
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
            "With nothing but positive feedback the ratio grows for all pairs",
            f"{grows} at the gain with the fewest,",
            "median",
            at_least=config.generic,
        ),
        Statement(
            "pull",
            source,
            "With nothing but negative feedback the ratio grows for no pair",
            f"{grows} at the gain with the most,",
            "median",
            at_most=1 - config.generic,
        ),
    )


def _about_self_coupling(config):
    right = "the share of pairs with κ > -1 for which it is right"
    return (
        Statement(
            "kappa_frozen",
            'derived here; docs/theory, "Self-coupling decides growth"',
            "κ_1 > κ_2 decides whether a ratio of contributions grows, of frozen demonstrations",
            right,
            "median",
            at_least=config.exact,
        ),
        Statement(
            "kappa_moving",
            "derived here",
            "κ_1 > κ_2 predicts whether it grows where demonstrations move",
            right,
            "median",
            at_least=config.predicts,
        ),
    )


def _about_examples(config):
    turns, last = {"statistic": "value", "at_most": 1}, "the ratio after the last layer"
    apart = "the largest relative distance in any layer"
    return (
        Statement(
            "width_1",
            'derived here; docs/theory, "Layers turn the order of flows"',
            "Layers of width 1 that pull back reverse the order",
            last,
            **turns,
        ),
        Statement(
            "width_1_law",
            'derived here; docs/theory, "The one-coordinate law"',
            "Layers of width 1 that pull back follow the law of many small layers",
            apart,
            "value",
            at_most=config.limit,
        ),
        Statement(
            "descent",
            'derived here; docs/theory, "The one-shot descent flow"',
            "Steps of gradient descent reverse the order",
            last,
            **turns,
        ),
        Statement(
            "descent_law",
            'derived here; docs/theory, "The one-shot descent flow"',
            "The flows of steps of gradient descent follow their closed form",
            apart,
            "value",
            at_most=config.rounding,
        ),
        Statement(
            "coupling",
            'derived here; docs/theory, "Self-coupling decides growth"',
            "Of two frozen demonstrations the one with the larger κ overtakes the other",
            "the ratio of contributions after the last layer",
            **turns,
        ),
        Statement(
            "coupling_law",
            'derived here; docs/theory, "The frozen demonstration"',
            "The contributions of frozen demonstrations follow their closed form",
            apart,
            "value",
            at_most=config.rounding,
        ),
    )
