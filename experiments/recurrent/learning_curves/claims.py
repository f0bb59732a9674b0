"""What `learning_curves` judges, fixed before its first run but for what the rows say."""

from functools import partial

import numpy as np

from experiments.recurrent.learning_curves.config import (
    DEPTHS,
    LABELS,
    LAYERS,
    RULE,
    STACKED,
    TIMES,
    TOKENS,
)
from lsa_lab.judging.statements import Statement, grid, having
from lsa_lab.store import parts, results

NAMES = RULE | {"mesa": "mesa", "softmax": "softmax attention"}
FLOOR = "At {times} times its training length DeltaNet has the risk that the closed curve of its "
ONE_PASS = ("additive", "lms", "delta", "gated_delta")
TWINS = ("DeltaNet", "gated DeltaNet")  # where the task stays the best gate is 1
ORDERED = STACKED[1:]  # layers whose state tells a token from the one before it
PART = (
    "added, and fixed before its own runs of {steps} steps and width {width}; a pilot of two other "
    "runs had asked for more steps and for the constant beside interleaved tokens"
)
MEDIAN = "it was the geometric mean, which one run of nine that had not left its start decided"


class Curves:
    """A result's risks at lengths and its distances to rules."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)

    def near(self, risk, times=1):
        """The mean over the last n/2 prefixes up to ``times`` the length in training."""
        end = times * self.config.n
        return risk.sel(prefix=slice(end - self.config.n // 2 + 1, end)).mean("prefix")

    def over_floor(self, labels, times):  # [R]
        """The risk of one trained layer of DeltaNet over the closed curve of its mean step."""
        closed = self.dataset.closed_of_step.sel(labels=labels)
        trained = self.layers("delta").risk
        return (self.near(trained, times) / self.near(closed, times)).values

    def over_curve(self, runs, layer):  # [R]
        """The mean risk over 1 to n demonstrations over that of the rule's closed curve."""
        lengths = slice(1, self.config.n)
        closed = self.dataset.closed.sel(rule=RULE[layer], prefix=lengths)
        return (runs.risk.sel(prefix=lengths).mean("prefix") / closed.mean("prefix").item()).values

    def growth(self, layer, times):  # [R]
        """One layer's risk at ``times`` the length in training over that at it."""
        risk = self.layers(layer).risk
        return (self.near(risk, times) / self.near(risk)).values

    def own_over_others(self, layer):  # [R]
        """The distance to the layer's rule over that to the nearest other one."""
        distance = self.layers(layer).distance
        alike = TWINS if RULE[layer] in TWINS else (RULE[layer],)
        others = distance.drop_sel(rule=list(alike)).min("rule")
        return (distance.sel(rule=RULE[layer]) / others).values

    def nearness(self, layer) -> np.ndarray:  # [R]
        """The distance to the nearest rule over that to ridge regression on another task's
        labels: the null."""
        runs = self.layers(layer)
        return (runs.distance.min("rule") / runs.distance_to_chance).values

    def layers(self, layer, depth=DEPTHS[0]):
        """The runs of one layer or of two."""
        return self.dataset.sel(layer=layer, depth=depth)

    def stack(self, tokens, layer):
        """The runs of two layers that were trained for longer."""
        return parts.part(self.dataset, "stacks").sel(tokens=tokens, layer=layer)


numbers = Curves


def ridge_over_own(runs, layer):  # [R]
    """The distance to ridge regression over that to one pass of the layer's rule."""
    return (runs.distance.sel(rule="ridge") / runs.distance.sel(rule=RULE[layer])).values


def statements(config) -> tuple[Statement, ...]:
    last = "the mean over the last n/2 prefixes up to a length"
    over_curve = f"mean risk over 1 to {config.n} demonstrations over the closed curve's"
    own = config.stacks
    part = PART.format(steps=own.steps, width=own.width)

    def of_layers(ids, layers, among=config.layers, **axes):
        return having(grid(ids, layer=layers, **axes), layer=among)

    def named(layer, **_):
        return dict(name=NAMES[layer], steps=own.steps)

    anew = dict(revision=MEDIAN, redrawn=f"{config.runs} fresh runs, 9 before")
    median = partial(Statement, statistic="median")
    row, later = partial(median, words=named, **anew), partial(median, words=named, revision=part)
    return (
        median(
            "floor",
            "derived here",
            FLOOR + "mean step gives, labels {labels}",
            f"risk over the closed curve's, each {last}",
            at_least=1 / 1.1,
            at_most=1.1,
            note="one layer; labels as they are, which is what it reads, have the scale that is "
            "best in training; all runs share the test prompts",
            sample=lambda c, labels, times: c.over_floor(labels, times),
            cells=grid(
                "floor_divided_2 floor_divided_8 floor_as_are_2 floor_as_are_8",
                labels=LABELS,
                times=TIMES,
            ),
            **anew,
        ),
        row(
            "reaches_curve",
            "derived here",
            "One trained layer of {name} reaches the closed curve of its rule or does better",
            over_curve,
            at_most=1.05,
            note="the rule with the constant step, gate and scale of labels that are best; linear "
            "attention with the best scale at every length",
            sample=lambda c, layer: c.over_curve(c.layers(layer), layer),
            cells=of_layers(
                "curve_additive curve_lms curve_delta curve_gated_delta curve_mesa", tuple(RULE)
            ),
            message="One trained layer reaches the closed curve of its rule or does better",
        ),
        row(
            "no_growth",
            "derived here",
            "At {times} times the training length one layer of {name} has no larger risk",
            f"risk over that at the training length, each {last}",
            at_most=1.1,
            note="no closed curve of these rules rises",
            revision=f"{MEDIAN}; a prediction that is not finite counts as cut",
            sample=lambda c, layer, times: c.growth(layer, times),
            cells=of_layers(
                "grows_additive_2 grows_additive_8 grows_lms_2 grows_lms_8 grows_delta_2 "
                "grows_delta_8 grows_gated_delta_2 grows_gated_delta_8 grows_mesa_2 grows_mesa_8 "
                "grows_softmax_2 grows_softmax_8",
                LAYERS,
                times=TIMES,
            ),
            message="On prompts of 2 and 8 times the training length the risk is not larger",
        ),
        row(
            "own_rule",
            "derived here",
            "One trained layer of {name} is nearer to its own rule than to any other",
            "mean squared distance of predictions to its rule over that to the nearest other, over "
            f"1 to {config.n} demonstrations",
            at_most=1.0,
            note="the others: those of the other layers; the caption has the null",
            revision=f"{MEDIAN}; DeltaNet and gated DeltaNet count as one rule",
            sample=lambda c, layer: c.own_over_others(layer),
            cells=of_layers("own_additive own_lms own_delta own_gated_delta own_mesa", tuple(RULE)),
            message="One trained layer is nearer to its own rule than to those of other layers",
        ),
        row(
            "two_are_ridge",
            "derived here",
            "Two trained layers of {name} are at least twice nearer to ridge regression than to "
            "one pass of their rule",
            "mean squared distance of predictions to ridge over that to the rule of one layer",
            at_most=0.5,
            note="a pilot of one seed, wider and trained for 2 500 steps, had a fifth",
            sample=lambda c, layer: ridge_over_own(c.layers(layer, DEPTHS[-1]), layer),
            cells=of_layers("ridge_additive ridge_lms ridge_delta ridge_gated_delta", ONE_PASS),
            message="Two trained layers are at least twice nearer to ridge regression than to one "
            "pass of their rule",
        ),
        later(
            "reads_interleaved",
            "derived here",
            "Two trained layers of {name} that read x_t and y_t as tokens of their own reach the "
            "closed curve of one layer that reads them bound, or do better",
            over_curve,
            at_most=1.05,
            sample=lambda c, layer: c.over_curve(c.stack("interleaved", layer), layer),
            cells=of_layers("reads_delta reads_gated_delta reads_mesa", ORDERED, own.layers),
            message="Two layers of one kind that read x_t and y_t as tokens of their own reach the "
            "closed curve of one layer that reads them bound",
        ),
        later(
            "no_order",
            "derived here; a control",
            "Two trained layers of linear attention, whose state is a sum without order, do not",
            over_curve,
            at_least=1.5,
            sample=lambda c: c.over_curve(c.stack("interleaved", "additive"), "additive"),
        ),
        later(
            "longer_are_ridge",
            "derived here",
            "After {steps} steps two layers of {name} on {tokens} tokens are at least twice nearer "
            "to ridge regression than to one pass of their rule",
            "mean squared distance of predictions to ridge over that to the rule of one layer",
            at_most=0.5,
            sample=lambda c, tokens, layer: ridge_over_own(c.stack(tokens, layer), layer),
            cells=of_layers(
                "longer_delta_bound longer_delta_apart longer_gated_bound longer_gated_apart",
                ORDERED[:2],
                own.layers,
                tokens=TOKENS,
            ),
            message="After a longer training two layers are at least twice nearer to ridge "
            "regression than to one pass of their rule",
        ),
    )
