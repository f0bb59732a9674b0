"""What `learning_curves` judges, fixed before its first run but for what the rows say."""

import numpy as np

from experiments.recurrent.learning_curves.config import DEPTHS, LABELS, LAYERS, RULE, TIMES
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.store import results

NAMES = RULE | {"mesa": "mesa", "softmax": "softmax attention"}
FLOOR = "At {times} times its training length DeltaNet has the risk that the closed curve of its "
ONE_PASS = ("additive", "lms", "delta", "gated_delta")
TWINS = ("DeltaNet", "gated DeltaNet")  # where the task stays the best gate is 1
MEDIAN = "it was the geometric mean, which one run of nine that had not left its start decided"


def numbers(dataset) -> "Curves":
    return Curves(dataset)


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
        trained = self.dataset.sel(layer="delta", depth=DEPTHS[0]).risk
        return (self.near(trained, times) / self.near(closed, times)).values

    def over_curve(self, layer):  # [R]
        """The mean risk over 1 to n demonstrations over that of the rule's closed curve."""
        lengths = slice(1, self.config.n)
        closed = self.dataset.closed.sel(rule=RULE[layer], prefix=lengths)
        trained = self.dataset.sel(layer=layer, depth=DEPTHS[0]).risk.sel(prefix=lengths)
        return (trained.mean("prefix") / closed.mean("prefix")).values

    def growth(self, layer, depth, times):  # [R]
        """The risk at ``times`` the length in training over that at it."""
        risk = self.dataset.sel(layer=layer, depth=depth).risk
        return (self.near(risk, times) / self.near(risk)).values

    def own_over_others(self, layer):  # [R]
        """The distance to the layer's rule over that to the nearest other one."""
        distance = self.dataset.sel(layer=layer, depth=DEPTHS[0]).distance
        alike = TWINS if RULE[layer] in TWINS else (RULE[layer],)
        others = distance.drop_sel(rule=list(alike)).min("rule")
        return (distance.sel(rule=RULE[layer]) / others).values

    def ridge_over_own(self, layer):  # [R]
        """Two layers' distance to ridge regression over that to one pass of the layer's rule."""
        distance = self.dataset.sel(layer=layer, depth=DEPTHS[-1]).distance
        return (distance.sel(rule="ridge") / distance.sel(rule=RULE[layer])).values

    def nearness(self, layer, depth) -> np.ndarray:  # [R]
        """The distance to the nearest rule over that to ridge regression on another task's
        labels: the null."""
        runs = self.dataset.sel(layer=layer, depth=depth)
        return (runs.distance.min("rule") / runs.distance_to_chance).values


def statements(config) -> tuple[Statement, ...]:
    named = lambda layer, **_: dict(name=NAMES[layer])  # noqa: E731
    last = "the mean over the last n/2 prefixes up to a length"
    looked = dict(revision=MEDIAN, redrawn=f"{config.runs} fresh runs, 9 before")
    return (
        Statement(
            "floor",
            "derived here",
            FLOOR + "mean step gives, labels {labels}",
            f"risk over the closed curve's, each {last}",
            "median",
            at_least=1 / 1.1,
            at_most=1.1,
            note="one layer; labels as they are, which is what it reads, have the scale that is "
            "best in training; all runs share the test prompts",
            **looked,
            label="DeltaNet / curve, {times} n, labels {labels}",
            sample=lambda c, labels, times: c.over_floor(labels, times),
            cells=grid(
                "floor_divided_2 floor_divided_8 floor_as_are_2 floor_as_are_8",
                labels=LABELS,
                times=TIMES,
            ),
        ),
        Statement(
            "reaches_curve",
            "derived here",
            "One trained layer of {name} reaches the closed curve of its rule or does better",
            f"mean risk over 1 to {config.n} demonstrations over the closed curve's",
            "median",
            at_most=1.05,
            note="the rule with the constant step, gate and scale of labels that are best; linear "
            "attention with the best scale at every length",
            **looked,
            label="{name} / its curve",
            sample=lambda c, layer: c.over_curve(layer),
            cells=grid(
                "curve_additive curve_lms curve_delta curve_gated_delta curve_mesa",
                layer=tuple(RULE),
            ),
            words=named,
            message="One trained layer reaches the closed curve of its rule or does better",
        ),
        Statement(
            "no_growth",
            "derived here",
            "At {times} times the training length {depth} layers of {name} have no larger risk",
            f"risk over that at the training length, each {last}",
            "median",
            at_most=1.1,
            note="no closed curve of these rules rises",
            **looked | {"revision": f"{MEDIAN}; a prediction that is not finite counts as cut"},
            label="{depth} of {name}, {times} n / n",
            sample=lambda c, layer, depth, times: c.growth(layer, depth, times),
            cells=grid(
                "grows_additive_2 grows_additive_8 - two_grow_additive "
                "grows_lms_2 grows_lms_8 - two_grow_lms "
                "grows_delta_2 grows_delta_8 - two_grow_delta "
                "grows_gated_delta_2 grows_gated_delta_8 - two_grow_gated_delta "
                "grows_mesa_2 grows_mesa_8 - two_grow_mesa "
                "grows_softmax_2 grows_softmax_8 - two_grow_softmax",
                layer=LAYERS,
                depth=DEPTHS,
                times=TIMES,
            ),
            words=named,
            message="On prompts of 2 and 8 times the training length the risk is not larger",
        ),
        Statement(
            "own_rule",
            "derived here",
            "One trained layer of {name} is nearer to its own rule than to any other",
            "mean squared distance of predictions to its rule over that to the nearest other, over "
            f"1 to {config.n} demonstrations",
            "median",
            at_most=1.0,
            note="the others: those of the other layers; the caption has the null",
            **looked | {"revision": f"{MEDIAN}; DeltaNet and gated DeltaNet count as one rule"},
            label="{name}: own / nearest other",
            sample=lambda c, layer: c.own_over_others(layer),
            cells=grid(
                "own_additive own_lms own_delta own_gated_delta own_mesa", layer=tuple(RULE)
            ),
            words=named,
            message="One trained layer is nearer to its own rule than to those of other layers",
        ),
        Statement(
            "two_are_ridge",
            "derived here",
            "Two trained layers of {name} are at least twice nearer to ridge regression than to "
            "one pass of their rule",
            "mean squared distance of predictions to ridge over that to the rule of one layer",
            "median",
            at_most=0.5,
            note="a pilot of one seed, wider and trained for 2 500 steps, had a fifth",
            **looked,
            label="two layers of {name}: ridge / own",
            sample=lambda c, layer: c.ridge_over_own(layer),
            cells=grid("ridge_additive ridge_lms ridge_delta ridge_gated_delta", layer=ONE_PASS),
            words=named,
            message="Two trained layers are at least twice nearer to ridge regression than to one "
            "pass of their rule",
        ),
    )
