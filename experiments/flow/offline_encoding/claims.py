"""What `offline_encoding` judges."""

from functools import partial

from lsa_lab.judging.statements import Statement, grid

A1 = "A1 (2508.00385), demonstrations are encoded offline, our reading, in our setting"
ABLATION = "A1 (2508.00385), ablation of layers, our reading, in our setting"
WAYS = {  # encoded: the way in the Dataset, the subject of a sentence, a note
    "Eq. 2": (
        "Eq. 2, encoded",
        "Eq. 2 on an encoded pool",
        "of one layer, each demonstration alone",
    ),
    "all layers": (
        "pool, encoded",
        "The flow of all layers on an encoded pool",
        "masked linear attention: the flow is linear in the query, nothing is lost",
    ),
}
RANKS = {  # encoded: the same in the Dataset, the source, the sentence
    "Eq. 2": (
        "Eq. 2",
        A1,
        "Eq. 2, of one layer and each demonstration alone, ranks a pool as its flows online do",
    ),
    "all layers": (
        "alone",
        "derived here",
        "All layers, each demonstration alone, rank a pool as its flows together do",
    ),
}
WORSE = {  # rule: a sentence
    "random": "What Eq. 2 selects is better than a random choice",
    "similarity": "and better than the most similar demonstrations",
}


def risk_ratio(dataset, rule, other):  # -> [R]
    """The excess risk of what one rule selects over that of what another does."""
    return (dataset.error.sel(rule=rule) / dataset.error.sel(rule=other)).values


def cost_ratio(dataset, encoded) -> float:
    """Operations of a query on an encoded pool over those online."""
    counts = dataset.operations
    return float(counts.sel(way=WAYS[encoded][0]) / counts.sel(way="pool, online"))


def statements(config) -> tuple[Statement, ...]:
    return (_cost_statement(), _rank_statement(), *_risk_statements(config))


def _cost_statement():
    less = "of the last layer's flows made online"
    return Statement(
        "few_operations",
        A1,
        f"{{what}} takes a query few of the operations {less}",
        "the compiler's count for one query, encoded over online,",
        "value",
        at_most=0.1,
        note="{note}",
        revision="in a pool of 256, where it was counted first, a call outweighed its operations",
        sample=cost_ratio,
        cells=grid("operations operations_all", encoded=WAYS),
        words=lambda encoded: dict(zip(("what", "note"), WAYS[encoded][1:], strict=True)),
        message=f"On an encoded pool a query takes few of the operations {less}",
    )


def _rank_statement():
    return Statement(
        "ranks",
        "{source}",
        "{says}",
        "the rank correlation with the flow of the last layer with the whole pool in the prompt, "
        "mean over queries,",
        at_least=0.9,
        sample=lambda r, encoded: r.ranks.sel(encoded=RANKS[encoded][0]).values,
        cells=grid("ranks_one_layer ranks_depth", encoded=RANKS),
        words=lambda encoded: dict(zip(("source", "says"), RANKS[encoded][1:], strict=True)),
        message="Flows of each demonstration alone, by Eq. 2 or by all layers, rank a pool as its "
        "flows together do",
    )


def _risk_statements(config):
    measured = (
        f"the excess risk of {config.shots} of {config.pool} by the one over that by the other"
    )
    ratio = partial(Statement, measured=measured, statistic="ratio")
    return (
        ratio(
            "risk",
            A1,
            "What Eq. 2 selects is as good as what the last layer's flows select, with the whole "
            "pool in the prompt",
            margin=0.05,
            sample=lambda r: risk_ratio(r, "Eq. 2", "together"),
        ),
        ratio(
            "risk_depth",
            ABLATION,
            "What the last layer's flow of each demonstration alone selects is better than what "
            "Eq. 2 selects",
            at_most=1.0,
            sample=lambda r: risk_ratio(r, "alone", "Eq. 2"),
        ),
        ratio(
            "better",
            A1,
            "{says}",
            at_most=1.0,
            sample=lambda r, other: risk_ratio(r, "Eq. 2", other),
            cells=grid("random similarity", other=WORSE),
            words=lambda other: dict(says=WORSE[other]),
            message="What Eq. 2 selects is better than a random choice and than the most similar "
            "demonstrations",
        ),
    )
