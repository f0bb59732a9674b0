"""What `grads` judges, by the criteria in its Config."""

from dataclasses import replace
from functools import partial

from lsa_lab.claims import Statement

A1, OURS = "A1 (2508.00385)", "derived here"
ERROR, RIVAL = "the error by GradS over that by", "the rival that is best on other queries"
USUAL = "relevance, similarity, novelty, three rules of diversity, a random choice"
PRODUCT = "and relevance times novelty, once or recomputed after each pick"
SCORES = (
    "A1's headline is +6.8% over the strongest baseline in version 1, +1.3% on OpenReview, in "
    "scores of language models; here errors are squared"
)
MEAN = "it was the mean of relative gains, biased against the one that is called better"
SWEPT = "sweep, rivals and statistic chosen after a look at one place of it"
ADDED = "added, after a look at one place of the sweep"
LAYER = "which layer's flow A1 takes is not public"
LATER = "added after a look at these runs, with Eq. 2 alone"
FRESH = "{runs} fresh runs, {earlier} before"
OVERLAP = "the runs were judged as independent"
HALVES = (
    "the runs are random halves of one table and overlap: the mean has the variance s²(1/R + 1), "
    "Nadeau and Bengio 2003"
)


def statements(config) -> tuple[Statement, ...]:
    rows = (*_in_the_sweep(config), *_elsewhere(config), *_about_layers(config))
    earlier = "40, and 8" if config.runs > 40 else "8"
    fresh = {"runs": config.runs, "earlier": earlier}
    return tuple(replace(row, redrawn=row.redrawn.format(**fresh)) for row in rows)


def _in_the_sweep(config):
    row, source = partial(_gain, config), f"{A1}, in our setting"
    cells = len(config.densities) * len(config.knowns) * len(config.noises)
    ratio, mean = (
        f"{ERROR} %s, geometric mean over {cells} tasks,",
        f"on average over {cells} tasks",
    )
    by_last = ratio.replace("by GradS", "by the last layer's flow", 1)
    usual = "the usual rule that is best on other queries"
    correlation = f"the rank correlation, over the {cells} tasks, of the gain over {usual} with"
    return (
        row(
            "strongest",
            source,
            f"GradS beats its strongest rival, {mean}",
            ratio % RIVAL,
            note=f"rivals: {USUAL}, {PRODUCT}; {SCORES}",
            revision=SWEPT,
            redrawn=FRESH,
        ),
        row(
            "usual",
            source,
            f"GradS beats the strongest rule without products of relevance and novelty, {mean}",
            ratio % usual,
            note=f"usual: {USUAL}; {SCORES}",
            revision=SWEPT,
            redrawn=FRESH,
        ),
        row(
            "strongest_last_layer",
            source,
            f"GradS by the last layer's flow beats its strongest rival, {mean}",
            by_last % RIVAL,
            note=LAYER,
            revision=LATER,
        ),
        row(
            "usual_last_layer",
            source,
            "GradS by the last layer's flow beats the strongest rule without products of relevance "
            f"and novelty, {mean}",
            by_last % usual,
            note=LAYER,
            revision=LATER,
        ),
        Statement(
            "ineffective",
            f"modelled on {A1}, ineffective demonstrations",
            "GradS gains the more, the more demonstrations are irrelevant or learned",
            f"{correlation} the probability of such a demonstration",
            at_least=config.predicts,
            revision=ADDED,
            redrawn=FRESH,
        ),
        Statement(
            "ranks",
            f"{A1}, flow as a measure of effectiveness, our reading, in our setting",
            "GradS gains the more, the better its flow ranks what single demonstrations are worth",
            f"{correlation} the rank correlation of flow and error reduction, less the better one "
            "of relevance and of novelty, on other queries",
            at_least=config.predicts,
            revision=ADDED,
            redrawn=FRESH,
        ),
        row(
            "random",
            source,
            f"GradS beats a random choice, {mean}",
            ratio % "a random choice",
            revision=SWEPT,
            redrawn=FRESH,
        ),
        row(
            "times_input",
            OURS,
            f"Flow × input selects better than the norm of the flow, {mean}",
            (ratio % "GradS").replace("by GradS", "by flow × input", 1),
            revision=SWEPT,
            redrawn=FRESH,
        ),
    )


def _elsewhere(config):
    row, source = partial(_gain, config), f"{A1}, in our setting"
    judged = f"{config.judged} shots of {config.pool},"
    # The weights know one half of the rows; pools and queries are from the other.
    of_table, rivals = (
        {"note": HALVES, "overlap": 1.0},
        f"{MEAN}; contributions are among the rivals",
    )
    again = "With duplicates in the pool it helps to recompute, after each pick,"
    once = f"the error over that of the same, computed once, {judged}"
    return (
        row(
            "duplicates",
            f"modelled on {A1}",
            "GradS beats its strongest rival with duplicates",
            f"{ERROR} {RIVAL}, {judged}",
            revision=rivals,
            redrawn=FRESH,
        ),
        row(
            "table",
            source,
            "GradS beats its strongest rival on the diabetes table",
            f"{ERROR} {RIVAL}, {judged}",
            revision=f"{rivals}; {OVERLAP}",
            redrawn=FRESH,
            **of_table,
        ),
        row(
            "table_random",
            source,
            "GradS beats a random choice on the diabetes table",
            f"{ERROR} a random choice, {judged}",
            revision=f"{MEAN}; {OVERLAP}",
            redrawn=FRESH,
            **of_table,
        ),
        row(
            "table_none",
            OURS,
            "GradS is better than no demonstrations on the diabetes table",
            f"{ERROR} no demonstrations, {judged}",
            revision=f"{MEAN}; {OVERLAP}",
            redrawn=FRESH,
            **of_table,
        ),
        row(
            "recomputed_flow",
            OURS,
            f"{again} the last layer's flow",
            once,
            revision=MEAN,
            redrawn=FRESH,
        ),
        row(
            "recomputed_contribution",
            OURS,
            f"{again} the contribution",
            once,
            revision=MEAN,
            redrawn=FRESH,
        ),
    )


def _about_layers(config):
    earlier = f"the earlier layer's that is best on other queries, {config.judged} shots"
    for id, where in (
        ("last_layer", "every demonstration alone"),
        ("last_layer_pool", "all of the pool in the prompt"),
    ):
        yield _gain(
            config,
            id,
            f"{A1}, ablation of layers, in our setting",
            f"The last layer's flow is the best to select by, {where}",
            f"the error by it over that by {earlier} of {config.pool},",
            revision=MEAN,
            redrawn=FRESH,
        )


def _gain(config, id, source, says, measured, **more):
    return Statement(id, source, says, measured, "ratio", at_most=config.ratio, **more)
