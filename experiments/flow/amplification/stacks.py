"""The stacks that `amplification` judges, and what depth is said to do to two flows in each."""

from typing import NamedTuple

THEOREM = "A1 (2508.00385), Theorem 1"
SECOND = "A1 (2508.00385), question 2, open question"
THIRD = "A1 (2508.00385), question 3, open question"
OWN = "derived here"

KINDS = {"linear": "linear", "softmax": "softmax", "norm": "softmax + norm"}
KINDS |= {"MLP": "softmax + norm + MLP"}
QUERY_A_KEY = ", query a key"  # trained so, as A1's layer is
LABELS = KINDS | {"norm": "+ norm", "MLP": "+ norm, MLP"}


class Stack(NamedTuple):
    """A stack, or several of which the one counts that is furthest from what is said."""

    id: str
    label: str
    says: str  # the subject of a sentence, a plural
    source: str
    cases: tuple[str, ...]
    mode: str = "alone"
    reading: str = "token"
    effect: str = "amplify"  # or "equalise", or "leave" as it is
    note: str = ""
    revision: str = ""  # of the lead; the disparity was judged nowhere
    redrawn: str = ""  # where it is not ``again``


def again(config) -> str:
    """The runs that judge every row of untrained stacks."""
    return f"{config.runs} fresh runs, 16 before"


def often(config) -> str:
    """Those where the weights are the same in every run, or nearly."""
    return f"{again(config)}, {config.many_pairs} pairs in each, not 64"


def stacks(config) -> list[Stack]:
    return [
        *_random_linear(config),
        *_random_softmax(config),
        *_constructed(config),
        *_trained(config),
    ]


def _random_linear(config):
    low, gain, high = (
        (f"linear: gain {g:g}", f"linear: tied, gain {g:g}")
        for g in (config.gains[0], config.gain, config.gains[-1])
    )
    alone, shared = "each demonstration alone", "both demonstrations in one prompt"
    return (
        Stack(
            "large",
            f"linear, gain {config.gains[-1]:g}, tied or not",
            f"Random linear stacks of the largest gain, tied or not, {alone},",
            f"{THEOREM}, our reading, in our setting",
            high,
        ),
        Stack(
            "small",
            f"linear, gain {config.gains[0]:g}, tied or not",
            f"Random linear stacks of the smallest gain, tied or not, {alone},",
            OWN,
            low,
            effect="leave",
            note="of 256 runs the lead changes by the bound itself",
        ),
        Stack(
            "linear_shared",
            "linear, shared",
            f"Random linear stacks of gain {config.gain:g}, {shared},",
            THIRD,
            gain[:1],
            "together",
            revision="added",
        ),
    )


def _random_softmax(config):
    for kind in config.kinds[1:]:
        gain, alone = f"gain {config.gain:g}", "each demonstration alone"
        yield Stack(
            f"{kind}_random",
            LABELS[kind],
            f"Random {KINDS[kind]} stacks of {gain}, {alone},",
            SECOND,
            (f"{kind}: {gain}",),
        )
        yield Stack(
            f"{kind}_tied",
            f"{LABELS[kind]}, tied",
            f"Random tied {KINDS[kind]} stacks of {gain}, {alone},",
            SECOND,
            (f"{kind}: tied, {gain}",),
            revision="added",
        )
    if "softmax" in config.kinds:
        yield Stack(
            "softmax_shared",
            "softmax, shared",
            f"Random softmax stacks of gain {config.gain:g}, both demonstrations in one prompt,",
            THIRD,
            (f"softmax: gain {config.gain:g}",),
            "together",
            revision="added",
        )


def _constructed(config):
    feedback = {
        "push": ("positive", "Stacks of positive feedback, w_kq = w_pv = cI,", "amplify"),
        "pull": ("negative", "Stacks of negative feedback, w_kq = -w_pv = cI,", "equalise"),
    }
    for name, (sign, says, effect) in feedback.items():
        label = f"{sign} feedback"
        yield Stack(name, label, says, OWN, (f"linear: {name}",), effect=effect)
    steps = {
        "descent": "Layers that are steps of gradient descent",
        "GD++": "Layers that are steps of GD++",
        "prior": "Steps of descent from a prior in the weights",
    }
    for name, says in steps.items():
        label = {"prior": "descent from a prior"}.get(name, name)
        rest = dict(reading="prediction", effect="leave", revision="it said equalises")
        yield Stack(name, label, says, OWN, (f"masked: {name}",), **rest, redrawn=often(config))


def _trained(config):
    kinds = [kind for kind, _ in config.models]
    runs = f"{config.trained_runs} runs of shared models that are near ridge regression"
    for kind in kinds:
        if kind.endswith(QUERY_A_KEY):
            continue
        what, label = f"Trained {KINDS[kind]} stacks", f"trained {LABELS[kind]}"
        rest = {"reading": "prediction", "redrawn": f"{runs}; it were 16 far from it"}
        note = "near ridge regression on prompts of the length in training, as the caption tells"
        if alone(kind) in kinds:
            yield Stack(
                f"{kind}_trained",
                f"{label}, alone",
                f"{what}, each demonstration alone,",
                f"{THEOREM}, in our setting" if kind == "linear" else SECOND,
                (f"trained: {alone(kind)}",),
                **rest,
                note=f"{note}, of which one is far",
                revision="added",
            )
        yield Stack(
            f"{kind}_trained_shared",
            f"{label}, shared",
            f"{what}, two demonstrations of a prompt as in training,",
            THIRD,
            (f"trained: {kind}",),
            "together",
            **rest,
            note=note,
        )


def shared(case):
    """The case of untrained stacks in which both demonstrations are in one prompt."""
    return f"{case}, shared"


def alone(kind):
    """The trained stacks to which a demonstration is shown that is alone with the query.

    To softmax without the query among the keys all weights are 1, and the ratio of any two flows
    (docs/theory, "Softmax reads one key").
    """
    return f"{kind}{QUERY_A_KEY * (kind != 'linear')}"
