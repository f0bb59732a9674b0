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

CLEAR = 0.1  # a median log ratio that rises by this is amplification
FACTOR = 1.1  # a disparity that grows by this is amplification
GENERIC = 0.95  # share of the pairs for which a generic theorem has to be true
FAR = 1.5  # the excess risk over that of the Bayes rule of a stack that is far from trained
A1 = "A1 (2508.00385)"
THEOREM = f"{A1}, Theorem 1, our reading, in our setting"
LEAD, DISPARITY = READINGS = ("lead", "disparity")
AHEAD = "the lead of the demonstration ahead after one layer"
LARGER = "is larger at the last layer than at the first"
VARIABLES = {LEAD: "median", DISPARITY: "spread"}
COMPARE = {LEAD: np.subtract, DISPARITY: np.divide}
DOES = {LEAD: f"widen {AHEAD}", DISPARITY: "make two flows more unequal"}
BOUNDS = {LEAD: CLEAR, DISPARITY: FACTOR}
MEASURED = {
    LEAD: "the change of the median log ratio, the flow that is larger after one layer on top, "
    "from the first layer to the last",
    DISPARITY: "the median |log ratio| of two flows at the last layer over that at the first",
}
PARTS = dict(
    zip(KINDS, ("linear", "softmax", "softmax + norm", "softmax + norm + MLP"), strict=True)
)
TYINGS = {"untied": "", "tied": "tied, "}
SIZES = ("smallest", "usual", "largest")  # of gains


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


def is_judged(dataset, case) -> bool:
    """A smaller tier lacks some cases, and a stack that is far from trained judges nobody."""
    kind = case.removeprefix("trained: ").partition(",")[0]
    return case in dataset.case.values or risk_ratios(dataset).get(kind, np.inf) <= FAR


def change(dataset, group, stack, reading):  # -> [R], or None: nothing to judge
    """What depth changes of a stack, in the case that amplifies least."""
    _, cases = stacks(results.config_of(dataset))[group][stack]
    if all(is_judged(dataset, case) for case in cases):
        ends = [changes(dataset, case, reading)[:, -1] for case in cases]
        return worst(np.stack(ends, axis=1), lambda runs: -np.median(runs))
    return None


def damping(dataset, kind, reading):  # -> [R], or None
    """What depth changes with a weak residual connection, compared with the usual one."""
    config = results.config_of(dataset)
    cases = [f"{kind}: {name}" for name in (f"skip {config.skip:g}", f"gain {config.gain:g}")]
    if all(is_judged(dataset, case) for case in cases):
        return COMPARE[reading](*(changes(dataset, case, reading)[:, -1] for case in cases))
    return None


def shares(dataset, name):  # -> [R, gains, tyings]
    """Shares of the pairs of random linear stacks, each demonstration alone."""
    gains = results.config_of(dataset).gains
    cases = [[f"linear: {tying}gain {gain:g}" for tying in TYINGS.values()] for gain in gains]
    rows = [[dataset[name].sel(case=case).values for case in row] for row in cases]
    return np.moveaxis(rows, -1, 0)


def share(dataset, size, tying):  # -> [R], or None
    of_gain = shares(dataset, "larger")
    if of_gain.shape[1] == len(SIZES):
        return of_gain[:, SIZES.index(size), list(TYINGS).index(tying)]
    return None


def softmax_share(dataset, kind, tying):  # -> [R], or None
    """The share of the pairs of random softmax stacks whose ratio is larger at the last layer."""
    case = f"{kind}: {TYINGS[tying]}gain {results.config_of(dataset).gain:g}"
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
    fresh = f"{config.runs} fresh runs, 16 before"
    return (*_theorem(fresh), *_growth(config, fresh), *_limits(config, fresh))


def _theorem(fresh):
    alone = partial(Statement, source=THEOREM, statistic="median", redrawn=fresh)
    increases = {
        "larger": dict(grows=LARGER, was="it was growth in every layer"),
        "growth": dict(grows="grows with every layer", was="its name was theorem_1"),
    }
    return (
        alone(
            "theorem",
            says="In random linear stacks the ratio of two flows {grows}",
            measured="the share of pairs, each alone, whose ratio {grows}, at the gain and tying "
            "with the most,",
            at_least=GENERIC,
            note="two readings of 'increases with L'; as a law for every stack it is refuted: "
            'docs/theory, "Layers turn the order of flows"',
            revision="{was}",
            sample=lambda r, reading: worst(shares(r, reading)),
            cells=grid("theorem_1 theorem_1_strict", reading=increases),
            words=lambda reading: increases[reading],
        ),
        alone(
            "typically",
            says="In {tying} random linear stacks of the {size} gain the ratio of two flows "
            f"typically {LARGER}",
            measured=f"the share of pairs, each alone, whose ratio {LARGER},",
            at_least=0.5,
            note="by chance it is 1/2",
            revision="added after a look at theorem_1, which takes the best of these cells",
            sample=share,
            cells=grid(
                "typically_small typically_small_tied typically_usual typically_usual_tied "
                "typically_large typically_large_tied",
                size=SIZES,
                tying=TYINGS,
            ),
            message=f"In random linear stacks the ratio of two flows typically {LARGER}",
        ),
        Statement(
            "typically_softmax",
            f"{A1}, question 2, open question",
            f"In {{who}} stacks, {{tying}}, the ratio of two flows typically {LARGER}",
            f"the share of pairs, each alone, whose ratio {LARGER},",
            "median",
            at_least=0.5,
            note="by chance it is 1/2",
            revision="added after a look: linear stacks alone were judged",
            sample=softmax_share,
            cells=grid(
                "softmax_random_typically softmax_tied_typically norm_random_typically "
                "norm_tied_typically MLP_random_typically MLP_tied_typically",
                kind=KINDS[1:],
                tying=TYINGS,
            ),
            words=lambda kind, tying: dict(who=f"random {PARTS[kind]}"),
            message=f"In random softmax stacks the ratio of two flows typically {LARGER}",
        ),
        alone(
            "order",
            says="In random linear stacks the demonstration ahead after one layer stays ahead",
            measured="the share of pairs, each alone, that turn, at the gain and tying with the "
            "fewest,",
            at_most=1 - GENERIC,
            sample=lambda r: worst(shares(r, "flips"), lambda runs: -np.median(runs)),
        ),
    )


def stacks(config) -> dict[str, dict[str, tuple]]:
    """{group: {stack: its name in a sentence, its cases}}; of several the one that grows least."""
    gain, high = f"gain {config.gain:g}", f"gain {config.gains[-1]:g}"
    large, usual = ([f"linear: {tying}{of}" for tying in TYINGS.values()] for of in (high, gain))
    softmax = {
        f"{kind}, {name}": (f"Random {name} {PARTS[kind]} stacks", [f"{kind}: {tying}{gain}"])
        for kind in KINDS[1:]
        for name, tying in TYINGS.items()
    }
    # To softmax that reads one key all weights are 1: docs/theory, "Softmax reads one key".
    trained = {"linear, alone": ("Trained linear stacks, each alone,", ["trained: linear, alone"])}
    trained |= {
        kind: (f"Trained {PARTS[kind]} stacks, two of a prompt,", [f"trained: {kind}, together"])
        for kind in ("linear", "softmax", "MLP")
    }
    linear = {"linear": ("Random linear stacks of large weights, tied or not,", large)}
    same = {"linear": (f"Random linear stacks of softmax's {gain}, tied or not,", usual)}
    return {"large": linear, "usual": same, "softmax": softmax, "trained": trained}


GROWTH = {  # group: its source, its stacks in one sentence, the ids of their leads and disparities
    "large": (THEOREM, "Random linear stacks of large weights", "large_lead", "large_disparity"),
    "usual": (THEOREM, "Random linear stacks of softmax's gain", "usual_lead", "usual_disparity"),
    "softmax": (
        f"{A1}, question 2, open question",
        "Random softmax stacks, with and without norm and MLP,",
        "softmax_random_lead softmax_tied_lead norm_random_lead norm_tied_lead "
        "MLP_random_lead MLP_tied_lead",
        "softmax_random_disparity softmax_tied_disparity norm_random_disparity "
        "norm_tied_disparity MLP_random_disparity MLP_tied_disparity",
    ),
    "trained": (
        f"{A1}, figures on depth, our reading, in our setting",
        "Trained stacks",
        "linear_trained_lead linear_trained_shared_lead softmax_trained_shared_lead "
        "MLP_trained_shared_lead",
        "linear_trained_disparity linear_trained_shared_disparity "
        "softmax_trained_shared_disparity MLP_trained_shared_disparity",
    ),
}


def _growth(config, fresh):
    again = f"{config.trained_runs} runs of shared models near ridge; before, 16 that were not"
    looks = {
        "softmax": "all six kinds since a look at three",
        "usual": "added after a look: softmax stacks stood beside linear ones of another gain",
    }
    redrawn = {"usual": "", "trained": again}
    for group, by_stack in stacks(config).items():
        source, who, *ids = GROWTH[group]
        note = "what the Bayes rule does is in many_shot_flow.ends_at_bayes"
        for reading, names in zip(READINGS, ids, strict=True):
            added = "added; the lead alone was judged" if reading == DISPARITY else ""
            yield Statement(
                f"{group}_stacks_{reading}",
                source,
                f"{{who}} {DOES[reading]}",
                f"{MEASURED[reading]},",
                "median",
                BOUNDS[reading],
                note=note if group == "trained" else "",
                revision=looks.get(group, added),
                redrawn=redrawn.get(group, fresh),
                sample=partial(change, group=group, reading=reading),
                cells=grid(names, stack=by_stack),
                words=lambda stack, by_stack=by_stack: dict(who=by_stack[stack][0]),
                message=f"{who} {DOES[reading]}",
            )


def _limits(config, fresh):
    weak = f", with a residual weight of {config.skip:g}"
    grows = {LEAD: AHEAD, DISPARITY: "the disparity of two flows"}
    residual = {
        LEAD: ("linear_residual_lead softmax_residual_lead", f"{weak} minus that with 1,", 0, ""),
        DISPARITY: (
            "linear_residual_disparity softmax_residual_disparity",
            f"{weak} over that with 1,",
            1,
            "added; the lead alone was judged",
        ),
    }
    for reading, (ids, than, least, added) in residual.items():
        dampens = f"stacks dampens the growth of {grows[reading]}"
        yield Statement(
            f"residual_{reading}",
            f"{A1}, on residual connections, limitation, in our setting",
            f"The residual connection of random {{kind}} {dampens}",
            MEASURED[reading] + than,
            "median",
            least,
            revision=added,
            redrawn=fresh,
            sample=partial(damping, reading=reading),
            cells=grid(ids, kind=KINDS[:2]),
            message=f"The residual connection of random {dampens}",
        )
    yield Statement(
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
