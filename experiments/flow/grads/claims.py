"""What `grads` judges."""

import numpy as np

from experiments.flow.grads import sweep
from experiments.flow.grads.config import LAST, PROMPTS
from lsa_lab.judging.statements import Statement, grid

PREDICTS = 0.3  # a rank correlation of at least this is a prediction
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
LAYER = "which layer's flow A1 takes is not public"
LATER = "added after a look at these runs, with Eq. 2 alone"
AMONG = "contributions are among the rivals"
OVERLAP = "the runs were judged as independent"
FLOWS = {"Eq. 2": "GradS", "last layer": LAST}  # the flow that A1 may take: the rule
BEATEN = {  # rival: in a sentence, in what is measured, note
    "strongest": ("its strongest rival", RIVAL, f"rivals: {USUAL}, {PRODUCT}; {SCORES}"),
    "usual": (
        "the strongest rule without products of relevance and novelty",
        "the usual rule that is best on other queries",
        f"usual: {USUAL}; {SCORES}",
    ),
    "random": ("a random choice", "a random choice", ""),
}
LABELS = {"strongest": "strongest rival", "usual": "best usual rule", "random": "random"}
PREDICTORS = {
    "ineffective": dict(
        source=f"modelled on {A1}, ineffective demonstrations",
        more="the more demonstrations are irrelevant or learned",
        what="the probability of such a demonstration",
    ),
    "ranks": dict(
        source=f"{A1}, flow as a measure of effectiveness, our reading, in our setting",
        more="the better its flow ranks what single demonstrations are worth",
        what="the rank correlation of flow and error reduction, less the better one of "
        "relevance and of novelty, on other queries",
    ),
}
TABLE = {  # rival: in a sentence, in what is measured
    "strongest": ("beats its strongest rival", RIVAL),
    "random": ("beats a random choice", "a random choice"),
    "none": ("is better than no demonstrations", "no demonstrations"),
}
WHERE = {
    "alone": dict(where="every demonstration alone", label="last layer / earlier"),
    "pool": dict(where="all of the pool in the prompt", label="the same, in the pool"),
}


def table_words(rival) -> dict[str, str]:
    beats, other = TABLE[rival]
    source = OURS if rival == "none" else f"{A1}, in our setting"
    among = f"{AMONG}; " if rival == "strongest" else ""
    return dict(source=source, beats=beats, other=other, among=among)


def fresh(config) -> str:
    earlier = "40, and 8" if config.runs > 40 else "8"
    return f"{config.runs} fresh runs, {earlier} before"


def statements(config) -> tuple[Statement, ...]:
    return (*_sweep_statements(config), *_task_statements(config))


def _sweep_statements(config):
    cells = len(config.densities) * len(config.knowns) * len(config.noises)
    tasks = f"over {cells} tasks"
    usual = BEATEN["usual"][1]

    def words(flow, rival):
        beaten, other, note = BEATEN[rival]
        rule = dict(beaten=beaten, other=other)
        if flow == "last layer":
            later = dict(note=LAYER, revision=LATER, redrawn="", label=f"last layer: {rival}")
            return rule | later | dict(by=" by the last layer's flow", rule="the last layer's flow")
        swept = dict(note=note, revision=SWEPT, redrawn=fresh(config), label=LABELS[rival])
        return rule | swept | dict(by="", rule="GradS")

    return (
        Statement(
            "beats",
            f"{A1}, in our setting",
            f"GradS{{by}} beats {{beaten}}, on average {tasks}",
            f"the error by {{rule}} over that by {{other}}, geometric mean {tasks},",
            "ratio",
            at_most=1.0,
            note="{note}",
            revision="{revision}",
            redrawn="{redrawn}",
            label="{label}",
            sample=lambda r, flow, rival: sweep.mean_ratio(r, FLOWS[flow], rival),
            cells=grid(
                "strongest usual random strongest_last_layer usual_last_layer -",
                flow=FLOWS,
                rival=BEATEN,
            ),
            words=words,
            message="GradS beats its strongest rival, the strongest usual rule and a random "
            f"choice, on average {tasks}",
        ),
        Statement(
            "predicted",
            "{source}",
            "GradS gains the more, {more}",
            f"the rank correlation, over the {cells} tasks, of the gain over {usual} with {{what}}",
            at_least=PREDICTS,
            revision="added, after a look at one place of the sweep",
            redrawn=fresh(config),
            sample=sweep.gain_correlation,
            cells=grid("ineffective ranks", predictor=("ineffective", "ranks")),
            words=lambda predictor: PREDICTORS[predictor],
            message="GradS gains the more, the more demonstrations are ineffective and the better "
            "its flow ranks single ones",
        ),
        Statement(
            "times_input",
            OURS,
            f"Flow × input selects better than the norm of the flow, on average {tasks}",
            f"the error by flow × input over that by GradS, geometric mean {tasks},",
            "ratio",
            at_most=1.0,
            revision=SWEPT,
            redrawn=fresh(config),
            label="flow × input / GradS",
            sample=lambda r: np.exp(-sweep.rule_ratios(r, "flow × input").mean("cell").values),
        ),
    )


def _task_statements(config):
    shots, looked = f"{config.judged} shots of {config.pool},", dict(redrawn=fresh(config))
    return (
        Statement(
            "duplicates",
            f"modelled on {A1}",
            "GradS beats its strongest rival with duplicates",
            f"{ERROR} {RIVAL}, {shots}",
            "ratio",
            at_most=1.0,
            revision=f"{MEAN}; {AMONG}",
            label="duplicates: strongest",
            sample=lambda r: sweep.task_ratios(r, "duplicates", "strongest"),
            **looked,
        ),
        Statement(
            "on_the_table",
            "{source}",
            "GradS {beats} on the diabetes table",
            f"{ERROR} {{other}}, {shots}",
            "ratio",
            at_most=1.0,
            overlap=1.0,  # the weights know one half of the rows; pools and queries are the other
            note="the runs are random halves of one table and overlap: the mean has the variance "
            "s²(1/R + 1), Nadeau and Bengio 2003",
            revision=f"{MEAN}; {{among}}{OVERLAP}",
            label="table: {rival}",
            sample=lambda r, rival: sweep.task_ratios(r, "table", rival),
            cells=grid("table table_random table_none", rival=("strongest", "random", "none")),
            words=table_words,
            message="GradS beats its strongest rival, a random choice and no demonstrations on the "
            "diabetes table",
            **looked,
        ),
        Statement(
            "recomputed",
            OURS,
            "With duplicates in the pool it helps to recompute, after each pick, the {what}",
            f"the error over that of the same, computed once, {shots}",
            "ratio",
            at_most=1.0,
            revision=MEAN,
            label="{score} again / once",
            sample=sweep.recomputing_ratios,
            cells=grid(
                "recomputed_flow recomputed_contribution", score=("last layer", "contribution")
            ),
            words=lambda score: dict(what=f"{score}'s flow" if score == "last layer" else score),
            message="With duplicates in the pool it helps to recompute the flow or the "
            "contribution after each pick",
            **looked,
        ),
        Statement(
            "best_layer",
            f"{A1}, ablation of layers, in our setting",
            "The last layer's flow is the best to select by, {where}",
            "the error by it over that by the earlier layer's that is best on other queries, "
            f"{shots}",
            "ratio",
            at_most=1.0,
            revision=MEAN,
            label="{label}",
            sample=lambda r, prompt: sweep.last_layer(r, prompt)[1],
            cells=grid("last_layer last_layer_pool", prompt=PROMPTS),
            words=lambda prompt: WHERE[prompt],
            message="The last layer's flow is the best to select by, be a demonstration alone or "
            "the whole pool in the prompt",
            **looked,
        ),
    )
