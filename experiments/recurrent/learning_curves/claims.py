"""What `learning_curves` judges, fixed before its first run but for what the rows say."""

from functools import cached_property

import numpy as np

from experiments.recurrent.learning_curves.config import (
    DEPTHS,
    LABELS,
    LAYERS,
    RULE,
    SINGLE,
    STACKED,
    STEPS_OF_TWO,
    TIMES,
    TOKENS,
)
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.store import parts, results

NAMES = RULE | {"mesa": "mesa", "softmax": "softmax attention"}
FLOOR = "At {times} times its training length DeltaNet has the risk that the closed curve of its "
ONE_PASS = ("additive", "lms", "delta", "gated_delta")
TWINS = ("DeltaNet", "gated DeltaNet")  # where the task stays the best gate is 1
ORDERED = STACKED[1:]  # layers whose state tells a token from the one before it
HARDLY = 0.9  # the risk of stacks that predict hardly more than nothing, whose answer 0 has 1
IDLE = "; stacks that predict hardly more than nothing judge nobody, after a look"
PART = (
    "added, and fixed before its own runs of {steps} steps and width {width}; a pilot of two other "
    "runs had asked for more steps and for the constant beside interleaved tokens"
)
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

    @cached_property
    def stacks(self):
        """The part of longer trainings."""
        return parts.part(self.dataset, "stacks")

    def stack(self, tokens, layer):
        """Two layers."""
        return self.stacks.sel(tokens=tokens, layer=layer)

    def in_training(self, risk):
        """The mean over 1 to n demonstrations."""
        return risk.sel(prefix=slice(1, self.config.n)).mean("prefix").values

    def interleaved_over_curve(self, layer):  # [R]
        """Two layers' mean risk over that of the closed curve of their rule."""
        closed = self.dataset.closed.sel(rule=RULE[layer], prefix=slice(1, self.config.n))
        return (
            self.in_training(self.stack("interleaved", layer).risk) / closed.mean("prefix").item()
        )

    def predicts(self, tokens, layer) -> bool:
        """Whether the median of two layers does better than an answer of hardly more than 0."""
        return np.median(self.in_training(self.stack(tokens, layer).risk)) < HARDLY

    def interleaved_growth(self, layer, times):  # [R], or None
        risk = self.stack("interleaved", layer).risk
        grown = (self.near(risk, times) / self.near(risk)).values
        return grown if self.predicts("interleaved", layer) else None

    def of_each_rule(self, tokens, layer):  # [R, r]
        """Two layers' distances in training."""
        return self.stack(tokens, layer).distance.sel(span="training").transpose("run", "rule")

    def ridge_over_one_pass(self, tokens, layer):  # [R]
        distance = self.of_each_rule(tokens, layer)
        return (distance.sel(rule="ridge") / distance.sel(rule=RULE[layer])).values

    def two_steps_over_others(self, layer):  # [R]
        distance = self.of_each_rule("bound", layer)
        others = distance.drop_sel(rule=STEPS_OF_TWO).min("rule")
        return (distance.sel(rule=STEPS_OF_TWO) / others).values

    def parting(self, tokens, layer, times):  # [R], or None
        """The distance on longer prompts to the rule that was nearest in training, over that to
        ridge regression's answers to another prompt."""
        nearest = self.of_each_rule(tokens, layer).argmin("rule")
        later = self.stack(tokens, layer).sel(span=str(times))
        apart = (later.distance.isel(rule=nearest) / later.distance_to_chance).values
        return apart if self.predicts(tokens, layer) else None


def statements(config) -> tuple[Statement, ...]:
    named = lambda layer, **_: dict(name=NAMES[layer])  # noqa: E731
    last = "the mean over the last n/2 prefixes up to a length"
    over_curve = f"mean risk over 1 to {config.n} demonstrations over the closed curve's"
    own = config.stacks
    part = PART.format(steps=own.steps, width=own.width)
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
            over_curve,
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
        Statement(
            "reads_interleaved",
            "derived here",
            "Two trained layers of {name} that read x_t and y_t as tokens of their own reach the "
            "closed curve of one layer that reads them bound, or do better",
            over_curve,
            "median",
            at_most=1.05,
            revision=part,
            label="two of {name}, x, y / curve",
            sample=lambda c, layer: c.interleaved_over_curve(layer),
            cells=grid("reads_delta reads_gated_delta reads_mesa", layer=ORDERED),
            words=named,
            message="Two layers of one kind that read x_t and y_t as tokens of their own reach the "
            "closed curve of one layer that reads them bound",
        ),
        Statement(
            "no_order",
            "derived here; a control",
            "Two trained layers of linear attention, whose state is a sum without order, do not",
            over_curve,
            "median",
            at_least=1.5,
            revision=part,
            label="two of linear attention, x, y / curve",
            sample=lambda c: c.interleaved_over_curve("additive"),
        ),
        Statement(
            "one_cannot_bind",
            "derived here",
            "One trained layer of {name} that reads x_t and y_t as tokens of their own predicts "
            "hardly more than nothing, which has the risk 1",
            f"mean risk over 1 to {config.n} demonstrations",
            "median",
            at_least=HARDLY,
            note="tokens hold a constant beside x_t or y_t; without one no number of layers of "
            'linear attention predicts (docs/theory, "A sum binds no tokens")',
            revision=part,
            label="one of {name}, x, y",
            sample=lambda c, layer: c.in_training(c.stacks.single_risk.sel(single=layer)),
            cells=grid("one_delta one_gated_delta", layer=SINGLE),
            words=named,
            message="One layer that reads x_t and y_t as tokens of their own predicts hardly more "
            "than nothing",
        ),
        Statement(
            "longer_are_ridge",
            "derived here",
            "After {steps} steps two layers of {name} on {tokens} tokens are at least twice nearer "
            "to ridge regression than to one pass of their rule",
            "mean squared distance of predictions to ridge over that to the rule of one layer",
            "median",
            at_most=0.5,
            revision=part,
            label="two of {name}, {tokens}: ridge / own",
            sample=lambda c, tokens, layer: c.ridge_over_one_pass(tokens, layer),
            cells=grid(
                "longer_delta_bound longer_gated_bound longer_delta_apart longer_gated_apart",
                tokens=TOKENS,
                layer=ORDERED[:2],
            ),
            words=lambda tokens, layer: dict(name=NAMES[layer], steps=own.steps),
            message="After a longer training two layers are at least twice nearer to ridge "
            "regression than to one pass of their rule",
        ),
        Statement(
            "two_steps",
            "derived here",
            "Two trained layers of linear attention on bound tokens are nearer to the best two "
            "steps of descent than to any other rule",
            "mean squared distance to two steps over that to the nearest other rule",
            "median",
            at_most=1.0,
            note="steps that all prompts of a length share, in closed form",
            revision=part,
            label="two of linear attention: two steps / other",
            sample=lambda c: c.two_steps_over_others("additive"),
        ),
        Statement(
            "stays_with_rule",
            "derived here",
            "At {times} times the training length two layers of {name} on {tokens} tokens are "
            "within a tenth of the rule that is nearest in training",
            "mean squared distance to that rule over that to ridge regression's answers to another "
            "prompt, over the last n/2 prefixes",
            "median",
            at_most=0.1,
            revision=part + IDLE,
            label="two of {name}, {tokens}, {times} n: from rule",
            sample=lambda c, tokens, layer, times: c.parting(tokens, layer, times),
            cells=grid(
                "stays_delta_bound_2 stays_delta_bound_8 stays_gated_bound_2 stays_gated_bound_8 "
                "stays_mesa_bound_2 stays_mesa_bound_8 stays_delta_apart_2 stays_delta_apart_8 "
                "stays_gated_apart_2 stays_gated_apart_8 stays_mesa_apart_2 stays_mesa_apart_8",
                tokens=TOKENS,
                layer=ORDERED,
                times=TIMES,
            ),
            words=lambda tokens, layer, times: dict(name=NAMES[layer]),
            message="On longer prompts two layers are within a tenth of the rule that is nearest "
            "in training",
        ),
        Statement(
            "interleaved_growth",
            "derived here",
            "At {times} times the training length two layers of {name} on interleaved tokens have "
            "no larger risk",
            f"risk over that at the training length, each {last}",
            "median",
            at_most=1.1,
            revision=part + IDLE,
            label="two of {name}, x, y, {times} n / n",
            sample=lambda c, layer, times: c.interleaved_growth(layer, times),
            cells=grid(
                "apart_delta_2 apart_delta_8 apart_gated_2 apart_gated_8 apart_mesa_2 apart_mesa_8",
                layer=ORDERED,
                times=TIMES,
            ),
            words=named,
            message="On interleaved prompts of 2 and 8 times the training length the risk is not "
            "larger",
        ),
    )
