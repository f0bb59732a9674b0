"""What `learning_curves` judges, fixed before its first run but for what the rows say."""

from functools import partial

from experiments.recurrent.learning_curves.config import (
    DEPTHS,
    LABELS,
    NAMES,
    RULE,
    TIMES,
    TOKENS,
)
from lsa_lab.judging.statements import Statement, grid, having
from lsa_lab.store import parts, results

LAYER = {kind: layer for layer, kind in NAMES.items()}
AT = {f"at {times} times the length": times for times in TIMES}  # of training
KINDS = tuple(NAMES[layer] for layer in RULE)  # whose rule has a closed curve
TWINS = ("DeltaNet", "gated DeltaNet")  # where the task stays the best gate is 1
MEDIAN = "it was the geometric mean, which one run of nine that had not left its start decided"


class Curves:
    """A result's risks at lengths and its distances to rules; a kind of layer goes by its name."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)

    def near(self, risk, times=1):
        """The mean over the last n/2 prefixes up to ``times`` the length in training."""
        end = times * self.config.n
        return risk.sel(prefix=slice(end - self.config.n // 2 + 1, end)).mean("prefix")

    def over_floor(self, labels, times):  # [R]
        """The risk of one trained layer of DeltaNet over the closed curve of its mean step."""
        closed = self.dataset.closed_of_step.sel(labels=labels)
        trained = self.layers("DeltaNet").risk
        return (self.near(trained, times) / self.near(closed, times)).values

    def over_curve(self, runs, kind):  # [R]
        """The mean risk over 1 to n demonstrations over that of the rule's closed curve."""
        lengths = slice(1, self.config.n)
        closed = self.dataset.closed.sel(rule=RULE[LAYER[kind]], prefix=lengths)
        return (runs.risk.sel(prefix=lengths).mean("prefix") / closed.mean("prefix").item()).values

    def growth(self, kind, times):  # [R]
        """One layer's risk at ``times`` the length in training over that at it."""
        risk = self.layers(kind).risk
        return (self.near(risk, times) / self.near(risk)).values

    def own_over_others(self, kind):  # [R]
        """The distance to the layer's rule over that to the nearest other one."""
        distance, rule = self.layers(kind).distance, RULE[LAYER[kind]]
        others = distance.drop_sel(rule=list(TWINS) if rule in TWINS else [rule]).min("rule")
        return (distance.sel(rule=rule) / others).values

    def nearness(self, kind):  # [R]
        """The distance to the nearest rule over that to ridge regression on another task's
        labels: the null."""
        runs = self.layers(kind)
        return (runs.distance.min("rule") / runs.distance_to_chance).values

    def layers(self, kind, depth=DEPTHS[0]):
        """The runs of one layer or of two."""
        return self.dataset.sel(layer=LAYER[kind], depth=depth)

    def stack(self, tokens, kind):
        """The runs of two layers that were trained for longer."""
        return parts.part(self.dataset, "stacks").sel(tokens=tokens, layer=LAYER[kind])


numbers = Curves


def ridge_over_own(runs, kind):  # [R]
    """The distance to ridge regression over that to one pass of the layer's rule."""
    return (runs.distance.sel(rule="ridge") / runs.distance.sel(rule=RULE[LAYER[kind]])).values


def statements(config) -> tuple[Statement, ...]:
    last = "the mean over the last n/2 prefixes up to a length"
    over_curve = f"mean risk over 1 to {config.n} demonstrations over the closed curve's"
    over_own = "mean squared distance of predictions to ridge over that to the rule of one layer"
    own = config.stacks
    part = (
        f"added, and fixed before its own runs of {own.steps} steps and width {own.width}; a pilot "
        "of two other runs had asked for more steps and for the constant beside interleaved tokens"
    )

    def of_kinds(ids, kinds, layers=config.layers, **axes):
        return having(grid(ids, kind=kinds, **axes), kind=[NAMES[layer] for layer in layers])

    median = partial(Statement, source="derived here", statistic="median")
    row = partial(median, revision=MEDIAN, redrawn=f"{config.runs} fresh runs, 9 before")
    later = partial(median, revision=part)
    return (
        row(
            "floor",
            says="DeltaNet has the risk that the closed curve of its mean step gives {times} in "
            "training, labels {labels}",
            message="At twice and eight times its training length DeltaNet has the risk that the "
            "closed curve of its mean step gives",
            measured=f"risk over the closed curve's, each {last}",
            at_least=1 / 1.1,
            at_most=1.1,
            note="one layer; labels as they are, which is what it reads, have the scale that is "
            "best in training; all runs share the test prompts",
            sample=lambda c, labels, times: c.over_floor(labels, AT[times]),
            cells=grid(
                "floor_divided_2 floor_divided_8 floor_as_are_2 floor_as_are_8",
                labels=LABELS,
                times=AT,
            ),
        ),
        row(
            "reaches_curve",
            says="One trained layer of {kind} reaches the closed curve of its rule or does better",
            measured=over_curve,
            at_most=1.05,
            note="the rule with the constant step, gate and scale of labels that are best; linear "
            "attention with the best scale at every length",
            message="One trained layer reaches the closed curve of its rule or does better",
            sample=lambda c, kind: c.over_curve(c.layers(kind), kind),
            cells=of_kinds(
                "curve_additive curve_lms curve_delta curve_gated_delta curve_mesa", KINDS
            ),
        ),
        row(
            "no_growth",
            says="One layer of {kind} has no larger risk {times} in training than at that length",
            measured=f"risk over that at the training length, each {last}",
            at_most=1.1,
            note="no closed curve of these rules rises",
            message="On prompts of 2 and 8 times the training length the risk is not larger",
            revision=f"{MEDIAN}; a prediction that is not finite counts as cut",
            sample=lambda c, kind, times: c.growth(kind, AT[times]),
            cells=of_kinds(
                "grows_additive_2 grows_additive_8 grows_lms_2 grows_lms_8 grows_delta_2 "
                "grows_delta_8 grows_gated_delta_2 grows_gated_delta_8 grows_mesa_2 grows_mesa_8 "
                "grows_softmax_2 grows_softmax_8",
                LAYER,
                times=AT,
            ),
        ),
        row(
            "own_rule",
            says="One trained layer of {kind} is nearer to its own rule than to any other",
            measured="mean squared distance of predictions to its rule over that to the nearest "
            f"other, over 1 to {config.n} demonstrations",
            at_most=1.0,
            note="the others: those of the other layers; the caption has the null",
            message="One trained layer is nearer to its own rule than to those of other layers",
            revision=f"{MEDIAN}; DeltaNet and gated DeltaNet count as one rule",
            sample=lambda c, kind: c.own_over_others(kind),
            cells=of_kinds("own_additive own_lms own_delta own_gated_delta own_mesa", KINDS),
        ),
        row(
            "two_are_ridge",
            says="Two trained layers of {kind} are at least twice nearer to ridge regression than "
            "to one pass of their rule",
            measured=over_own,
            at_most=0.5,
            message="Two trained layers are at least twice nearer to ridge regression than to one "
            "pass of their rule",
            note="a pilot of one seed, wider and trained for 2 500 steps, had a fifth",
            sample=lambda c, kind: ridge_over_own(c.layers(kind, DEPTHS[-1]), kind),
            cells=of_kinds("ridge_additive ridge_lms ridge_delta ridge_gated_delta", KINDS[:4]),
        ),
        later(
            "reads_interleaved",
            says="Two trained layers of {kind} that read x_t and y_t as tokens of their own reach "
            "the closed curve of one layer that reads them bound, or do better",
            measured=over_curve,
            at_most=1.05,
            message="Two layers of one kind that read x_t and y_t as tokens of their own reach the "
            "closed curve of one layer that reads them bound",
            sample=lambda c, kind: c.over_curve(c.stack("interleaved", kind), kind),
            cells=of_kinds("reads_delta reads_gated_delta reads_mesa", KINDS[2:], own.layers),
        ),
        later(
            "no_order",
            source="derived here; a control",
            says="Two trained layers of linear attention, whose state is a sum without order, do "
            "not",
            measured=over_curve,
            at_least=1.5,
            sample=lambda c: c.over_curve(
                c.stack("interleaved", "linear attention"), "linear attention"
            ),
        ),
        later(
            "longer_are_ridge",
            says=f"After {own.steps} steps two layers of {{kind}} on {{tokens}} tokens are at "
            "least twice nearer to ridge regression than to one pass of their rule",
            measured=over_own,
            at_most=0.5,
            message="After a longer training two layers of DeltaNet, gated or not, are at least "
            "twice nearer to ridge regression than to one pass of their rule",
            sample=lambda c, tokens, kind: ridge_over_own(c.stack(tokens, kind), kind),
            cells=of_kinds(
                "longer_delta_bound longer_delta_apart longer_gated_bound longer_gated_apart",
                TWINS,
                own.layers,
                tokens=TOKENS,
            ),
        ),
    )
