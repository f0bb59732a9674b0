"""What `lm_grads` judges, by the criteria in its Config."""

import dataclasses

from experiments.language.language_config import redrawn
from lsa_lab.claims import Statement

A1, OWN, READING = "A1 (2508.00385)", "derived here", "our reading, in our setting"
SCORED = {  # id: rule, what it is
    "margin": ("GradS", "the flow of the label margin after the last layer"),
    "row": ("GradS, row", "the flow of the query's row after the last layer"),
    "offline": ("GradS, Eq. 2", "A1's Eq. 2, offline, with the attention of the last layer,"),
    "contribution": (
        "contribution",
        "how far a demonstration changes the label margin, either way,",
    ),
    "similarity": ("similarity", "the similarity of hidden rows"),
    "bm25": ("BM25", "BM25"),
}
RIVALS = ("random", "similarity", "BM25", "contribution")  # in prompts of several demonstrations
WORTH = "what it adds to the log-probability of the query's label, alone before it,"
CORRELATION = "the rank correlation, over a pool and averaged over queries, of"
SIZES = (
    "A1 selects from training sets: pools are small here, for the flow of each demonstration takes "
    "a walk up and down the model"
)
_APART = (
    "added to these runs: log-probabilities punish prompts of one class, which some rules select"
)
_COMPARED = {  # id: whom prompts are compared with, and how it is taken
    "random": ("a random choice", "a random choice, the mean of its draws"),
    "strongest": (
        "its strongest rival",
        f"the one of {', '.join(RIVALS)} that is best in the other pools",
    ),
}
EARLIER = 0.05  # of a rank correlation: by less no layer is better


def statements(config) -> tuple[Statement, ...]:
    rows = [
        statement
        for name, task in config.tasks
        for of in (_about_scores, _about_layers, _about_readings, _about_prompts)
        for statement in of(config, name, f"{config.model_name}, on {task.title}")
    ]
    fresh = redrawn(config, before=12)
    return tuple(
        dataclasses.replace(row, over="pools", redrawn="" if row.revision else fresh)
        for row in rows
    )


def _about_scores(config, name, where):
    for id, (rule, what) in SCORED.items():
        ours = not rule.startswith("GradS")
        yield Statement(
            f"{name}_predicts_{id}",
            OWN if ours else f"{A1}, flow as a measure of effectiveness, {READING}",
            f"{where}: {what} predicts what a demonstration is worth",
            f"{CORRELATION} {what} and {WORTH}",
            at_least=config.predicts,
            note="" if ours else SIZES,
        )
    for id in ("margin", "row"):
        rule, what = SCORED[id]
        yield Statement(
            f"{name}_measures_{id}",
            OWN,
            f"{where}: {what} measures how far a demonstration moves the answer, either way",
            f"{CORRELATION} {what} and the size of {WORTH}",
            at_least=config.measures,
        )
        yield Statement(
            f"{name}_share_{id}",
            f"{A1}, GradS, {READING}",
            f"{where}: what {rule} selects is worth a good part of the best, each alone",
            f"the mean worth of the {config.shots} that {rule} selects, over that of the pool, "
            f"less {config.share:g} of the same of the {config.shots} worth most, in nats,",
            at_least=0,
        )


def _about_layers(config, name, where):
    last = f"the flow of the label margin after layer {config.layers[-1]}"
    yield Statement(
        f"{name}_last_layer",
        f"{A1}, ablation of layers, {READING}",
        f"{where}: {last} predicts what a demonstration is worth as well as that of any other",
        f"{CORRELATION} {last} and {WORTH} less that of the earlier layer that is best in the "
        "other pools,",
        at_least=-EARLIER,
    )
    yield Statement(
        f"{name}_discriminates",
        f"{A1}, the last layer discriminates most, {READING}",
        f"{where}: {last} tells more demonstrations apart than that of any earlier layer",
        "the standard deviation of its logarithm over a pool, over that of the earlier layer that "
        "has the largest in the other pools,",
        "ratio",
        at_least=1,
    )


def _about_readings(config, name, where):
    margin, row = (SCORED[id][1] for id in ("margin", "row"))
    yield Statement(
        f"{name}_readings",
        OWN,
        f"{where}: the flows of margin and row after the last layer rank demonstrations alike",
        f"{CORRELATION} the two",
        at_least=config.agrees,
    )
    yield Statement(
        f"{name}_offline",
        f"{A1}, Eq. 2 in the place of the flow, {READING}",
        f"{where}: Eq. 2, offline and of one layer, ranks demonstrations as {row} does",
        f"{CORRELATION} the two",
        at_least=config.agrees,
    )
    yield Statement(
        f"{name}_length",
        OWN,
        f"{where}: {margin} does not go by the length of a demonstration",
        f"{CORRELATION} it and the number of tokens",
        margin=config.agrees / 2,
    )


def _about_prompts(config, name, where):
    if not config.prompts_judged:
        return
    for id in ("margin", "row"):
        rule = SCORED[id][0]
        for rival in RIVALS:
            yield Statement(
                f"{name}_prompts_{id}_{rival.lower()}",
                f"{A1}, GradS, {READING}",
                f"{where}: {rule} selects better prompts than {rival}",
                f"the log-probability of the right label after {config.shots} demonstrations "
                f"selected by {rule} less that by {rival}, on the same queries,",
                at_least=0,
                note="A1's headline is +6.8% over the strongest baseline in version 1, +1.3% on "
                "OpenReview, in scores of larger models; a wrong answer that is sure of itself "
                "costs most here",
            )
        for other, (rival, taken) in _COMPARED.items():
            yield Statement(
                f"{name}_apart_{id}_{other}",
                f"{A1}, GradS, {READING}",
                f"{where}: after prompts of {rule} answers tell the classes apart better than "
                f"after those of {rival}",
                f"AUC over a pool's queries after {config.shots} demonstrations selected by "
                f"{rule} less that by {taken},",
                at_least=0,
                revision=_APART,
            )
