"""What `amplification` judges.

Two readings of A1's theorem are judged in every stack. The lead is A1's own: the demonstration with
the larger flow after one layer is on top, and the median of the log ratios is followed. It falls
by regression to the mean wherever layers reshuffle. The disparity has no orientation.
"""

from functools import partial

import numpy as np

from experiments.flow.amplification.changes import Changes, disparity, lead
from experiments.flow.amplification.stacks import (
    OWN,
    RESIDUAL,
    THEOREM,
    TRAINED,
    UNMOVED,
    UNTRAINED,
    fresh_pairs,
    fresh_runs,
    stacks,
)
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst

CLEAR = 0.1  # a median log ratio that rises by this is amplification
FACTOR = 1.1  # a disparity that grows by this is amplification
GENERIC = 0.95  # share of the pairs for which a generic theorem has to be true
PREDICTS = 0.8  # share of the pairs for which a rule of thumb has to be right
FAR = 1.5  # the excess risk over that of the Bayes rule of a stack that is far from trained
LEAD = (
    "the change of the median log ratio, the flow that is larger after one layer on top, from the "
    "first layer to the last"
)
DISPARITY = "the median |log ratio| of two flows at the last layer over that at the first"
AHEAD = "the lead of the demonstration ahead after one layer"
DOES = {  # to the lead, to the disparity
    "amplify": (f"widen {AHEAD}", "make two flows more unequal"),
    "leave": (f"leave {AHEAD} as it is", "leave two flows as unequal as they are"),
    "equalise": (f"narrow {AHEAD}", "make two flows less unequal"),
}
ADDED = "added; the lead alone was judged"
READINGS = {  # of "increases with L": the variable, the sentence, its verb, what it was, its label
    "fair": (
        *("larger", "is larger at the last layer than at the first", "is"),
        *("it was growth in every layer", "ratio ends larger"),
    ),
    "strict": (
        *("growth", "grows with every layer", "does"),
        *("its name was theorem_1", "grows in\nevery layer"),
    ),
}


def numbers(dataset) -> "Changes":
    return Changes(dataset, FAR)


def statements(config) -> tuple[Statement, ...]:
    return (
        *_theorem_statements(config),
        *_stack_statements(config),
        *_residual_statements(config),
        _coupling_statement(config),
    )


def _theorem_statements(config):
    source, most = f"{THEOREM}, our reading, in our setting", "at the gain and tying with the most,"

    def words(reading):
        _, grows, does, was, label = READINGS[reading]
        return dict(grows=grows, does=does, was=was, label=label)

    return (
        Statement(
            "theorem",
            source,
            "In random linear stacks the ratio of two flows {grows}",
            f"the share of pairs, each alone, for which it {{does}}, {most}",
            "median",
            at_least=GENERIC,
            note="the {reading} reading of 'increases with L'",
            revision="{was}",
            redrawn=fresh_runs(config),
            label="{label}",
            sample=lambda r, reading: worst(r.shares(READINGS[reading][0])),
            cells=grid("theorem_1 theorem_1_strict", reading=READINGS),
            words=words,
            message="In random linear stacks the ratio of two flows increases with depth, at the "
            "last layer or with every layer",
        ),
        Statement(
            "order",
            source,
            "In random linear stacks the demonstration ahead after one layer stays ahead",
            "the share of pairs, each alone, that turn, at the gain and tying with the fewest,",
            "median",
            at_most=1 - GENERIC,
            redrawn=fresh_runs(config),
            label="order turns",
            sample=lambda r: worst(r.shares("flips"), lambda runs: -np.median(runs)),
        ),
    )


def _stack_statements(config):
    judged, usual = stacks(config), {"note": "", "revision": "", "redrawn": fresh_runs(config)}
    several = ", in the stack that is furthest from it,"

    def words(stack):
        filled = {name: text for name, text in judged[stack]._asdict().items() if text}
        return usual | filled | {"which": several if len(judged[stack].cases) > 1 else ""}

    def pair(effect, subject, names, of_lead, of_disparity):
        """Both readings of what depth does in these stacks: of each its id, bounds, cells."""
        for (id, bounds, ids), does, measured, revision, sample in zip(
            (of_lead, of_disparity),
            DOES[effect],
            (LEAD, DISPARITY),
            ("{revision}", ADDED),
            (Changes.lead, Changes.disparity),
            strict=True,
        ):
            yield Statement(
                id,
                "{source}",
                f"{{says}} {does}",
                f"{measured}{{which}}",
                "median",
                **bounds,
                note="{note}",
                revision=revision,
                redrawn="{redrawn}",
                label="{label}",
                sample=partial(sample, effect=effect),
                cells=grid(ids, stack=names),
                words=words,
                message=f"{subject} {does}",
            )

    return (
        *pair(
            "amplify",
            "Stacks that are random, or of positive feedback,",
            UNTRAINED,
            (
                "untrained_lead",
                {"at_least": CLEAR},
                "large_lead linear_shared_lead softmax_random_lead softmax_tied_lead "
                "norm_random_lead norm_tied_lead MLP_random_lead MLP_tied_lead "
                "softmax_shared_lead push_lead",
            ),
            (
                "untrained_disparity",
                {"at_least": FACTOR},
                "large_disparity linear_shared_disparity softmax_random_disparity "
                "softmax_tied_disparity norm_random_disparity norm_tied_disparity "
                "MLP_random_disparity MLP_tied_disparity softmax_shared_disparity push_disparity",
            ),
        ),
        *pair(
            "amplify",
            "Trained stacks",
            TRAINED,
            (
                "trained_lead",
                {"at_least": CLEAR},
                "linear_trained_lead linear_trained_shared_lead softmax_trained_shared_lead "
                "MLP_trained_shared_lead",
            ),
            (
                "trained_disparity",
                {"at_least": FACTOR},
                "linear_trained_disparity linear_trained_shared_disparity "
                "softmax_trained_shared_disparity MLP_trained_shared_disparity",
            ),
        ),
        *pair(
            "leave",
            "Small weights and steps of descent",
            UNMOVED,
            ("same_lead", {"margin": CLEAR}, "small_lead descent_lead GD++_lead prior_lead"),
            (
                "same_disparity",
                {"at_least": 1 / FACTOR, "at_most": FACTOR},
                "small_disparity descent_disparity GD++_disparity prior_disparity",
            ),
        ),
        *pair(
            "equalise",
            "Stacks of negative feedback",
            ("negative feedback",),
            ("narrower_lead", {"at_most": -CLEAR}, "pull_lead"),
            ("lesser_disparity", {"at_most": 1 / FACTOR}, "pull_disparity"),
        ),
    )


def _residual_statements(config):
    says = "The residual connection dampens amplification in"
    weaker, judged = f"with a residual weight of {config.skips[0]:g}", stacks(config)
    every = dict(source="{source}", statistic="median", redrawn=fresh_runs(config), label="{label}")
    every |= dict(words=lambda stack: judged[stack]._asdict())

    return (
        Statement(
            "residual_lead",
            says=f"{says} {{says}}: the lead",
            measured=f"{LEAD}, {weaker} minus that with 1,",
            at_least=0,
            sample=lambda r, stack: r.residual(lead, stack, np.subtract),
            cells=grid("linear_residual_lead softmax_residual_lead", stack=RESIDUAL),
            message=f"{says} random stacks, linear or softmax, by the lead",
            **every,
        ),
        Statement(
            "residual_disparity",
            says=f"{says} {{says}}: the disparity",
            measured=f"{DISPARITY}, {weaker} over that with 1,",
            at_least=1,
            revision=ADDED,
            sample=lambda r, stack: r.residual(disparity, stack, np.divide),
            cells=grid("linear_residual_disparity softmax_residual_disparity", stack=RESIDUAL),
            message=f"{says} random stacks, linear or softmax, by the disparity",
            **every,
        ),
    )


def _coupling_statement(config):
    cases = {"free": f"linear: tied, gain {config.gain:g}", "frozen": "masked: frozen"}
    where = {"free": "in tied stacks without a mask, as A1's"}
    where |= {"frozen": "where demonstrations are frozen"}
    fresh = {"free": fresh_runs(config), "frozen": fresh_pairs(config)}
    labels = {"free": "as κ says", "frozen": "as κ says,\nfrozen"}
    says = "The order of self-couplings κ = d·K P d predicts which flow grows"
    return Statement(
        "couplings",
        OWN,
        f"{says} {{where}}",
        "the share of pairs with κ > -1 for which it is right",
        "median",
        at_least=PREDICTS,
        redrawn="{fresh}",
        label="{label}",
        sample=lambda r, demonstrations: r.agreement(cases[demonstrations]),
        cells=grid("kappa kappa_frozen", demonstrations=cases),
        words=lambda demonstrations: dict(
            where=where[demonstrations], fresh=fresh[demonstrations], label=labels[demonstrations]
        ),
        message=f"{says}, be demonstrations frozen or free",
    )
