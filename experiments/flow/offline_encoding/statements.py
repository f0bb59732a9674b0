"""What `offline_encoding` judges, by the criteria in its Config."""

from lsa_lab.claims import Statement

A1 = "A1 (2508.00385), demonstrations are encoded offline, our reading, in our setting"
ABLATION = "A1 (2508.00385), ablation of layers, our reading, in our setting"
LARGER = "in a pool of 256, where it was counted first, the call took longer than its operations"
POOL = "the flow of the last layer with the whole pool in the prompt"


def statements(config) -> tuple[Statement, ...]:
    shots = f"{config.shots} of {config.pool}"
    return (
        *_about_costs(config),
        Statement(
            "ranks_one_layer",
            A1,
            "Eq. 2, of one layer and each demonstration alone, ranks a pool as its flows online do",
            f"the rank correlation with {POOL}, mean over queries,",
            at_least=config.ranks,
        ),
        Statement(
            "ranks_depth",
            "derived here",
            "All layers, each demonstration alone, rank a pool as its flows together do",
            f"the rank correlation with {POOL}, mean over queries,",
            at_least=config.ranks,
        ),
        Statement(
            "risk",
            A1,
            "What Eq. 2 selects is as good as what the last layer's flows select, with the whole "
            "pool in the prompt",
            f"the excess risk of {shots} by the one over that by the other",
            "ratio",
            margin=config.same,
        ),
        Statement(
            "risk_depth",
            ABLATION,
            "What the last layer's flow of each demonstration alone selects is better than what "
            "Eq. 2 selects",
            f"the excess risk of {shots} by the one over that by the other",
            "ratio",
            at_most=1.0,
        ),
        Statement(
            "random",
            A1,
            "What Eq. 2 selects is better than a random choice",
            f"the excess risk of {shots} by the one over that by the other",
            "ratio",
            at_most=1.0,
        ),
        Statement(
            "similarity",
            A1,
            "and better than the most similar demonstrations",
            f"the excess risk of {shots} by the one over that by the other",
            "ratio",
            at_most=1.0,
        ),
    )


def _about_costs(config):
    linear = "masked linear attention: the flow is linear in the query, nothing is lost"
    ways = (
        ("", "Eq. 2 on an encoded pool", "of one layer, each demonstration alone"),
        ("_all", "The flow of all layers on an encoded pool", linear),
    )
    for end, what, note in ways:
        says = f"{what} takes a query few of the %s of the last layer's flows made online"
        yield Statement(
            f"operations{end}",
            A1,
            says % "operations",
            "the compiler's count for one query, encoded over online,",
            "value",
            at_most=config.saved,
            note=note,
            revision=LARGER,
        )
        yield Statement(
            f"time{end}",
            A1,
            says % "seconds of processor time",
            "the processor time of one query, encoded over online,",
            "ratio",
            at_most=config.saved,
            over="repeats",
            note=note,
            revision=LARGER,
        )
