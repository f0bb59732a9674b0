"""What `lm_flow` judges: disparities and leads of flows, and what predicts worth."""

from experiments.language.data_sets import data_grid, families
from experiments.language.language_config import redrawn
from experiments.language.lm_flow.config import FACTORS, MODES, READS
from experiments.language.lm_flow.flow_sizes import (
    disparity,
    flows,
    inequality,
    label_effect,
    leads,
    recency,
    turns,
    worth_correlations,
)
from lsa_lab.judging.statements import Statement

THEOREM = "A1 (2508.00385), Theorem 1, our reading, in our setting"
FIGURE_2 = "A1 (2508.00385), figure 2, our reading, in our setting"
OWN = "derived here"
OF = {"margin": "the label margin", "row": "the query's row"}  # what a flow is of
WHERE = {
    "alone": "each demonstration alone before the query",
    "shared": "all demonstrations in one prompt, over its rotations",
}
NOTES = {
    "margin": "after a layer the margin is read through the logit lens",
    "row": "the Frobenius norm of a derivative, by random directions",
}
PLACES = "what a place in the prompt adds counts here, and is averaged out of the log ratios"
OTHER_QUERY = "on top the demonstration whose flow to the other queries is larger at the first"
SAYS = {
    "relevance": "its similarity to the query",
    "novelty": "the loss of its own label without demonstrations",
    "both": "similarity and loss together, as a sum of ranks",
}
WORTH = "what it adds to the log-probability of the query's label"
FACTOR = 1.1  # a disparity that grows by this is amplification


def numbers(dataset) -> dict:
    """The result of each data set."""
    return {name: dataset.sel(task=name) for name in dataset.task.values}


def statements(config) -> tuple[Statement, ...]:
    family = families(
        config,
        over="sets of demonstrations",
        redrawn=redrawn(config, before=12),
    )
    grid = data_grid("rotten_tomatoes", "imdb", "reuters")
    log_ratio = "the mean |log ratio| of two flows of"
    ends = "at the last layer over that at the first,"
    both = "of the label margin and of the query's row"

    def of_read(read, mode="shared"):
        words = dict(of=OF[read], note=NOTES[read], placed=WHERE["shared"], how=WHERE["shared"])
        if mode == "per_token":
            note = "a flow over the root of the demonstration's number of tokens"
            return words | dict(note=note, how="lengths divided out", short="per token")
        if mode == "alone":
            return words | dict(placed=WHERE[mode], how=WHERE[mode], short="alone")
        return words | dict(short="one prompt")

    def of_factor(factor, labels):
        words = dict(source=FIGURE_2, what=SAYS[factor], apart="", worth=WORTH)
        short = {"relevance": "similarity", "novelty": "loss of its label", "both": "both"}[factor]
        if labels == "together":
            return words | dict(label=short)
        return words | dict(
            source=OWN,
            apart=", labels apart",
            worth=f"{WORTH}, each less its mean over those with, or without, the query's label,",
            label=f"{short if factor == 'both' else 'the same'},\nlabels apart",
        )

    return (
        family(
            "disparity",
            THEOREM,
            "depth makes flows of {of} more unequal, {how}",
            f"{log_ratio} {{of}}, {{placed}}, {ends}",
            "ratio",
            at_least=FACTOR,
            note="{note}",
            label="{read}, {short}",
            sample=lambda runs, data, read, mode: disparity(runs[data], mode, read),
            cells=grid(
                "rotten_tomatoes_alone_margin_disparity rotten_tomatoes_shared_margin_disparity "
                "rotten_tomatoes_margin_per_token rotten_tomatoes_alone_row_disparity "
                "rotten_tomatoes_shared_row_disparity rotten_tomatoes_row_per_token "
                "imdb_alone_margin_disparity imdb_shared_margin_disparity imdb_margin_per_token "
                "imdb_alone_row_disparity imdb_shared_row_disparity imdb_row_per_token "
                "reuters_alone_margin_disparity reuters_shared_margin_disparity "
                "reuters_margin_per_token reuters_alone_row_disparity "
                "reuters_shared_row_disparity reuters_row_per_token",
                read=READS,
                mode=(*MODES, "per_token"),
            ),
            words=of_read,
            message=f"it is asked of demonstrations alone, in one prompt and there per token, "
            f"whether depth makes flows more unequal, {both}",
        ),
        family(
            "lead",
            THEOREM,
            "depth widens the lead of the larger flow of {of}, {placed}",
            "the mean log ratio of two flows of {of}, {placed}, at the last layer less that at the "
            f"first, {OTHER_QUERY},",
            at_least=0.1,
            label="{read}, {short}",
            sample=lambda runs, data, mode, read: leads(flows(runs[data], mode, read))[:, -1],
            cells=grid(
                "rotten_tomatoes_alone_margin_lead rotten_tomatoes_alone_row_lead "
                "rotten_tomatoes_shared_margin_lead rotten_tomatoes_shared_row_lead "
                "imdb_alone_margin_lead imdb_alone_row_lead imdb_shared_margin_lead "
                "imdb_shared_row_lead reuters_alone_margin_lead reuters_alone_row_lead "
                "reuters_shared_margin_lead reuters_shared_row_lead",
                mode=MODES,
                read=READS,
            ),
            words=of_read,
            message=f"depth widens the lead of the larger of two flows {both}, alone and in one "
            "prompt",
        ),
        family(
            "gini",
            f"{THEOREM}, of disparity",
            "depth makes the shares of a prompt's demonstrations in the flow of {of} more unequal, "
            "as they stand",
            f"the mean Gini coefficient of the flows of {{of}} in a prompt {ends}",
            "ratio",
            at_least=FACTOR,
            note=PLACES,
            label="{read}, Gini",
            sample=lambda runs, data, read: inequality(runs[data], "shared", read),
            cells=grid(
                "rotten_tomatoes_margin_gini rotten_tomatoes_row_gini imdb_margin_gini "
                "imdb_row_gini reuters_margin_gini reuters_row_gini",
                read=READS,
            ),
            words=of_read,
            message="depth makes the shares of a prompt's demonstrations in the flow more unequal, "
            f"as they stand, {both}",
        ),
        family(
            "gini_untrained",
            f"{OWN}, a control",
            "the same in an untrained decoder of its shape, of the flow of {of}",
            "the same of {of}, weights random,",
            "ratio",
            at_least=FACTOR,
            note=PLACES,
            revision="added to these runs: the control was of log ratios alone",
            redrawn="",
            label="{read}, Gini, untrained",
            sample=lambda runs, data, read: inequality(runs[data], "untrained", read),
            cells=grid(
                "rotten_tomatoes_margin_gini_untrained rotten_tomatoes_row_gini_untrained "
                "imdb_margin_gini_untrained imdb_row_gini_untrained reuters_margin_gini_untrained "
                "reuters_row_gini_untrained",
                read=READS,
            ),
            words=of_read,
            message="depth makes the shares of a prompt's demonstrations in the flow more unequal "
            f"in an untrained decoder of its shape, {both}",
        ),
        family(
            "untrained",
            f"{OWN}, a control",
            "depth makes flows of {of} more unequal in an untrained decoder of its shape",
            f"{log_ratio} {{of}}, {{placed}}, weights random, {ends}",
            "ratio",
            at_least=FACTOR,
            label="{read}, untrained",
            sample=lambda runs, data, read: disparity(runs[data], "untrained", read),
            cells=grid(
                "rotten_tomatoes_margin_untrained rotten_tomatoes_row_untrained "
                "imdb_margin_untrained imdb_row_untrained reuters_margin_untrained "
                "reuters_row_untrained",
                read=READS,
            ),
            words=of_read,
            message=f"depth makes flows more unequal in an untrained decoder of its shape, {both}",
        ),
        family(
            "order",
            THEOREM,
            "the demonstration with the larger flow of the label margin after the first layer has "
            "it after the last",
            f"the share of pairs that turn, {WHERE['shared']},",
            at_most=0.05,
            label="share of pairs\nthat turn",
            sample=lambda runs, data: turns(runs[data]),
            cells=grid("rotten_tomatoes_order imdb_order reuters_order"),
        ),
        family(
            "recency",
            OWN,
            "more of the label margin flows from the last place of a prompt than from its first",
            "the mean log ratio of the flows from both places, at the last layer,",
            at_least=0.1,
            label="last place\nover first",
            sample=lambda runs, data: recency(runs[data]),
            cells=grid("rotten_tomatoes_recency imdb_recency reuters_recency"),
        ),
        family(
            "worth",
            "{source}",
            "a single demonstration is worth more, the larger {what}{apart}",
            "the rank correlation, over demonstrations and queries, of {what} and {worth}",
            at_least=0.2,
            label="{label}",
            sample=lambda runs, data, factor, labels: worth_correlations(
                runs[data], factor, labels
            ),
            cells=grid(
                "rotten_tomatoes_relevance rotten_tomatoes_relevance_within "
                "rotten_tomatoes_novelty rotten_tomatoes_novelty_within rotten_tomatoes_both "
                "rotten_tomatoes_both_within imdb_relevance imdb_relevance_within imdb_novelty "
                "imdb_novelty_within imdb_both imdb_both_within reuters_relevance "
                "reuters_relevance_within reuters_novelty reuters_novelty_within reuters_both "
                "reuters_both_within",
                factor=FACTORS,
                labels=("together", "apart"),
            ),
            words=of_factor,
            message="it is asked of each data set whether a single demonstration is worth more, "
            "the larger its similarity to the query, the loss of its own label, or both, labels "
            "together and apart",
        ),
        family(
            "label",
            OWN,
            "a single demonstration is worth more if its label is the query's",
            f"the mean of {WORTH}, of those with the query's label less that of the others, in "
            "nats,",
            at_least=0.1,
            sample=lambda runs, data: label_effect(runs[data]),
            cells=grid("rotten_tomatoes_label imdb_label reuters_label"),
        ),
    )
