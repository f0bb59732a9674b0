"""What `relevance_and_novelty` judges."""

from functools import partial

import numpy as np

from experiments.flow.relevance_and_novelty.config import BAYES, NAMES, READINGS, UNTRAINED
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst

FAR = 1.5  # the excess risk over that of the Bayes rule of a learner that is far from trained
PREDICTS = 0.3  # a rank correlation up to which nothing is predicted
A1, OWN = "A1 (2508.00385)", "derived here"
EVERY = (BAYES, *NAMES)


def names(dataset) -> list[str]:
    return [name for name in dataset.learner.values.tolist() if name != UNTRAINED]


def risk_ratios(dataset):  # {learner: []}
    """Excess risk over that of the Bayes rule: the bar of a trained model."""
    risk = dataset.risk.mean("run")
    return {
        name: float(risk.sel(learner=name) / risk.sel(learner=BAYES)) for name in names(dataset)
    }


class Learners:
    """What a demonstration is worth to each learner; one that is absent, or far from trained,
    judges nobody."""

    def __init__(self, dataset):
        ratios, self.dataset = risk_ratios(dataset), dataset.transpose("run", ...)
        self.judged = [name for name, ratio in ratios.items() if ratio <= FAR]

    def rise(self, learner, reading):  # -> [R]
        if learner in (*self.judged, UNTRAINED):
            return self.dataset.rise.sel(learner=learner, reading=reading).values

    def product(self, learner):  # -> [R]
        if learner in self.judged:
            r2 = self.dataset.r2.sel(learner=learner, reading="flow")
            ahead = r2.sel(form="product") - r2.sel(form="sum")
            return worst(ahead, lambda runs: -runs.mean())

    def surplus(self, learner):  # -> [R]
        if learner in self.judged:
            between = self.dataset.between.sel(learner=learner)
            single = [name for name in between.predictor.values if name.startswith("single")]
            ahead = between.sel(predictor="similarity") - between.sel(predictor=single)
            return worst(ahead, lambda runs: -runs.mean())

    def single(self, learner):  # -> [R]
        return self.dataset.single.sel(learner=learner).values if learner in self.judged else None

    def likeness(self, learner):  # -> [R]
        if learner in (*self.judged, UNTRAINED):
            maps = self.dataset["map"].sel(reading="flow")
            rows = [maps.sel(learner=name).values for name in (learner, BAYES)]
            pairs = zip(*(grid.reshape(len(grid), -1) for grid in rows), strict=True)
            return np.array([np.corrcoef(*pair)[0, 1] for pair in pairs])


numbers = Learners


def statements(config) -> tuple[Statement, ...]:
    who = "To the Bayes rule and to trained models,"
    of_learner = partial(
        Statement,
        revision="{later}",
        words=lambda learner, reading=None: dict(
            later="added as its weights came, when the other learners had been judged"
            if learner == "transformer"
            else ""
        ),
    )
    return (
        of_learner(
            "rises",
            f"{A1}, figure 2, our reading, in our setting",
            "What a demonstration gives beside others rises with relevance and with novelty "
            "(reading: {reading}; learner: {learner})",
            "the lesser rank correlation of the mean gain with the one factor, within classes of "
            "the other,",
            at_least=0.9,
            note="readings: cosine and surprise; flow from the label and surprise; without a "
            "label, posterior correlation and variance; factors by the Bayes rule; gains are "
            "expected ones, given all that the prompt shows; without it trained models read fewer "
            "demonstrations than ever in training",
            sample=Learners.rise,
            cells=grid(
                # To the Bayes rule the flow's is a theorem: docs/theory, "What a demonstration is
                # worth to the Bayes rule".
                "bayes_similarity - bayes_no_label "
                "linear_similarity linear_flow linear_no_label "
                "softmax_similarity softmax_flow softmax_no_label "
                "transformer_similarity transformer_flow transformer_no_label",
                learner=EVERY,
                reading=READINGS,
            ),
            message=f"{who} what a demonstration gives beside others rises with relevance and with "
            "novelty, in three readings of both",
        ),
        of_learner(
            "product",
            f"{A1}, open question 1 on the conflict of factors, in our setting",
            "What a demonstration gives trained {learner} is a product of flow and surprise rather "
            "than a sum",
            "R² over the cells of the best f(s)g(r) less that of the best f(s) + g(r), of gains as "
            "they are or as roots, whichever is less,",
            at_least=0,
            sample=Learners.product,
            cells=grid("linear_product softmax_product transformer_product", learner=NAMES),
            message="To trained models, what a demonstration gives is a product of flow and "
            "surprise rather than a sum",
        ),
        of_learner(
            "beyond",
            f"modelled on {A1}, figure 2",
            "Similarity and surprise together tell more than the distance to the query, or than "
            "any single factor (learner: {learner})",
            "the share of the variance of the gains' ranks between the classes of both, less that "
            "between as many classes of the best single predictor,",
            at_least=0,
            note="single: distance, similarity, flow, surprise, posterior variance",
            sample=Learners.surplus,
            cells=grid(
                "bayes_beyond linear_beyond softmax_beyond transformer_beyond", learner=EVERY
            ),
            message=f"{who} similarity and surprise together tell more than the distance to the "
            "query, or than any single factor",
        ),
        of_learner(
            "single",
            f"{A1}, flow as a measure of effectiveness, our reading, in our setting",
            "Flow times surprise predicts by this much what a single demonstration takes off the "
            "error (learner: {learner})",
            "the rank correlation with the actual gain",
            unjudged="at least .3 was asked, which the best predictor, the Bayes rule's own, is "
            "far from",
            sample=Learners.single,
            cells=grid(
                "bayes_single linear_single softmax_single transformer_single", learner=EVERY
            ),
            message="Flow times surprise predicts by these ranks what a single demonstration takes "
            "off the error of the Bayes rule and of trained models",
        ),
        of_learner(
            "alike",
            OWN,
            "To trained {learner} a demonstration of a flow and a surprise is worth what it is to "
            "the Bayes rule",
            "the correlation of both maps of mean gains over the cells",
            at_least=0.9,
            sample=Learners.likeness,
            cells=grid("linear_alike softmax_alike transformer_alike", learner=NAMES),
            message="To trained models, a demonstration of a flow and a surprise is worth what it "
            "is to the Bayes rule",
        ),
        Statement(
            "untrained_map",
            OWN,
            "Before training, a demonstration of a flow and a surprise is not worth what it is to "
            "the Bayes rule",
            "the correlation of both maps of mean gains over the cells",
            at_most=PREDICTS,
            note="the control of the same after training",
            revision="added: the other control is of another statistic",
            sample=lambda r: r.likeness(UNTRAINED),
        ),
        Statement(
            "untrained",
            OWN,
            "Before training, what a demonstration takes off the error rises with none of them",
            "the lesser rank correlation of the mean gain with flow, or with surprise, within the "
            "classes of the other,",
            at_most=PREDICTS,
            note="the control",
            revision="of the transformer, it was of softmax attention alone",
            sample=lambda r: r.rise(UNTRAINED, "flow"),
        ),
    )
