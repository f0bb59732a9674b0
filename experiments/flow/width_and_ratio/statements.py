"""What `width_and_ratio` judges, by the criteria in its Config."""

from math import exp

from lsa_lab.claims import Statement

CAPACITY = "A1 (2508.00385), on model capacity, limitation, our reading, in our setting"
KINDS = {  # id: the kind in the Dataset, the stacks in words
    "linear": ("linear", "Random linear stacks with more empty slots"),
    "covariates": ("linear, covariates", "Random linear stacks with more covariates"),
    "softmax": ("softmax", "Random softmax stacks with a wider stream"),
    "trained": ("trained linear", "Trained linear stacks with more empty slots"),
}
ENDS = "at the largest width, less that at the smallest,"
LEAD = f"the change of the median log ratio from the first layer to the last, {ENDS}"
DISPARITY = "the growth of the median |log ratio| from the first layer to the last, "
DISPARITY += "at the largest width over that at the smallest,"
SLOPE = "the slope of the logarithm of that growth, for each doubling of the width,"


def statements(config) -> tuple[Statement, ...]:
    return tuple(each for name in KINDS for each in _about(config, name))


def _about(config, name):
    _, stacks = KINDS[name]
    trained = name == "trained"
    flows = "two of the prompt's, to the prediction" if trained else "alone, to the query's token"
    yield Statement(
        f"{name}_lead",
        CAPACITY,
        f"{stacks} widen the lead of the demonstration ahead after one layer more",
        LEAD,
        "median",
        at_least=config.clear,
        note=f"flows: {flows}",
    )
    yield Statement(
        f"{name}_disparity",
        CAPACITY,
        f"{stacks} make two flows more unequal than narrow ones do",
        DISPARITY,
        "median",
        at_least=config.factor,
        note=f"flows: {flows}",
    )
    yield Statement(
        f"{name}_same",
        "derived here",
        f"{stacks} make two flows as unequal as narrow ones do, within a factor of "
        f"{exp(config.same):.2f} for each doubling",
        SLOPE,
        "median",
        margin=config.same,
        note="the invariant statistic of no orientation",
    )
