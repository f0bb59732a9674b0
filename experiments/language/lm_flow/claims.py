"""What `lm_flow` judges: disparities of flows, what predicts worth, and selected prompts."""

from functools import partial

from experiments.language.data_sets import families
from experiments.language.language_config import redrawn
from experiments.language.lm_flow.config import FACTORS, MODES, READS
from experiments.language.lm_flow.readings import RIVALS, Numbers
from lsa_lab.judging.statements import Statement, grid

A1, OWN, READING = "A1 (2508.00385)", "derived here", "our reading, in our setting"
THEOREM = f"{A1}, Theorem 1, {READING}"
OF = {"margin": "the label margin", "row": "the query's row"}  # what a flow is of
WHERE = {"alone": "each alone before the query", "shared": "all in one prompt, over its rotations"}
FLOWS = "after a layer the margin is read through the logit lens, a row by random directions"
SAYS = {  # a factor of worth
    "relevance": "its similarity to the query",
    "novelty": "the loss of its own label without demonstrations",
    "both": "similarity and loss together, as a sum of ranks",
}
WORTH = "what it adds to the log-probability of the query's label"
FACTOR = 1.1  # a disparity that grows by this is amplification
SCORED = {  # rule, what it is
    "margin": ("GradS", "the flow of the label margin after the last layer"),
    "row": ("GradS, row", "the flow of the query's row after the last layer"),
    "contribution": ("contribution", "the size of the change of the label margin"),
    "similarity": ("similarity", "the similarity of hidden rows"),
    "bm25": ("BM25", "BM25"),
}
SIZES = "pools are smaller than A1's training sets: each flow takes a walk up and down the model"
HEADLINE = (
    "A1's headline is +6.8% over the strongest baseline in version 1, +1.3% on OpenReview, in "
    "scores of larger models; a wrong answer that is sure of itself costs most here"
)

numbers = Numbers


def statements(config) -> tuple[Statement, ...]:
    return (*flow_statements(config), *grads_statements(config))


def flow_statements(config):
    family = families(config, over="sets of demonstrations", redrawn=redrawn(config, before=12))
    on_each = partial(grid, data=("rotten_tomatoes", "imdb", "reuters"))
    log_ratio = "the mean |log ratio| of two demonstrations' flows of {of}, {placed},"
    ends = "at the last layer over that at the first,"

    def read_words(read, mode="shared"):
        return dict(of=OF[read], placed=WHERE[mode])

    return (
        family(
            "disparity",
            THEOREM,
            "depth makes demonstrations' flows of {of} more unequal, {placed}",
            f"{log_ratio} {ends}",
            "ratio",
            at_least=FACTOR,
            note=FLOWS,
            sample=lambda n, data, read, mode: n.flows[data].disparities(mode, read)[:, -1],
            cells=on_each(
                "rotten_tomatoes_alone_margin_disparity rotten_tomatoes_shared_margin_disparity "
                "rotten_tomatoes_alone_row_disparity rotten_tomatoes_shared_row_disparity "
                "imdb_alone_margin_disparity imdb_shared_margin_disparity "
                "imdb_alone_row_disparity imdb_shared_row_disparity "
                "reuters_alone_margin_disparity reuters_shared_margin_disparity "
                "reuters_alone_row_disparity reuters_shared_row_disparity",
                read=READS,
                mode=MODES,
            ),
            words=read_words,
        ),
        family(
            "untrained",
            f"{OWN}, a control",
            "depth makes flows of {of} more unequal in an untrained decoder of its shape",
            f"{log_ratio} weights random, {ends}",
            "ratio",
            at_least=FACTOR,
            sample=lambda n, data, read: n.flows[data].disparities("untrained", read)[:, -1],
            cells=on_each(
                "rotten_tomatoes_margin_untrained rotten_tomatoes_row_untrained "
                "imdb_margin_untrained imdb_row_untrained reuters_margin_untrained "
                "reuters_row_untrained",
                read=READS,
            ),
            words=read_words,
        ),
        family(
            "order",
            THEOREM,
            "the demonstration with the larger flow of the label margin after the first layer has "
            "it after the last",
            f"the share of pairs that turn, {WHERE['shared']},",
            at_most=0.05,
            sample=lambda n, data: n.flows[data].turns(),
            cells=on_each("rotten_tomatoes_order imdb_order reuters_order"),
        ),
        family(
            "worth",
            f"{A1}, figure 2, {READING}",
            "a single demonstration is worth more, the larger {what}",
            f"the rank correlation, over demonstrations and queries, of {{what}} and {WORTH}",
            at_least=0.2,
            sample=lambda n, data, factor: n.flows[data].correlation(factor),
            cells=on_each(
                "rotten_tomatoes_relevance rotten_tomatoes_novelty rotten_tomatoes_both "
                "imdb_relevance imdb_novelty imdb_both reuters_relevance reuters_novelty "
                "reuters_both",
                factor=FACTORS,
            ),
            words=lambda factor: dict(what=SAYS[factor]),
            message="a single demonstration is worth more, the more similar it is to the query, "
            "and the less its label was expected",
        ),
        family(
            "label",
            OWN,
            "a single demonstration is worth more if its label is the query's",
            f"the mean of {WORTH}, of those with the query's label less that of the others, in "
            "nats,",
            at_least=0.1,
            sample=lambda n, data: n.flows[data].label_effect(),
            cells=on_each("rotten_tomatoes_label imdb_label reuters_label"),
        ),
    )


def grads_statements(config):
    grads = config.grads
    family = families(config, texts=grads, over="pools", redrawn=redrawn(grads, before=12))
    on_each = partial(grid, data=("rotten_tomatoes", "reuters"))
    last = f"the flow of the label margin after layer {grads.layers[-1]}"
    correlation = "the rank correlation, over a pool and averaged over queries, of"
    worth = f"{WORTH}, alone before it,"

    def score_words(score):
        own = (f"{A1}, flow as a measure of effectiveness, {READING}", SIZES)
        of, note = own if score in READS else (OWN, "")
        return dict(score=SCORED[score][1], of=of, note=note)

    return (
        family(
            "predicts",
            "{of}",
            "{score} predicts what a demonstration is worth",
            f"{correlation} {{score}} and {worth}",
            at_least=0.2,
            note="{note}",
            sample=lambda n, data, score: n.pools[data].predicts(SCORED[score][0]),
            cells=on_each(
                "rotten_tomatoes_predicts_margin rotten_tomatoes_predicts_row "
                "rotten_tomatoes_predicts_contribution rotten_tomatoes_predicts_similarity "
                "rotten_tomatoes_predicts_bm25 reuters_predicts_margin reuters_predicts_row "
                "reuters_predicts_contribution reuters_predicts_similarity "
                "reuters_predicts_bm25",
                score=SCORED,
            ),
            words=score_words,
            message="flows, contribution, similarity and BM25 each predict what a demonstration "
            "is worth",
        ),
        family(
            "last",
            f"{A1}, ablation of layers, {READING}",
            f"{last} predicts what a demonstration is worth as well as that of any other",
            f"{correlation} {last} and {worth} less that of the earlier layer that is best in the "
            "other pools,",
            at_least=-0.05,
            sample=lambda n, data: n.pools[data].last_layer(),
            cells=on_each("rotten_tomatoes_last_layer reuters_last_layer"),
        ),
        family(
            "prompts",
            f"{A1}, GradS, {READING}",
            "{rule} selects better prompts than {rival}",
            f"the log-probability of the right label after {grads.shots} demonstrations selected "
            "by {rule} less that by {rival}, on the same queries,",
            at_least=0,
            note=HEADLINE,
            sample=lambda n, data, score, rival: n.pools[data].prompts(SCORED[score][0], rival),
            cells=on_each(
                "rotten_tomatoes_prompts_margin_random "
                "rotten_tomatoes_prompts_margin_similarity rotten_tomatoes_prompts_margin_bm25 "
                "rotten_tomatoes_prompts_margin_contribution rotten_tomatoes_prompts_row_random "
                "rotten_tomatoes_prompts_row_similarity rotten_tomatoes_prompts_row_bm25 "
                "rotten_tomatoes_prompts_row_contribution reuters_prompts_margin_random "
                "reuters_prompts_margin_similarity reuters_prompts_margin_bm25 "
                "reuters_prompts_margin_contribution reuters_prompts_row_random "
                "reuters_prompts_row_similarity reuters_prompts_row_bm25 "
                "reuters_prompts_row_contribution",
                score=READS,
                rival=RIVALS,
            ),
            words=lambda score, rival: dict(rule=SCORED[score][0]),
            message="GradS, by the flow of the label margin or of the query's row, selects better "
            "prompts than random choice and three rivals",
        ),
    )
