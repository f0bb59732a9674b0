"""What `amplification` judges.

Two readings of A1's theorem are judged in every stack. The lead is A1's own: the demonstration with
the larger flow after one layer is on top, and the median of the log ratios is followed. It falls
by regression to the mean wherever layers reshuffle. The disparity has no orientation.
"""

from functools import partial
from math import log

import numpy as np

from experiments.flow.amplification.config import KINDS
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst
from lsa_lab.store import parts, results

FACTOR = 1.1  # a disparity that grows by this is amplification
GENERIC = 0.95  # share of the pairs for which a generic theorem has to be true
FAR = 1.5  # the excess risk over that of the Bayes rule of a stack that is far from trained
A1 = "A1 (2508.00385)"
THEOREM = f"{A1}, Theorem 1, our reading, in our setting"
SOFTMAX = f"{A1}, question 2, open question"
AHEAD = "the lead of the demonstration ahead after one layer"
LARGER = "is larger at the last layer than at the first"
LEAD, DISPARITY = "lead", "disparity"
VARIABLES = {LEAD: "median", DISPARITY: "spread"}
COMPARE = {LEAD: np.subtract, DISPARITY: np.divide}
MEASURED = {
    LEAD: "the change of the median log ratio, the flow that is larger after one layer on top, "
    "from the first layer to the last",
    DISPARITY: "the median |log ratio| of two flows at the last layer over that at the first",
}
TYINGS = {"untied": "", "tied": "tied, "}  # in a sentence, and in the name of a case


def changes(dataset, case, reading):  # -> [R, L]
    """What changes from the first layer to each: the lead by a difference, the disparity by a
    ratio; in a case of untrained stacks, or in "trained: KIND, MODE"."""
    name, run = VARIABLES[reading], "run"
    if case in dataset.case.values:
        values = dataset[name].sel(case=case)
    else:
        kind, mode = case.removeprefix("trained: ").split(", ")
        values, run = dataset[f"trained_{name}"].sel(kind=kind, mode=mode), "trained_run"
    values = values.transpose(run, ...).values
    return COMPARE[reading](values, values[:, :1])


def risk_ratios(dataset) -> dict:  # {kind: []}
    """The excess risk of trained stacks over that of the Bayes rule; "width": of the wide ones."""
    wide = parts.part(dataset, "width")
    ratios = dataset.risk.mean("trained_run") / dataset.least_risk.mean("trained_run")
    widest = (wide.risk.mean("seed") / wide.ridge.mean("seed")).max()
    return dict(zip(dataset.kind.values, ratios.values, strict=True)) | {"width": float(widest)}


def end(dataset, reading, case):  # -> [R], or None: nothing to judge
    """What all layers change. A smaller tier lacks some cases, and a stack that is far from trained
    judges nobody."""
    kind = case.removeprefix("trained: ").partition(",")[0]
    if case in dataset.case.values or risk_ratios(dataset).get(kind, np.inf) <= FAR:
        return changes(dataset, case, reading)[:, -1]
    return None


def random_case(dataset, kind, tying, size="usual") -> str:
    config = results.config_of(dataset)
    gains = {"smallest": config.gains[0], "usual": config.gain, "largest": config.gains[-1]}
    return f"{kind}: {TYINGS[tying]}gain {gains[size]:g}"


def linear_change(dataset, reading, size):  # -> [R]
    """What depth changes in random linear stacks, tied or not, whichever amplifies least."""
    cases = [random_case(dataset, "linear", tying, size) for tying in TYINGS]
    ends = [end(dataset, reading, case) for case in cases]
    return worst(np.stack(ends, axis=1), lambda runs: -np.median(runs))


def damping(dataset, reading, kind):  # -> [R], or None
    """What depth changes with a weak residual connection, compared with the usual one."""
    config = results.config_of(dataset)
    names = f"skip {config.skip:g}", f"gain {config.gain:g}"
    weak, usual = (end(dataset, reading, f"{kind}: {name}") for name in names)
    return None if weak is None else COMPARE[reading](weak, usual)


def shares(dataset, name):  # -> [R, gains, tyings]
    """Shares of the pairs of random linear stacks, each demonstration alone."""
    gains = results.config_of(dataset).gains
    cases = [[f"linear: {tying}gain {gain:g}" for tying in TYINGS.values()] for gain in gains]
    rows = [[dataset[name].sel(case=case).values for case in row] for row in cases]
    return np.moveaxis(rows, -1, 0)


def share(dataset, kind, tying, size="usual"):  # -> [R], or None
    """The share of the pairs of random stacks whose ratio is larger at the last layer."""
    case = random_case(dataset, kind, tying, size)
    return dataset.larger.sel(case=case).values if case in dataset.case.values else None


def slope(dataset):  # -> [R], or None: nothing to judge
    """What a doubling of the width adds to the logarithm of the growth of the disparity."""
    if risk_ratios(dataset)["width"] > FAR:
        return None
    wide = parts.part(dataset, "width")
    values = wide.trained_spread.transpose("seed", "trained_width", ...).values
    doublings = np.log2(wide.trained_width.values)
    doublings = doublings - doublings.mean()
    return np.log(values[..., -1] / values[..., 0]) @ doublings / (doublings @ doublings)


def statements(config) -> tuple[Statement, ...]:
    leads = (
        "large_lead",
        "usual_lead",
        "softmax_random_lead softmax_tied_lead norm_random_lead norm_tied_lead MLP_random_lead "
        "MLP_tied_lead",
        "linear_trained_lead linear_trained_shared_lead softmax_trained_shared_lead "
        "MLP_trained_shared_lead",
        "linear_residual_lead softmax_residual_lead",
    )
    disparities = (
        "large_disparity",
        "usual_disparity",
        "softmax_random_disparity softmax_tied_disparity norm_random_disparity "
        "norm_tied_disparity MLP_random_disparity MLP_tied_disparity",
        "linear_trained_disparity linear_trained_shared_disparity "
        "softmax_trained_shared_disparity MLP_trained_shared_disparity",
        "linear_residual_disparity softmax_residual_disparity",
    )
    width = Statement(
        "trained_disparity",
        f"{A1}, on model capacity, limitation, our reading, in our setting",
        "Trained linear stacks with more empty slots make two flows "
        f"{FACTOR:g} times more unequal with each doubling of the width",
        f"the slope, for each doubling, of the logarithm of {MEASURED[DISPARITY]},",
        "median",
        log(FACTOR),
        note="prompts are the same at all widths, and so is the Bayes rule on them",
        revision="it was the largest width against the smallest",
        sample=slope,
    )
    growth = (*_growth(config, LEAD, leads), *_growth(config, DISPARITY, disparities))
    return (*_theorem(f"{config.runs} fresh runs, 16 before"), *growth, width)


def _theorem(fresh):
    alone = partial(Statement, statistic="median", redrawn=fresh)
    typically = partial(
        alone,
        measured=f"the share of pairs, each alone, whose ratio {LARGER},",
        at_least=0.5,
        note="by chance it is 1/2",
    )
    return (
        alone(
            "theorem",
            THEOREM,
            "In random linear stacks the ratio of two flows {grows}",
            "the share of pairs, each alone, whose ratio {grows}, at the gain and tying with the "
            "most,",
            at_least=GENERIC,
            note="two readings of 'increases with L'; as a law for every stack it is refuted: "
            'docs/theory, "Layers turn the order of flows"',
            revision="theorem_1 was growth with every layer, which is theorem_1_strict now",
            sample=lambda r, grows: worst(shares(r, "larger" if grows == LARGER else "growth")),
            cells=grid("theorem_1 theorem_1_strict", grows=(LARGER, "grows with every layer")),
            message="In random linear stacks the ratio of two flows grows with depth",
        ),
        typically(
            "typically",
            THEOREM,
            "In {tying} random linear stacks of the {size} gain the ratio of two flows typically "
            f"{LARGER}",
            revision="added beside theorem_1, which takes the best of these cells",
            sample=lambda r, size, tying: share(r, "linear", tying, size),
            cells=grid(
                "typically_small typically_small_tied typically_usual typically_usual_tied "
                "typically_large typically_large_tied",
                size=("smallest", "usual", "largest"),
                tying=TYINGS,
            ),
            message=f"In random linear stacks the ratio of two flows typically {LARGER}",
        ),
        typically(
            "typically_softmax",
            SOFTMAX,
            f"In random softmax stacks ({{kind}}, {{tying}}) the ratio of two flows typically "
            f"{LARGER}",
            revision="added: linear stacks alone were judged",
            redrawn="",
            sample=share,
            cells=grid(
                "softmax_random_typically softmax_tied_typically norm_random_typically "
                "norm_tied_typically MLP_random_typically MLP_tied_typically",
                kind=KINDS[1:],
                tying=TYINGS,
            ),
            message=f"In random softmax stacks the ratio of two flows typically {LARGER}",
        ),
        alone(
            "order",
            THEOREM,
            "In random linear stacks the demonstration ahead after one layer stays ahead",
            "the share of pairs, each alone, that turn, at the gain and tying with the fewest,",
            at_most=1 - GENERIC,
            sample=lambda r: worst(shares(r, "flips"), lambda runs: -np.median(runs)),
        ),
    )


def _growth(config, reading, ids):
    """What depth does to two flows, by one reading, in all kinds of stacks."""
    lead, fresh = reading == LEAD, f"{config.runs} fresh runs, 16 before"
    does = f"widen {AHEAD}" if lead else "make two flows more unequal"
    added = "" if lead else "added; the lead alone was judged"
    large, usual, softmax, trained, residual = ids
    grows = partial(
        Statement,
        measured=f"{MEASURED[reading]},",
        statistic="median",
        at_least=0.1 if lead else FACTOR,
    )
    weak = f"with a residual weight of {config.skip:g} {'minus' if lead else 'over'} that with 1,"
    dampens = f"dampens the growth of {AHEAD if lead else 'the disparity of two flows'}"
    return (
        grows(
            large,
            THEOREM,
            f"Random linear stacks of large weights, tied or not, {does}",
            revision=added,
            redrawn=fresh,
            sample=lambda r: linear_change(r, reading, "largest"),
        ),
        grows(
            usual,
            THEOREM,
            f"Random linear stacks of softmax's gain {config.gain:g}, tied or not, {does}",
            revision="added: softmax stacks stood beside linear ones of another gain",
            sample=lambda r: linear_change(r, reading, "usual"),
        ),
        grows(
            f"softmax_stacks_{reading}",
            SOFTMAX,
            f"Random softmax stacks ({{kind}}, {{tying}}) {does}",
            revision="all six kinds since a look at three",
            redrawn=fresh,
            sample=lambda r, kind, tying: end(r, reading, random_case(r, kind, tying)),
            cells=grid(softmax, kind=KINDS[1:], tying=TYINGS),
            message=f"Random softmax stacks, with and without norm and MLP, {does}",
        ),
        grows(
            f"trained_stacks_{reading}",
            f"{A1}, figures on depth, our reading, in our setting",
            f"Trained stacks ({{stack}}) {does}",
            note="what the Bayes rule does is in many_shot_flow.ends_at_bayes",
            revision=added,
            redrawn=f"{config.trained_runs} runs of shared models near ridge; before, 16 that were "
            "not",
            sample=lambda r, stack: end(r, reading, f"trained: {stack}"),
            # To softmax that reads one key all weights are 1: docs/theory, "Softmax reads one key".
            cells=grid(
                trained,
                stack=("linear, alone", "linear, together", "softmax, together", "MLP, together"),
            ),
            message=f"Trained stacks {does}",
        ),
        Statement(
            f"residual_{reading}",
            f"{A1}, on residual connections, limitation, in our setting",
            f"The residual connection of random {{kind}} stacks {dampens}",
            f"{MEASURED[reading]}, {weak}",
            "median",
            0 if lead else 1,
            revision=added,
            redrawn=fresh,
            sample=lambda r, kind: damping(r, reading, kind),
            cells=grid(residual, kind=KINDS[:2]),
            message=f"The residual connection of random stacks {dampens}",
        ),
    )
