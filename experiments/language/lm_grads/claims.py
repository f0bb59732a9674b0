"""What `lm_grads` judges: what predicts the worth of demonstrations, and selected prompts."""

from experiments.language.data_sets import data_grid, families
from experiments.language.language_config import redrawn
from experiments.language.lm_grads.pools import READS, RIVALS, SCORED, Pools, rule_of
from lsa_lab.judging.statements import Statement

A1, OWN, READING = "A1 (2508.00385)", "derived here", "our reading, in our setting"
WORTH = "what it adds to the log-probability of the query's label, alone before it,"
CORRELATION = "the rank correlation, over a pool and averaged over queries, of"
SIZES = (
    "A1 selects from training sets: pools are small here, for the flow of each demonstration takes "
    "a walk up and down the model"
)
APART = (
    "added to these runs: log-probabilities punish prompts of one class, which some rules select"
)
HEADLINE = (
    "A1's headline is +6.8% over the strongest baseline in version 1, +1.3% on OpenReview, in "
    "scores of larger models; a wrong answer that is sure of itself costs most here"
)
COMPARED = {  # whom prompts are compared with, and how it is taken
    "random": dict(rival="a random choice", taken="a random choice, the mean of its draws"),
    "strongest": dict(
        rival="its strongest rival",
        taken=f"the one of {', '.join(RIVALS)} that is best in the other pools",
    ),
}
LIKE_THE_ROW = {
    "margin": dict(
        of=OWN,
        says="the flows of margin and row after the last layer rank demonstrations alike",
        label="margin and row",
    ),
    "offline": dict(
        of=f"{A1}, Eq. 2 in the place of the flow, {READING}",
        says=f"Eq. 2, offline and of one layer, ranks demonstrations as {SCORED['row'][1]} does",
        label="Eq. 2 and row",
    ),
}
SHARE = 0.25  # of what an oracle gains over a random choice


def numbers(dataset) -> dict[str, Pools]:
    return {name: Pools(dataset.sel(task=name)) for name in dataset.task.values}


def score_words(score) -> dict[str, str]:
    rule, what = SCORED[score]
    ours = not rule.startswith("GradS")
    paper = f"{A1}, flow as a measure of effectiveness, {READING}"
    return dict(rule=rule, score=what, of=OWN if ours else paper, note="" if ours else SIZES)


def statements(config) -> tuple[Statement, ...]:
    family = families(config, over="pools", redrawn=redrawn(config, before=12))
    grid = data_grid("rotten_tomatoes", "reuters")
    last = f"the flow of the label margin after layer {config.layers[-1]}"
    shots = f"the {config.shots}"
    return (
        family(
            "predicts",
            "{of}",
            "{score} predicts what a demonstration is worth",
            f"{CORRELATION} {{score}} and {WORTH}",
            at_least=0.2,
            note="{note}",
            label="{rule}",
            sample=lambda pools, data, score: pools[data].predicts(rule_of(score)),
            cells=grid(
                "rotten_tomatoes_predicts_margin rotten_tomatoes_predicts_row "
                "rotten_tomatoes_predicts_offline rotten_tomatoes_predicts_contribution "
                "rotten_tomatoes_predicts_similarity rotten_tomatoes_predicts_bm25 "
                "reuters_predicts_margin reuters_predicts_row reuters_predicts_offline "
                "reuters_predicts_contribution reuters_predicts_similarity reuters_predicts_bm25",
                score=SCORED,
            ),
            words=score_words,
            message="it is asked of three forms of GradS, of contribution, similarity and BM25, "
            "whether they predict what a demonstration is worth",
        ),
        family(
            "measures",
            OWN,
            "{score} measures how far a demonstration moves the answer, either way",
            f"{CORRELATION} {{score}} and the size of {WORTH}",
            at_least=0.4,
            label="size of it: {rule}",
            sample=lambda pools, data, score: pools[data].measures(rule_of(score)),
            cells=grid(
                "rotten_tomatoes_measures_margin rotten_tomatoes_measures_row "
                "reuters_measures_margin reuters_measures_row",
                score=READS,
            ),
            words=score_words,
            message="the flows of the label margin and of the query's row after the last layer "
            "measure how far a demonstration moves the answer, either way",
        ),
        family(
            "share",
            f"{A1}, GradS, {READING}",
            "what {rule} selects is worth a good part of the best, each alone",
            f"the mean worth of {shots} that {{rule}} selects, over that of the pool, less "
            f"{SHARE:g} of the same of {shots} worth most, in nats,",
            at_least=0,
            label="{rule}: {part}",
            sample=lambda pools, data, score: (
                pools[data].gains(rule_of(score)) - SHARE * pools[data].gains("oracle")
            ),
            cells=grid(
                "rotten_tomatoes_share_margin rotten_tomatoes_share_row reuters_share_margin "
                "reuters_share_row",
                score=READS,
            ),
            words=lambda score: dict(
                rule=rule_of(score),
                part="the same" if score == "row" else "a quarter\nof the oracle's, nats",
            ),
            message="what GradS selects, by the margin or by the row, is worth a good part of the "
            "best, each alone",
        ),
        family(
            "last",
            f"{A1}, ablation of layers, {READING}",
            f"{last} predicts what a demonstration is worth as well as that of any other",
            f"{CORRELATION} {last} and {WORTH} less that of the earlier layer that is best in the "
            "other pools,",
            at_least=-0.05,
            label="last layer: correlation\nless an earlier one's",
            sample=lambda pools, data: pools[data].last_layer(),
            cells=grid("rotten_tomatoes_last_layer reuters_last_layer"),
        ),
        family(
            "discriminates",
            f"{A1}, the last layer discriminates most, {READING}",
            f"{last} tells more demonstrations apart than that of any earlier layer",
            "the standard deviation of its logarithm over a pool, over that of the earlier layer "
            "that has the largest in the other pools,",
            "ratio",
            at_least=1,
            label="last layer: spread\nover an earlier one's",
            sample=lambda pools, data: pools[data].discriminates(),
            cells=grid("rotten_tomatoes_discriminates reuters_discriminates"),
        ),
        family(
            "like_the_row",
            "{of}",
            "{says}",
            f"{CORRELATION} the two",
            at_least=0.6,
            label="{label}",
            sample=lambda pools, data, score: pools[data].agreement(rule_of(score), "GradS, row"),
            cells=grid(
                "rotten_tomatoes_readings rotten_tomatoes_offline reuters_readings reuters_offline",
                score=("margin", "offline"),
            ),
            words=lambda score: LIKE_THE_ROW[score],
            message="the flow of the label margin, and Eq. 2, rank demonstrations as the flow of "
            "the query's row after the last layer does",
        ),
        family(
            "length",
            OWN,
            f"{SCORED['margin'][1]} does not go by the length of a demonstration",
            f"{CORRELATION} it and the number of tokens",
            margin=0.3,
            label="margin and length",
            sample=lambda pools, data: pools[data].goes_by_length("GradS"),
            cells=grid("rotten_tomatoes_length reuters_length"),
            message=f"it is asked of each data set whether {SCORED['margin'][1]} goes by the "
            "length of a demonstration",
        ),
        family(
            "prompts",
            f"{A1}, GradS, {READING}",
            "{rule} selects better prompts than {rival}",
            f"the log-probability of the right label after {config.shots} demonstrations selected "
            "by {rule} less that by {rival}, on the same queries,",
            at_least=0,
            note=HEADLINE,
            sample=lambda pools, data, score, rival: pools[data].prompts(rule_of(score), rival),
            cells=grid(
                "rotten_tomatoes_prompts_margin_random rotten_tomatoes_prompts_margin_similarity "
                "rotten_tomatoes_prompts_margin_bm25 rotten_tomatoes_prompts_margin_contribution "
                "rotten_tomatoes_prompts_row_random rotten_tomatoes_prompts_row_similarity "
                "rotten_tomatoes_prompts_row_bm25 rotten_tomatoes_prompts_row_contribution "
                "reuters_prompts_margin_random reuters_prompts_margin_similarity "
                "reuters_prompts_margin_bm25 reuters_prompts_margin_contribution "
                "reuters_prompts_row_random reuters_prompts_row_similarity "
                "reuters_prompts_row_bm25 reuters_prompts_row_contribution",
                score=READS,
                rival=RIVALS,
            ),
            words=lambda score, rival: dict(rule=rule_of(score)),
            message="it is asked beside each of four rivals whether GradS, by the margin or by the "
            "row, selects better prompts",
        ),
        family(
            "apart",
            f"{A1}, GradS, {READING}",
            "after prompts of {rule} answers tell the classes apart better than after those of "
            "{rival}",
            f"AUC over a pool's queries after {config.shots} demonstrations selected by {{rule}} "
            "less that by {taken},",
            at_least=0,
            revision=APART,
            redrawn="",
            sample=lambda pools, data, score, rival: pools[data].apart(rule_of(score), rival),
            cells=grid(
                "rotten_tomatoes_apart_margin_random rotten_tomatoes_apart_margin_strongest "
                "rotten_tomatoes_apart_row_random rotten_tomatoes_apart_row_strongest "
                "reuters_apart_margin_random reuters_apart_margin_strongest "
                "reuters_apart_row_random reuters_apart_row_strongest",
                score=READS,
                rival=COMPARED,
            ),
            words=lambda score, rival: dict(rule=rule_of(score), **COMPARED[rival]),
            message="after prompts of GradS, by the margin or by the row, answers tell the classes "
            "apart better than after those of a random choice and of its strongest rival",
        ),
    )
