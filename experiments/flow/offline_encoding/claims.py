"""What `offline_encoding` judges."""

from functools import partial

from experiments.flow.offline_encoding.config import FLOWS, WAYS
from lsa_lab.judging.statements import Statement, grid

A1 = "A1 (2508.00385), demonstrations are encoded offline, our reading, in our setting"


def risk_ratio(dataset, rule, other):  # -> [R]
    """The excess risk of what one rule selects over that of what another does."""
    return (dataset.error.sel(rule=rule) / dataset.error.sel(rule=other)).values


def cost_ratio(dataset, way) -> float:
    """Operations of a query on an encoded pool over those online."""
    counts = dataset.operations
    return float(counts.sel(way=way) / counts.sel(way="pool, online"))


def statements(config) -> tuple[Statement, ...]:
    ratio = partial(
        Statement,
        measured=f"the excess risk of {config.shots} of {config.pool} by the one over that by the "
        "other",
        statistic="ratio",
    )
    return (
        Statement(
            "few_operations",
            A1,
            "On an encoded pool ({way}) a query takes few of the operations of the last layer's "
            "flows made online",
            "the compiler's count for one query, encoded over online,",
            "value",
            at_most=0.1,
            note="Eq. 2: of one layer, each demonstration alone; pool: of all layers in masked "
            "linear attention, whose flow is linear in the query, so that nothing is lost",
            revision="in a pool of 256, where it was counted first, a call outweighed its "
            "operations",
            sample=cost_ratio,
            cells=grid("operations operations_all", way=WAYS[:2]),
            message="On an encoded pool a query takes few of the operations of the last layer's "
            "flows made online",
        ),
        Statement(
            "ranks",
            "{source}",
            "Flows of each demonstration alone ({encoded}) rank a pool as its flows together do",
            "the rank correlation with the flow of the last layer with the whole pool in the "
            "prompt, mean over queries,",
            at_least=0.9,
            note="Eq. 2: of one layer; alone: of all layers",
            sample=lambda r, encoded: r.ranks.sel(encoded=encoded).values,
            cells=grid("ranks_one_layer ranks_depth", encoded=FLOWS[:2]),
            words=lambda encoded: dict(source=A1 if encoded == "Eq. 2" else "derived here"),
            message="Flows of each demonstration alone, by Eq. 2 or by all layers, rank a pool as "
            "its flows together do",
        ),
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
            "A1 (2508.00385), ablation of layers, our reading, in our setting",
            "What the last layer's flow of each demonstration alone selects is better than what "
            "Eq. 2 selects",
            at_most=1.0,
            sample=lambda r: risk_ratio(r, "alone", "Eq. 2"),
        ),
        ratio(
            "better",
            A1,
            "What Eq. 2 selects is better than what {rule} selects",
            at_most=1.0,
            sample=lambda r, rule: risk_ratio(r, "Eq. 2", rule),
            cells=grid("random similarity", rule=("random", "similarity")),
            message="What Eq. 2 selects is better than a random choice and than the most similar "
            "demonstrations",
        ),
    )
