"""What `width_and_ratio` judges, by the criteria in its Config."""

from math import exp, log

from lsa_lab.claims import Statement

CAPACITY = "A1 (2508.00385), on model capacity, limitation, our reading, in our setting"
KINDS = {  # id: the kind in the Dataset, the stacks in words
    "linear": ("linear", "Random linear stacks with more empty slots"),
    "covariates": ("linear, covariates", "Random linear stacks with more covariates"),
    "softmax": ("softmax", "Random softmax stacks with a wider stream"),
    "trained": ("trained linear", "Trained linear stacks with more empty slots"),
}
OPEN = {"covariates": "; with 256 runs the slope is the bound itself"}
LEAD = "the change of the median log ratio from the first layer to the last"
SLOPE = "the slope, for each doubling of the width, of"
DISPARITY = f"{SLOPE} the logarithm of the growth of the median |log ratio| over the layers,"
ALL = "it was the largest width against the smallest, which leaves out those between"
RELATIVE = ("linear", "covariates")  # leads of a heavy tail, all positive: by their logarithms


def statements(config) -> tuple[Statement, ...]:
    return tuple(each for name in KINDS for each in _about(config, name))


def _about(config, name):
    _, stacks = KINDS[name]
    trained, of_lead = name == "trained", f"the logarithm of {LEAD}" * (name in RELATIVE) or LEAD
    note = "flows: " + (
        "two of the prompt's, to the prediction" if trained else "alone, to the token"
    )
    yield Statement(
        f"{name}_lead",
        CAPACITY,
        f"{stacks} widen the lead of the demonstration ahead after one layer more",
        f"{SLOPE} {of_lead},",
        "median",
        at_least=config.clear,
        note=note,
        revision=ALL,
    )
    yield Statement(
        f"{name}_disparity",
        CAPACITY,
        f"{stacks} make two flows more unequal than narrow ones do, by a factor of "
        f"{config.factor:g} for each doubling",
        DISPARITY,
        "median",
        at_least=log(config.factor),
        note=note + OPEN.get(name, ""),
        revision=ALL,
    )
    yield Statement(
        f"{name}_same",
        "derived here",
        f"{stacks} make two flows as unequal as narrow ones do, within a factor of "
        f"{exp(config.same):.2f} for each doubling",
        DISPARITY,
        "median",
        margin=config.same,
        note="the invariant statistic of no orientation" + OPEN.get(name, ""),
    )
