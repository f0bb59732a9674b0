"""What `many_shot_flow` judges, by the criterion in its Config."""

from dataclasses import replace

from lsa_lab.claims import Statement

DESCENTS = ("descent", "short steps")
KINDS = (*DESCENTS, "linear, untrained", "linear", "softmax, untrained", "softmax")
LEARNERS = (*DESCENTS, "linear", "softmax")  # those that have something to explain away

PAPER, OWN = "A1 (2508.00385)", "derived here"
THIRD = f"{PAPER}, open question on many demonstrations"
SPREAD = "the median |log ratio| of two flows, over pairs and prompts,"
NAMES = {
    "descent": "descent",
    "short steps": "descent with short steps",
    "linear, untrained": "untrained linear attention",
    "linear": "trained linear attention",
    "softmax, untrained": "untrained softmax attention",
    "softmax": "trained softmax attention",
}
FRESH = "{runs} fresh runs, 8 before"
REVISIONS = {"short steps": "added, with this stack"}
BRIEFLY = "trained briefly: the caption says how much of the error it leaves"
NOTES = {"linear": BRIEFLY, "softmax": BRIEFLY}


def name_of(statement: str, kind: str) -> str:
    """The id of a statement about one stack."""
    return f"{statement}_{kind}".replace(", ", "_").replace(" ", "_")


def statements(config) -> tuple[Statement, ...]:
    learners = (each for kind in LEARNERS for each in _about_duplicates(config, kind))
    rows = (*_about_depth(config), *_about_numbers(config), *learners, _about_others(config))
    return tuple(replace(row, redrawn=row.redrawn.format(runs=config.runs)) for row in rows)


def _about_depth(config):
    for kind in KINDS:
        yield Statement(
            name_of("depth", kind),
            f"{PAPER}, Theorem 1 and open question on many demonstrations",
            f"Depth amplifies the disparity of many demonstrations in {NAMES[kind]}",
            f"{SPREAD} at the last layer over that at the first, n = {config.counts[-1]},",
            "median",
            at_least=config.growth,
            **_notes(kind),
        )
    yield Statement(
        "turned",
        OWN,
        "Which layer turns the pairs decides whether their ratio falls or rises with depth",
        "the change over the layers of descent's log ratios, the larger flow at the first layer "
        "above, over the change with that at the last layer above, "
        f"n = {config.counts[-1]},",
        "median",
        at_most=1 / config.growth,
        note="a median of sizes is the largest of its signs: at most 1, whatever the layers do",
        redrawn=FRESH,
    )


def _about_numbers(config):
    few, many = config.counts[1], config.counts[-1]
    yield Statement(
        "top_share",
        THIRD,
        "The share of the strongest demonstration falls with every further demonstration",
        "the largest ratio of that share to the share among the next fewer, at the worst stack,",
        "median",
        at_most=1,
        redrawn=FRESH,
    )
    for kind in LEARNERS[2:]:
        yield Statement(
            name_of("same_ratio", kind),
            THIRD,
            f"Two demonstrations of {many} are as unequal as two of {few} in {NAMES[kind]}",
            f"{SPREAD} over that among the fewer,",
            "median",
            at_least=1 / config.growth,
            at_most=config.growth,
            **_notes(kind),
        )


def _about_duplicates(config, kind):
    where, notes = NAMES[kind], _notes(kind)
    log_ratio = "the median over prompts of the log ratio to the"
    return (
        Statement(
            name_of("redundancy", kind),
            THIRD,
            f"Where all have near-duplicates, flow per demonstration is lower in {where}",
            f"{log_ratio} mean flow without, {_at(config)}",
            "median",
            at_most=0,
            **notes,
        ),
        Statement(
            name_of("explained_away", kind),
            OWN,
            f"The flow of a demonstration is lower beside its near-duplicate in {where}",
            f"{log_ratio} flow beside an unrelated one, {_at(config)}",
            "median",
            at_most=0,
            **notes,
        ),
        Statement(
            name_of("interactions", kind),
            OWN,
            f"Two near-duplicates do less together than apart in {where}",
            f"the median over prompts of their interaction, {_at(config)}",
            "median",
            at_most=0,
            **notes,
        ),
    )


def _about_others(config):
    return Statement(
        "interactions_below_others",
        OWN,
        "Near-duplicates interact more negatively than other pairs of the same prompts",
        "the difference of the medians over prompts for that of the stacks that learn which is "
        f"worst for the other runs, {_at(config)}",
        "median",
        at_most=0,
        revision="the worst stack was that of the judged runs",
        redrawn=FRESH,
    )


def _notes(kind):
    return {
        "note": NOTES.get(kind, ""),
        "revision": REVISIONS.get(kind, ""),
        "redrawn": FRESH,
    }


def _at(config):
    return f"at c = {config.correlations[-1]:g}, n = {config.count},"
