"""The stacks that `amplification` judges, by name; what is said of each stands in its claims."""

from typing import NamedTuple

THEOREM = "A1 (2508.00385), Theorem 1"
SECOND = "A1 (2508.00385), question 2, open question"
THIRD = "A1 (2508.00385), question 3, open question"
OWN = "derived here"
ALONE, TOGETHER = "each demonstration alone", "both demonstrations in one prompt"
# Those in which depth is said to amplify, and those in which it is said to change nothing.
UNTRAINED = (
    *("linear, largest gain", "linear, shared", "softmax", "softmax, tied", "softmax and norm"),
    *("softmax and norm, tied", "softmax, norm and MLP", "softmax, norm and MLP, tied"),
    *("softmax, shared", "positive feedback"),
)
UNMOVED = ("linear, smallest gain", "descent", "GD++", "descent from a prior")
TRAINED = (
    *("trained linear, alone", "trained linear, shared", "trained softmax, shared"),
    "trained softmax, norm and MLP, shared",
)
RESIDUAL = ("weak residual, linear", "weak residual, softmax")
NEAR = "near ridge regression on prompts of the length in training, as the caption tells"


class Stack(NamedTuple):
    """A stack, or several: the one counts that is furthest from what is said."""

    label: str
    says: str  # the subject of a sentence, a plural
    source: str
    cases: tuple[str, ...]
    mode: str = "alone"
    reading: str = "token"
    note: str = ""
    revision: str = ""  # of the lead; the disparity was judged nowhere
    redrawn: str = ""  # where it is not ``fresh_runs``


def fresh_runs(config) -> str:
    """The runs that judge every row of untrained stacks."""
    return f"{config.runs} fresh runs, 16 before"


def fresh_pairs(config) -> str:
    """The runs that judge stacks whose weights are the same in every run, or nearly."""
    return f"{fresh_runs(config)}, {config.many_pairs} pairs in each, not 64"


def shared_case(case: str) -> str:
    """The case of untrained stacks in which both demonstrations are in one prompt."""
    return f"{case}, shared"


def stacks(config) -> dict[str, Stack]:
    """Every judged stack, in the order of the appendix. A smaller tier has no cases of some."""
    return _random(config) | _constructed(config) | _trained(config) | _residual(config)


def _random(config) -> dict[str, Stack]:
    low, high, gain = (f"gain {g:g}" for g in (config.gains[0], config.gains[-1], config.gain))

    def linear(size, gain):
        says = f"Random linear stacks of the {size} gain, tied or not, {ALONE},"
        cases = (f"linear: {gain}", f"linear: tied, {gain}")
        return dict(label=f"linear, {gain}, tied or not", says=says, cases=cases)

    def softmax(label, kind, parts):
        says = f"Random {parts} stacks of {gain}, {ALONE},"
        return Stack(label, says, SECOND, (f"{kind}: {gain}",))

    def tied(label, kind, parts):
        says = f"Random tied {parts} stacks of {gain}, {ALONE},"
        return Stack(f"{label}, tied", says, SECOND, (f"{kind}: tied, {gain}",), revision="added")

    def shared(kind):
        says, cases = f"Random {kind} stacks of {gain}, {TOGETHER},", (f"{kind}: {gain}",)
        return Stack(f"{kind}, shared", says, THIRD, cases, "together", revision="added")

    reading, bound = f"{THEOREM}, our reading, in our setting", "of 256 runs the lead changes by"
    norm, mlp = ("+ norm", "norm", "softmax + norm"), ("+ norm, MLP", "MLP", "softmax + norm + MLP")
    return {
        "linear, largest gain": Stack(source=reading, **linear("largest", high)),
        "linear, smallest gain": Stack(
            source=OWN, note=f"{bound} the bound itself", **linear("smallest", low)
        ),
        "linear, shared": shared("linear"),
        "softmax": softmax("softmax", "softmax", "softmax"),
        "softmax, tied": tied("softmax", "softmax", "softmax"),
        "softmax and norm": softmax(*norm),
        "softmax and norm, tied": tied(*norm),
        "softmax, norm and MLP": softmax(*mlp),
        "softmax, norm and MLP, tied": tied(*mlp),
        "softmax, shared": shared("softmax"),
    }


def _constructed(config) -> dict[str, Stack]:
    def feedback(sign, weights, case):
        says = f"Stacks of {sign} feedback, {weights} = cI,"
        return Stack(f"{sign} feedback", says, OWN, (case,))

    def steps(label, says, case):
        rest = dict(reading="prediction", revision="it said equalises")
        return Stack(label, says, OWN, (case,), redrawn=fresh_pairs(config), **rest)

    from_prior = ("descent from a prior", "Steps of descent from a prior in the weights")
    return {
        "positive feedback": feedback("positive", "w_kq = w_pv", "linear: push"),
        "negative feedback": feedback("negative", "w_kq = -w_pv", "linear: pull"),
        "descent": steps("descent", "Layers that are steps of gradient descent", "masked: descent"),
        "GD++": steps("GD++", "Layers that are steps of GD++", "masked: GD++"),
        "descent from a prior": steps(*from_prior, "masked: prior"),
    }


def _trained(config) -> dict[str, Stack]:
    """A demonstration is alone in linear stacks only: to softmax without the query among the keys
    all weights are 1, and the ratio of any two flows (docs/theory, "Softmax reads one key")."""
    runs = f"{config.trained_runs} runs of shared models that are near ridge regression"
    rest = dict(reading="prediction", redrawn=f"{runs}; it were 16 far from it")

    def shared(label, kind, parts):
        says = f"Trained {parts} stacks, two demonstrations of a prompt as in training,"
        label, case = f"trained {label}, shared", f"trained: {kind}"
        return Stack(label, says, THIRD, (case,), "together", note=NEAR, **rest)

    return {
        "trained linear, alone": Stack(
            "trained linear, alone",
            f"Trained linear stacks, {ALONE},",
            f"{THEOREM}, in our setting",
            ("trained: linear",),
            note=f"{NEAR}, of which one is far",
            revision="added",
            **rest,
        ),
        "trained linear, shared": shared("linear", "linear", "linear"),
        "trained softmax, shared": shared("softmax", "softmax", "softmax"),
        "trained softmax, norm and MLP, shared": shared(
            "+ norm, MLP", "MLP", "softmax + norm + MLP"
        ),
    }


def _residual(config) -> dict[str, Stack]:
    """The linear and the softmax stacks whose residual connection is weaker."""
    source = "A1 (2508.00385), on residual connections, limitation, in our setting"
    skip = f"{config.skips[0]:g}"

    def weak(kind):
        label, case = f"{kind}, residual × {skip}", f"{kind}: skip {skip}"
        return Stack(label, f"random {kind} stacks", source, (case,))

    return {"weak residual, linear": weak("linear"), "weak residual, softmax": weak("softmax")}
