"""The stacks that `amplification` judges, by name, and what is said of each."""

from typing import NamedTuple

from experiments.flow.amplification.config import WIDE_TRAINED

READING = "A1 (2508.00385), Theorem 1, our reading, in our setting"
SECOND = "A1 (2508.00385), question 2, open question"
THIRD = "A1 (2508.00385), question 3, open question"
RESIDUAL = "A1 (2508.00385), on residual connections, limitation, in our setting"
ALONE, SHARED = "each demonstration alone", "both demonstrations in one prompt"
WIDER = {  # kind: the stacks in a sentence, in a picture
    "linear": ("Random linear stacks with more empty slots", "linear, slots"),
    "linear, covariates": ("Random linear stacks with more covariates", "linear, covariates"),
    "softmax": ("Random softmax stacks with a wider stream", "softmax, stream"),
    WIDE_TRAINED: ("Trained linear stacks with more empty slots", "trained linear"),
}


class Stack(NamedTuple):
    """A stack, or several: the one counts that is furthest from what is said. Of a weak residual
    connection two: it, and the usual one."""

    says: str  # the subject of a sentence
    source: str
    cases: tuple[str, ...]
    redrawn: str  # the runs that judge it
    note: str = ""
    revision: str = ""  # of the lead; the disparity was judged nowhere


def fresh_runs(config) -> str:
    """The runs that judge every row of untrained stacks."""
    return f"{config.runs} fresh runs, 16 before"


def stacks(config) -> dict[str, Stack]:
    """Every judged stack: those in which depth is said to amplify; then those in which it is said
    to change nothing; and those whose residual connection is weaker. A smaller tier lacks some."""
    low, high, gain = (f"gain {g:g}" for g in (config.gains[0], config.gains[-1], config.gain))
    fresh, shots = fresh_runs(config), max(config.trained[0][1].task.lengths)

    def linear(size, gain, source, note=""):
        says = f"Random linear stacks of the {size} gain, tied or not, {ALONE},"
        return Stack(says, source, (f"linear: {gain}", f"linear: tied, {gain}"), fresh, note)

    def random(parts, case, source=SECOND, how=ALONE, revision=""):
        says = f"Random {parts} stacks of {gain}, {how},"
        return Stack(says, source, (case,), fresh, revision=revision)

    def trained(parts, case, source=THIRD, how="two of a prompt", note="", revision=""):
        note = f"trained to near-ridge risk on {shots}-shot prompts{note}"
        runs = f"{config.trained_runs} runs of shared models near ridge regression"
        runs += "; before, 16 runs that were not near it"
        return Stack(f"Trained {parts} stacks, {how},", source, (case,), runs, note, revision)

    def weak(kind):
        cases = (f"{kind}: skip {config.skip:g}", f"{kind}: {gain}")
        return Stack(f"The residual connection of random {kind} stacks", RESIDUAL, cases, fresh)

    theorem, short = READING.replace("our reading, ", ""), "; one-shot prompts are not like these"
    at_bound, added = "of 256 runs the lead changes by the bound itself", "added"
    pairs, steps = f"{fresh}, {config.many_pairs} pairs in each, not 64", "it said equalises"
    descent, parts = "Layers that are steps of gradient descent", "softmax + norm + MLP"
    return {
        "linear, largest gain": linear("largest", high, READING),
        "linear, shared": random("linear", f"linear: {gain}, shared", THIRD, SHARED, added),
        "softmax": random("softmax", f"softmax: {gain}"),
        "softmax, tied": random("tied softmax", f"softmax: tied, {gain}", revision=added),
        "softmax, norm, MLP": random(parts, f"MLP: {gain}"),
        "softmax, shared": random("softmax", f"softmax: {gain}, shared", THIRD, SHARED, added),
        # To softmax that reads one key all weights are 1: docs/theory, "Softmax reads one key".
        "trained linear, alone": trained(
            "linear", "trained: linear, alone", theorem, ALONE, short, added
        ),
        "trained linear, shared": trained("linear", "trained: linear, together"),
        "trained softmax, shared": trained("softmax", "trained: softmax, together"),
        "trained MLP, shared": trained(parts, "trained: MLP, together"),
        "linear, smallest gain": linear("smallest", low, "derived here", at_bound),
        "descent": Stack(descent, "derived here", ("masked: descent",), pairs, revision=steps),
        "linear, weak residual": weak("linear"),
        "softmax, weak residual": weak("softmax"),
    }
