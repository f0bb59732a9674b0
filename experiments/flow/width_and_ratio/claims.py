"""What `width_and_ratio` judges."""

from functools import cached_property
from math import exp, log

import numpy as np

from experiments.flow.width_and_ratio.config import TRAINED
from lsa_lab.judging.statements import Statement, grid

CLEAR = 0.1  # a lead that changes by this with a doubling of the width is wider
FACTOR = 1.1  # a growth of the disparity that is larger by this is more
SAME = 0.1  # a growth whose logarithm changes by less with a doubling is the same
FAR = 1.5  # the excess risk over that of ridge regression of a stack that is far from trained
CAPACITY = "A1 (2508.00385), on model capacity, limitation, our reading, in our setting"
LEAD = "the change of the median log ratio from the first layer to the last"
SLOPE = "the slope, for each doubling of the width, of"
DISPARITY = f"{SLOPE} the logarithm of the growth of the median |log ratio| over the layers,"
ALL = "it was the largest width against the smallest, which leaves out those between"
STACKS = {  # kind: the stacks in a sentence, in a picture
    "linear": ("Random linear stacks with more empty slots", "random linear, slots"),
    "linear, covariates": (
        "Random linear stacks with more covariates",
        "random linear, covariates",
    ),
    "softmax": ("Random softmax stacks with a wider stream", "random softmax, stream"),
    TRAINED: ("Trained linear stacks with more empty slots", "trained linear, slots"),
}
RELATIVE = ("linear", "linear, covariates")  # leads of a heavy tail, all positive: logarithms


def widths(dataset, kind) -> np.ndarray:  # [W]
    return dataset["trained_width" if kind == TRAINED else "width"].values


def growths(dataset, kind, stage="trained"):  # -> [R, W] x 2
    """What changes from the first layer to the last: the median log ratio, and the logarithm of
    the growth of the median |log ratio|."""
    if kind == TRAINED:
        axes = ("seed", "trained_width", "trained_layer")
        both = (dataset[f"trained_{name}"].sel(stage=stage) for name in ("median", "spread"))
    else:
        axes = ("run", "width", "layer")
        both = (dataset[name].sel(kind=kind) for name in ("median", "spread"))
    median, spread = (values.transpose(*axes).values for values in both)
    return median[..., -1] - median[..., 0], np.log(spread[..., -1] / spread[..., 0])


def risk_ratios(dataset) -> np.ndarray:  # [W]
    """The excess risk of trained stacks over that of ridge regression."""
    return (dataset.risk.mean("seed") / dataset.ridge.mean("seed")).values


def numbers(dataset) -> "Slopes":
    return Slopes(dataset)


class Slopes:
    """What a doubling of the width adds, in each run, to the lead and to the disparity."""

    def __init__(self, dataset):
        self.dataset = dataset

    @cached_property
    def far(self) -> bool:
        """What is far from trained judges nobody."""
        return bool(risk_ratios(self.dataset).max() > FAR)

    def slope(self, kind, values):  # [R, W] -> [R]
        if kind == TRAINED and self.far:
            return None
        doublings = np.log2(widths(self.dataset, kind))
        centred = doublings - doublings.mean()
        return values @ centred / (centred @ centred)

    def lead(self, kind):  # -> [R]
        lead, _ = growths(self.dataset, kind)
        return self.slope(kind, np.log(np.maximum(lead, 1e-3)) if kind in RELATIVE else lead)

    def disparity(self, kind):  # -> [R]
        return self.slope(kind, growths(self.dataset, kind)[1])


def _words(kind) -> dict[str, str]:
    stacks, label = STACKS[kind]
    trained = kind == TRAINED
    return dict(
        stacks=stacks,
        label=label,
        what=f"the logarithm of {LEAD}" if kind in RELATIVE else LEAD,
        flows="two of the prompt's, to the prediction" if trained else "alone, to the token",
        open="; with 256 runs the slope is the bound itself" if "covariates" in kind else "",
    )


def statements(config) -> tuple[Statement, ...]:
    of_kind = dict(statistic="median", words=_words)
    every = "Random and trained stacks that are wider"
    return (
        Statement(
            "wider_lead",
            CAPACITY,
            "{stacks} widen the lead of the demonstration ahead after one layer more",
            f"{SLOPE} {{what}},",
            at_least=CLEAR,
            note="flows: {flows}",
            revision=ALL,
            label="{label}",
            sample=Slopes.lead,
            cells=grid("linear_lead covariates_lead softmax_lead trained_lead", kind=STACKS),
            message=f"{every} widen the lead of the demonstration ahead after one layer more",
            **of_kind,
        ),
        Statement(
            "more_disparity",
            CAPACITY,
            "{stacks} make two flows more unequal than narrow ones do, by a factor of "
            f"{FACTOR:g} for each doubling",
            DISPARITY,
            at_least=log(FACTOR),
            note="flows: {flows}{open}",
            revision=ALL,
            sample=Slopes.disparity,
            cells=grid(
                "linear_disparity covariates_disparity softmax_disparity trained_disparity",
                kind=STACKS,
            ),
            message=f"{every} make two flows more unequal than narrow ones do, by a factor of "
            f"{FACTOR:g} for each doubling",
            **of_kind,
        ),
        Statement(
            "equal_disparity",
            "derived here",
            "{stacks} make two flows as unequal as narrow ones do, within a factor of "
            f"{exp(SAME):.2f} for each doubling",
            DISPARITY,
            margin=SAME,
            note="the invariant statistic of no orientation{open}",
            label="{label}",
            sample=Slopes.disparity,
            cells=grid("linear_same covariates_same softmax_same trained_same", kind=STACKS),
            message=f"{every} make two flows as unequal as narrow ones do, within a factor of "
            f"{exp(SAME):.2f} for each doubling",
            **of_kind,
        ),
    )
