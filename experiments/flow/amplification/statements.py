"""What `amplification` judges, by the criteria in its Config.

Two readings of A1's theorem are judged in every stack. The lead is A1's own: the demonstration with
the larger flow after one layer is on top, and the median of the log ratios is followed. It falls
by regression to the mean wherever layers reshuffle. The disparity has no orientation.
"""

from experiments.flow.amplification.stacks import OWN, THEOREM, again, often, stacks
from lsa_lab.claims import Statement

LEAD = (
    "the change of the median log ratio, the flow that is larger after one layer on top, from the "
    "first layer to the last"
)
DISPARITY = "the median |log ratio| of two flows at the last layer over that at the first"
AHEAD = "the lead of the demonstration ahead after one layer"
DOES = {  # to the lead, to the disparity
    "amplify": (f"widen {AHEAD}", "make two flows more unequal"),
    "equalise": (f"narrow {AHEAD}", "make two flows less unequal"),
    "leave": (f"leave {AHEAD} as it is", "leave two flows as unequal as they are"),
}
WORST = ", in the stack that is furthest from it,"
ADDED = "added; the lead alone was judged"


def statements(config) -> tuple[Statement, ...]:
    return (
        *_about_theorem_1(config),
        *(each for stack in stacks(config) for each in _about_stack(stack, config)),
        *_about_residual_connections(config),
        *_about_self_coupling(config),
    )


def _about_theorem_1(config):
    source, most = f"{THEOREM}, our reading, in our setting", "at the gain and tying with the most,"
    return (
        Statement(
            "theorem_1",
            source,
            "In random linear stacks the ratio of two flows is larger at the last layer than at "
            "the first",
            f"the share of pairs, each alone, for which it is, {most}",
            "median",
            at_least=config.generic,
            note="the fair reading of 'increases with L'",
            revision="it was growth in every layer",
            redrawn=again(config),
        ),
        Statement(
            "theorem_1_strict",
            source,
            "In random linear stacks the ratio of two flows grows with every layer",
            f"the share of pairs, each alone, for which it does, {most}",
            "median",
            at_least=config.generic,
            note="the strict reading of 'increases with L'",
            revision="its name was theorem_1",
            redrawn=again(config),
        ),
        Statement(
            "order",
            source,
            "In random linear stacks the demonstration ahead after one layer stays ahead",
            "the share of pairs, each alone, that turn, at the gain and tying with the fewest,",
            "median",
            at_most=1 - config.generic,
            redrawn=again(config),
        ),
    )


def _about_stack(stack, config):
    clear, factor = config.clear, config.factor
    bounds = {
        "amplify": ({"at_least": clear}, {"at_least": factor}),
        "equalise": ({"at_most": -clear}, {"at_most": 1 / factor}),
        "leave": ({"margin": clear}, {"at_least": 1 / factor, "at_most": factor}),
    }[stack.effect]
    readings = zip(
        ("lead", "disparity"),
        DOES[stack.effect],
        (LEAD, DISPARITY),
        bounds,
        (stack.revision, ADDED),
        strict=True,
    )
    which = WORST if len(stack.cases) > 1 else ""
    for reading, does, measured, bound, revision in readings:
        yield Statement(
            f"{stack.id}_{reading}",
            stack.source,
            f"{stack.says} {does}",
            f"{measured}{which}",
            "median",
            **bound,
            note=stack.note,
            revision=revision,
            redrawn=stack.redrawn or again(config),
        )


def _about_residual_connections(config):
    source = "A1 (2508.00385), on residual connections, limitation, in our setting"
    weaker = f"with a residual weight of {config.skips[0]:g}"
    for kind in ("linear", "softmax"):
        if kind in config.kinds:
            says = f"The residual connection dampens amplification in random {kind} stacks"
            yield Statement(
                f"{kind}_residual_lead",
                source,
                f"{says}: the lead",
                f"{LEAD}, {weaker} minus that with 1,",
                "median",
                at_least=0,
                redrawn=again(config),
            )
            yield Statement(
                f"{kind}_residual_disparity",
                source,
                f"{says}: the disparity",
                f"{DISPARITY}, {weaker} over that with 1,",
                "median",
                at_least=1,
                revision=ADDED,
                redrawn=again(config),
            )


def _about_self_coupling(config):
    says = "The order of self-couplings κ = d·K P d predicts which flow grows"
    for id, where, redrawn in (
        ("kappa_frozen", "where demonstrations are frozen", often(config)),
        ("kappa", "in tied stacks without a mask, as A1's", again(config)),
    ):
        yield Statement(
            id,
            OWN,
            f"{says} {where}",
            "the share of pairs with κ > -1 for which it is right",
            "median",
            at_least=config.predicts,
            redrawn=redrawn,
        )
