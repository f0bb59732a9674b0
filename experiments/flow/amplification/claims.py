"""What `amplification` judges.

Two readings of A1's theorem are judged in every stack. The lead is A1's own: the demonstration with
the larger flow after one layer is on top, and the median of the log ratios is followed. It falls
by regression to the mean wherever layers reshuffle. The disparity has no orientation.
"""

from functools import partial
from math import log

import numpy as np

from experiments.flow.amplification.config import WIDE_TRAINED
from experiments.flow.amplification.stacks import READING, WIDER, fresh_runs, stacks
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst
from lsa_lab.store import parts, results

CLEAR = 0.1  # a median log ratio that rises by this is amplification
FACTOR = 1.1  # a disparity that grows by this is amplification
GENERIC = 0.95  # share of the pairs for which a generic theorem has to be true
FAR = 1.5  # the excess risk over that of the Bayes rule of a stack that is far from trained
CAPACITY = "A1 (2508.00385), on model capacity, limitation, our reading, in our setting"
MEASURED = {
    "lead": "the change of the median log ratio, the flow that is larger after one layer on top, "
    "from the first layer to the last",
    "disparity": "the median |log ratio| of two flows at the last layer over that at the first",
}
VARIABLES = {"lead": "median", "disparity": "spread"}
COMPARE = {"lead": np.subtract, "disparity": np.divide}
AHEAD = "the lead of the demonstration ahead after one layer"
RANDOM, STILL = "Random or trained stacks", "Small weights or steps of descent"
SKIP = "The residual connection of random stacks"
DOES = {  # what depth is said to do, and to what: of all stacks, the subject and the verb
    ("amplifies", "lead"): (RANDOM, f"widen {AHEAD}"),
    ("amplifies", "disparity"): (RANDOM, "make two flows more unequal"),
    ("leaves", "lead"): (STILL, f"leave {AHEAD} as it is"),
    ("leaves", "disparity"): (STILL, "leave two flows as unequal as they are"),
    ("dampens", "lead"): (SKIP, f"dampens the growth of {AHEAD}"),
    ("dampens", "disparity"): (SKIP, "dampens the growth of the disparity of two flows"),
}
INCREASES = {  # the variable of a reading of "increases with L": the sentence, what it was, a label
    "larger": (
        "is larger at the last layer than at the first",
        "it was growth in every layer",
        "ratio ends larger",
    ),
    "growth": ("grows with every layer", "its name was theorem_1", "grows in\nevery layer"),
}
RELATIVE = ("linear", "linear, covariates")  # wide stacks whose leads have a heavy tail: logarithms


def case_runs(dataset, name, case):  # -> [R, ...]
    """A variable in a case of untrained stacks, or in "trained: KIND, MODE"."""
    if case in dataset.case.values:
        return dataset[name].sel(case=case).transpose("run", ...).values
    kind, mode = case.removeprefix("trained: ").split(", ")
    values = dataset[f"trained_{name}"].sel(kind=kind, mode=mode)
    return values.transpose("trained_run", ...).values


def changes(dataset, case, reading):  # -> [R, L]
    """What changes from the first layer to each: the lead by a difference, the disparity by a
    ratio."""
    values = case_runs(dataset, VARIABLES[reading], case)
    return COMPARE[reading](values, values[:, :1])


def risk_ratios(dataset) -> dict:  # {kind: []}
    """The excess risk of trained stacks over that of the Bayes rule; "width": of the wide ones."""
    wide = parts.part(dataset, "width")
    ratios = dataset.risk.mean("trained_run") / dataset.least_risk.mean("trained_run")
    widest = (wide.risk.mean("seed") / wide.ridge.mean("seed")).max()
    return dict(zip(dataset.kind.values, ratios.values, strict=True)) | {"width": float(widest)}


def is_judged(dataset, case) -> bool:
    """A smaller tier lacks some cases, and a stack that is far from trained judges nobody."""
    kind = case.removeprefix("trained: ").partition(",")[0]
    return case in dataset.case.values or risk_ratios(dataset).get(kind, np.inf) <= FAR


def change(dataset, stack, reading, effect):  # -> [R], or None: nothing to judge
    """What depth changes of a stack: in the case that amplifies least, or is furthest from the
    same; or with a weak residual connection, compared with the usual one."""
    cases = stacks(results.config_of(dataset))[stack].cases
    if not all(is_judged(dataset, case) for case in cases):
        return None
    ends = [changes(dataset, case, reading)[:, -1] for case in cases]
    if effect == "dampens":
        return COMPARE[reading](*ends)

    def distance(runs):
        middle = np.median(runs)
        size = abs(middle if reading == "lead" else np.log(middle))
        return size if effect == "leaves" else -middle

    return worst(np.stack(ends, axis=1), distance)


def shares(dataset, name):  # -> [R, gains and tyings]
    """Shares of the pairs of random linear stacks, each demonstration alone."""
    gains = results.config_of(dataset).gains
    cases = [f"linear: {tying}gain {gain:g}" for gain in gains for tying in ("", "tied, ")]
    return np.stack([case_runs(dataset, name, case) for case in cases], axis=1)


def growths(dataset, kind, reading):  # -> widths [W], [R, W]
    """What changes from the first layer to the last in wide stacks: the median log ratio, or the
    logarithm of the growth of the median |log ratio|."""
    wide, trained = parts.part(dataset, "width"), kind == WIDE_TRAINED
    stage = "trained_" if trained else ""
    values = wide[stage + VARIABLES[reading]]
    values = values if trained else values.sel(kind=kind)
    values = values.transpose("seed" if trained else "run", f"{stage}width", ...).values
    grown = COMPARE[reading](values[..., -1], values[..., 0])
    return wide[f"{stage}width"].values, grown if reading == "lead" else np.log(grown)


def slope(dataset, kind, reading):  # -> [R], or None: nothing to judge
    """What a doubling of the width adds to the lead or to the disparity."""
    if kind == WIDE_TRAINED and risk_ratios(dataset)["width"] > FAR:
        return None
    widths, values = growths(dataset, kind, reading)
    if reading == "lead" and kind in RELATIVE:
        values = np.log(np.maximum(values, 1e-3))
    doublings = np.log2(widths) - np.log2(widths).mean()
    return values @ doublings / (doublings @ doublings)


def statements(config) -> tuple[Statement, ...]:
    return (*_theorem_statements(config), *_stack_statements(config), *_width_statements())


def _theorem_statements(config):
    rest = dict(statistic="median", redrawn=fresh_runs(config))
    words = ("grows", "was", "label")
    return (
        Statement(
            "theorem",
            READING,
            "In random linear stacks the ratio of two flows {grows}",
            "the share of pairs, each alone, whose ratio {grows}, at the gain and tying with the "
            "most,",
            at_least=GENERIC,
            note="two readings of 'increases with L'",
            revision="{was}",
            label="{label}",
            sample=lambda r, reading: worst(shares(r, reading)),
            cells=grid("theorem_1 theorem_1_strict", reading=INCREASES),
            words=lambda reading: dict(zip(words, INCREASES[reading], strict=True)),
            **rest,
        ),
        Statement(
            "order",
            READING,
            "In random linear stacks the demonstration ahead after one layer stays ahead",
            "the share of pairs, each alone, that turn, at the gain and tying with the fewest,",
            at_most=1 - GENERIC,
            label="order turns",
            sample=lambda r: worst(shares(r, "flips"), lambda runs: -np.median(runs)),
            **rest,
        ),
    )


def _stack_statements(config):
    judged, names = stacks(config), list(stacks(config))
    groups = {"amplifies": names[:10], "leaves": names[10:12], "dampens": names[12:]}
    weak = f", with a residual weight of {config.skip:g}"
    than = {"lead": f"{weak} minus that with 1,", "disparity": f"{weak} over that with 1,"}
    several = {1: "", 2: ", in the stack that is furthest from it,"}

    def words(stack):
        each = judged[stack]
        return each._asdict() | {"furthest": several[len(each.cases)]}

    def family(id, effect, reading, ids, **bounds):
        subject, does = DOES[effect, reading]
        return Statement(
            id,
            "{source}",
            f"{{says}} {does}",
            MEASURED[reading] + (than[reading] if effect == "dampens" else "{furthest}"),
            "median",
            note="{note}",
            revision="{revision}" if reading == "lead" else "added; the lead alone was judged",
            redrawn="{redrawn}",
            label="{stack}",
            sample=partial(change, reading=reading, effect=effect),
            cells=grid(ids, stack=groups[effect]),
            words=words,
            message=f"{subject} {does}",
            **bounds,
        )

    leads = (
        "large_lead linear_shared_lead softmax_random_lead softmax_tied_lead MLP_random_lead "
        "softmax_shared_lead linear_trained_lead linear_trained_shared_lead "
        "softmax_trained_shared_lead MLP_trained_shared_lead"
    )
    disparities = (
        "large_disparity linear_shared_disparity softmax_random_disparity softmax_tied_disparity "
        "MLP_random_disparity softmax_shared_disparity linear_trained_disparity "
        "linear_trained_shared_disparity softmax_trained_shared_disparity "
        "MLP_trained_shared_disparity"
    )
    same, same_disparity = "small_lead descent_lead", "small_disparity descent_disparity"
    residual = "linear_residual_lead softmax_residual_lead"
    residual_disparity = "linear_residual_disparity softmax_residual_disparity"
    factors = dict(at_least=1 / FACTOR, at_most=FACTOR)
    return (
        family("wider_lead", "amplifies", "lead", leads, at_least=CLEAR),
        family("more_disparity", "amplifies", "disparity", disparities, at_least=FACTOR),
        family("same_lead", "leaves", "lead", same, margin=CLEAR),
        family("same_disparity", "leaves", "disparity", same_disparity, **factors),
        family("residual_lead", "dampens", "lead", residual, at_least=0),
        family("residual_disparity", "dampens", "disparity", residual_disparity, at_least=1),
    )


def _width_statements():
    def words(kind):
        who, label = WIDER[kind]
        relative = "the logarithm of " if kind in RELATIVE else ""
        flows = "two of the prompt's, to the prediction" if kind == WIDE_TRAINED else "alone"
        return dict(who=who, label=label, relative=relative, flows=flows)

    def family(id, reading, does, what, ids, at_least):
        return Statement(
            id,
            CAPACITY,
            f"{{who}} {does} with each doubling",
            f"the slope, for each doubling of the width, of {what}{MEASURED[reading]},",
            "median",
            at_least,
            note="flows: {flows}",
            revision="it was the largest width against the smallest",
            label="{label}",
            sample=partial(slope, reading=reading),
            cells=grid(ids, kind=WIDER),
            words=words,
            message=f"Random and trained stacks that are wider {does} with each doubling",
        )

    ids = "linear_lead covariates_lead softmax_lead trained_lead"
    wider, unequal = f"widen {AHEAD} further", f"make two flows {FACTOR:g} times more unequal"
    more = "linear_disparity covariates_disparity softmax_disparity trained_disparity"
    return (
        family("width_lead", "lead", wider, "{relative}", ids, CLEAR),
        family("width_disparity", "disparity", unequal, "the logarithm of ", more, log(FACTOR)),
    )
