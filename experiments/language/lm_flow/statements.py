"""What `lm_flow` judges, by the criteria in its Config."""

import dataclasses

from experiments.language.language_config import redrawn
from lsa_lab.claims import Statement

THEOREM = "A1 (2508.00385), Theorem 1, our reading, in our setting"
FIGURE_2 = "A1 (2508.00385), figure 2, our reading, in our setting"
OWN = "derived here"
OF = {  # of what a flow is: the margin is read through the logit lens, the row along directions
    "margin": "the label margin",
    "row": "the query's row",
}
WHERE = {
    "alone": "each demonstration alone before the query",
    "shared": "all demonstrations in one prompt, over its rotations",
}
LENS = "after a layer the margin is read through the logit lens"
FROBENIUS = "the Frobenius norm of a derivative, by random directions"
PLACES = "what a place in the prompt adds counts here, and is averaged out of the log ratios"
_CONTROL = "added to these runs: the control was of log ratios alone"
NOTES = {"margin": LENS, "row": FROBENIUS}
OTHER_QUERY = "on top the demonstration whose flow to the other queries is larger at the first"


def statements(config) -> tuple[Statement, ...]:
    fresh = redrawn(config, before=12)
    return tuple(
        dataclasses.replace(
            statement,
            over="sets of demonstrations",
            redrawn="" if statement.revision else fresh,
        )
        for name, task in config.tasks
        for of in (_about_depth, _about_controls, _about_places, _about_single_ones)
        for statement in of(config, name, f"{config.model_name}, on {task.title}")
    )


def _about_depth(config, name, where):
    for mode, placed in WHERE.items():
        for read, of in OF.items():
            yield Statement(
                f"{name}_{mode}_{read}_disparity",
                THEOREM,
                f"{where}: depth makes flows of {of} more unequal, {placed}",
                _disparity(f"{of}, {placed}"),
                "ratio",
                at_least=config.factor,
                note=NOTES[read],
            )
            yield Statement(
                f"{name}_{mode}_{read}_lead",
                THEOREM,
                f"{where}: depth widens the lead of the larger flow of {of}, {placed}",
                f"the mean log ratio of two flows of {of}, {placed}, at the last layer less that "
                f"at the first, {OTHER_QUERY},",
                at_least=config.clear,
            )


def _about_controls(config, name, where):
    placed = WHERE["shared"]
    for read, of in OF.items():
        yield Statement(
            f"{name}_{read}_gini",
            f"{THEOREM}, of disparity",
            f"{where}: depth makes the shares of a prompt's demonstrations in the flow of {of} "
            "more unequal, as they stand",
            f"the mean Gini coefficient of the flows of {of} in a prompt at the last layer over "
            "that at the first,",
            "ratio",
            at_least=config.factor,
            note=PLACES,
        )
        yield Statement(
            f"{name}_{read}_gini_untrained",
            f"{OWN}, a control",
            f"{where}: the same in an untrained decoder of its shape, of the flow of {of}",
            f"the same of {of}, weights random,",
            "ratio",
            at_least=config.factor,
            note=PLACES,
            revision=_CONTROL,
        )
        yield Statement(
            f"{name}_{read}_per_token",
            THEOREM,
            f"{where}: depth makes flows of {of} more unequal, lengths divided out",
            _disparity(f"{of}, {placed}"),
            "ratio",
            at_least=config.factor,
            note="a flow over the root of the demonstration's number of tokens",
        )
        yield Statement(
            f"{name}_{read}_untrained",
            f"{OWN}, a control",
            f"{where}: depth makes flows of {of} more unequal in an untrained decoder of its shape",
            _disparity(f"{of}, {placed}, weights random"),
            "ratio",
            at_least=config.factor,
        )


def _about_places(config, name, where):
    return (
        Statement(
            f"{name}_order",
            THEOREM,
            f"{where}: the demonstration with the larger flow of the label margin after the first "
            "layer has it after the last",
            f"the share of pairs that turn, {WHERE['shared']},",
            at_most=config.turned,
        ),
        Statement(
            f"{name}_recency",
            OWN,
            f"{where}: more of the label margin flows from the last place of a prompt than from "
            "its first",
            "the mean log ratio of the flows from both places, at the last layer,",
            at_least=config.clear,
        ),
    )


def _about_single_ones(config, name, where):
    says = {
        "relevance": "its similarity to the query",
        "novelty": "the loss of its own label without demonstrations",
        "both": "similarity and loss together, as a sum of ranks",
    }
    worth = "what it adds to the log-probability of the query's label"
    for factor, what in says.items():
        yield Statement(
            f"{name}_{factor}",
            FIGURE_2,
            f"{where}: a single demonstration is worth more, the larger {what}",
            f"the rank correlation, over demonstrations and queries, of {what} and {worth}",
            at_least=config.predicts,
        )
        yield Statement(
            f"{name}_{factor}_within",
            OWN,
            f"{where}: a single demonstration is worth more, the larger {what}, labels apart",
            f"the rank correlation, over demonstrations and queries, of {what} and {worth}, each "
            "less its mean over those with, or without, the query's label,",
            at_least=config.predicts,
        )
    yield Statement(
        f"{name}_label",
        OWN,
        f"{where}: a single demonstration is worth more if its label is the query's",
        f"the mean of {worth}, of those with the query's label less that of the others, in nats,",
        at_least=config.worth,
    )


def _disparity(flows):
    ratio = f"the mean |log ratio| of two flows of {flows}"
    return f"{ratio}, at the last layer over that at the first,"
