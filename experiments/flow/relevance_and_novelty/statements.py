"""What `relevance_and_novelty` judges, by the criteria in its Config."""

from lsa_lab.claims import Statement

A1, OWN = "A1 (2508.00385)", "derived here"
FIGURE_2 = f"{A1}, figure 2, our reading, in our setting"
CONFLICT = f"{A1}, open question 1 on the conflict of factors, in our setting"
EXPECTED = "factors by the Bayes rule; gains are expected ones, given all that the prompt shows"
SHORTER = "; a trained model reads one demonstration fewer without it than ever in training"
WHAT = {  # reading: in words
    "similarity": "with its similarity to the query and with its surprise",
    "flow": "with the flow from its label and with its surprise",
    "no label": "with its posterior correlation and variance, before its label is known",
}


LATER = {"transformer": "added as its weights came, after a look at the other learners"}


def statements(config) -> tuple[Statement, ...]:
    learners = ("Bayes rule", *(name for name, _ in config.models))
    return (
        *(each for learner in learners for each in _about_learner(config, learner)),
        Statement(
            "untrained",
            OWN,
            "Before training, what a demonstration takes off the error rises with none of them",
            "the lesser rank correlation of the mean gain with flow, or with surprise, within the "
            "classes of the other,",
            at_most=config.predicts,
            note="the control",
            revision="of the transformer, it was of softmax attention alone",
        ),
    )


def slug(learner: str) -> str:
    return learner.split()[0].lower()


def _about_learner(config, learner):
    name, trained = slug(learner), learner != "Bayes rule"
    who = f"trained {learner}" if trained else f"the {learner}"
    later = LATER.get(learner, "")
    for reading, words in WHAT.items():
        if reading == "flow" and not trained:
            continue  # a theorem: docs/theory, "What a demonstration is worth to the Bayes rule"
        yield Statement(
            f"{name}_{reading.replace(' ', '_')}",
            FIGURE_2,
            f"To {who}, what a demonstration gives beside others rises {words}",
            "the lesser rank correlation of the mean gain with the one factor, within classes of "
            "the other,",
            at_least=config.rises,
            revision=later,
            note=EXPECTED + SHORTER * trained,
        )
    yield Statement(
        f"{name}_beyond",
        f"modelled on {A1}, figure 2",
        f"To {who}, similarity and surprise together tell more than the distance to the query, or "
        "than any single factor",
        "the share of the variance of the gains' ranks between the classes of both, less that "
        "between as many classes of the best single predictor,",
        at_least=0,
        revision=later,
        note="single: distance, similarity, flow, surprise, posterior variance",
    )
    yield Statement(
        f"{name}_single",
        f"{A1}, flow as a measure of effectiveness, our reading, in our setting",
        f"Flow times surprise predicts what a single demonstration takes off the error of {who}",
        "the rank correlation with the actual gain",
        at_least=config.predicts,
        revision=later,
    )
    if trained:
        yield Statement(
            f"{name}_product",
            CONFLICT,
            f"To {who}, it is a product of flow and surprise rather than a sum",
            "R² over the cells of the best f(s)g(r) less that of the best f(s) + g(r), of gains as "
            "they are or as roots, whichever is less,",
            at_least=0,
            revision=later,
        )
        yield Statement(
            f"{name}_alike",
            OWN,
            f"To {who}, a demonstration of a flow and a surprise is worth what it is to the Bayes "
            "rule",
            "the correlation of both maps of mean gains over the cells",
            at_least=config.alike,
            revision=later,
        )
