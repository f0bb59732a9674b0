"""What `label_clipping` judges."""

from functools import cached_property, partial

from experiments.clipping.clipped_models import (
    DROPPED,
    PARTS,
    gains_by_others,
    shallow_and_deep,
    spec_of,
)
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.store import results

FIGURE_1 = "A2 (2406.03768), figure 1, in our setting"
FIGURE_2 = "A2 (2406.03768), figure 2, our reading, in our setting"
SECTION_2 = "A2 (2406.03768), section 2.2, in our setting"


def shots_of(spec) -> dict[str, int]:
    """The fewest and the most demonstrations."""
    lengths = spec.task.lengths
    return {"few": min(lengths), "trained": max(lengths)}


class Clipped:
    """A result's changes of accuracy, and those after clipping its first and its last layers."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)
        self.shots = shots_of(spec_of(self.config))
        self.few, self.n = (dataset.sel(shots=count) for count in self.shots.values())

    @cached_property
    def change(self):  # (run, shots, layer, part, rate)
        return self.dataset.accuracy - self.dataset.unclipped_accuracy

    @cached_property
    def ends(self):  # two of (run, shots, part): first layers, last layers
        """Averaged over the drastic rates; dropping is not among them. One layer at a time."""
        drastic = self.change.sel(rate=slice(self.config.high, DROPPED - 1e-9)).mean("rate")
        return shallow_and_deep(drastic, self.config.ends)

    @cached_property
    def sharp(self):  # two of (run, shots, part)
        """Accuracies with the first layers clipped the most, and with the last ones."""
        rate = max(self.config.rates)
        return shallow_and_deep(self.dataset.accuracy.sel(rate=rate), self.config.ends)

    def pick(self, values, part, shots="trained"):  # [R]
        return values.sel(part=part, shots=self.shots[shots]).values

    def best(self, shots):  # [R]
        return -gains_by_others(-self.change.sel(shots=self.shots[shots]))


numbers = Clipped


def statements(config) -> tuple[Statement, ...]:
    counts = shots_of(spec_of(config))
    few, n = counts.values()
    first, last = f"the first {config.ends} layers", f"the last {config.ends} layers"
    high = f"one at a time, averaged over rates >= {config.high:g},"
    best = "by the edit that is best for the other runs"
    by_shots = partial(Statement, words=lambda shots: dict(count=counts[shots]))
    # After a look at these models with other prompts: no shallow layer collapses, so that
    # differences are thousandths, of which no sign says anything.
    revised = partial(
        Statement,
        revision="a difference of 0.02 counts; it was any above 0",
        redrawn="fresh prompts, as many",
    )
    return (
        Statement(
            "deep_is_flat",
            FIGURE_1,
            "The {part} of deep layers of our classifiers can be reduced drastically without much "
            "degradation",
            f"the change of accuracy, {last}, {high}",
            at_least=-0.02,
            note="the bound sets no layer apart: shallow ones keep it too, and so does every layer "
            "without its attention or its MLP",
            sample=lambda c, part: c.pick(c.ends[1], part),
            cells=grid("attention_deep_is_flat mlp_deep_is_flat", part=PARTS),
        ),
        revised(
            "deep_tolerates_more",
            FIGURE_1,
            "The {part} of deep layers of our classifiers tolerates more clipping than that of "
            "shallow ones",
            f"accuracy with {last} clipped less that with {first}, {high}",
            at_least=0.02,
            sample=lambda c, part: c.pick(c.ends[1] - c.ends[0], part),
            cells=grid("attention_deep_tolerates_more mlp_deep_tolerates_more", part=PARTS),
        ),
        Statement(
            "shallow_collapses",
            FIGURE_1,
            "Clipping the {part} of a shallow layer sharply leaves our classifiers guessing",
            f"accuracy less .5, {first}, one at a time, clipped at {max(config.rates):g},",
            margin=0.05,
            sample=lambda c, part: c.pick(c.sharp[0], part) - 0.5,
            cells=grid("attention_shallow_collapses mlp_shallow_collapses", part=PARTS),
        ),
        revised(
            "few_shots_fall_less",
            FIGURE_2,
            "With fewer shots, clipping the {part} of a shallow layer costs less accuracy",
            f"the fall of accuracy at {few} shots less that at {n}, {first}, {high}",
            at_most=-0.02,
            sample=lambda c, part: c.pick(c.ends[0], part) - c.pick(c.ends[0], part, "few"),
            cells=grid("attention_few_shots_fall_less mlp_few_shots_fall_less", part=PARTS),
        ),
        by_shots(
            "helps",
            FIGURE_1,
            "At {count} shots clipping one part of one layer improves our classifiers",
            f"the change of accuracy {best},",
            at_least=0.01,
            note="no edit is chosen by the run that is judged",
            sample=lambda c, shots: c.best(shots),
            cells=grid("helps_few helps_trained", shots=counts),
        ),
        Statement(
            "threshold",
            "derived here",
            "A threshold that is moved does as well as the best edit",
            "the accuracy at the threshold that is best for the other half of the prompts less "
            f"that {best}, at {n} shots,",
            at_least=-0.01,
            note="our classes are as frequent: on language models, clipping moved the threshold",
            sample=lambda c: (
                (c.n.unclipped_fitted - c.n.unclipped_accuracy).values - c.best("trained")
            ),
        ),
        by_shots(
            "near_bayes",
            "derived here",
            "At {count} shots our classifiers are nearly as good as the Bayes rule",
            "the accuracy of the Bayes rule on the same prompts less theirs,",
            at_most=0.02,
            note="if not, they are not well trained and the other rows judge nobody",
            sample=lambda c, shots: (
                (c.dataset.bayes - c.dataset.unclipped_accuracy).sel(shots=c.shots[shots]).values
            ),
            cells=grid("near_bayes_few near_bayes_trained", shots=counts),
        ),
        Statement(
            "more_shots_are_better",
            SECTION_2,
            "Without clipping our classifiers improve with the number of shots",
            f"accuracy at {n} shots less that at {few},",
            at_least=0.0,
            sample=lambda c: (c.n.unclipped_accuracy - c.few.unclipped_accuracy).values,
        ),
        Statement(
            "more_shots_narrow",
            f"{SECTION_2}, our reading",
            "More shots narrow what our classifiers answer",
            f"the mean entropy of the label's probability, in bits, at {n} shots less at {few},",
            at_most=0.0,
            note="the Bayes rule's entropy falls as well; A2 speaks of all words, we have two",
            sample=lambda c: (c.n.unclipped_entropy - c.few.unclipped_entropy).values,
        ),
        Statement(
            "untrained_guesses",
            "derived here",
            "Untrained, our classifiers guess",
            f"accuracy less .5 at {n} shots,",
            at_most=0.1,
            note="the control; one is as often below .5 as above",
            sample=lambda c: c.dataset.untrained.values - 0.5,
        ),
    )
