"""What `grads` judges."""

import numpy as np

from experiments.flow.grads import sweep
from experiments.flow.grads.config import LAST
from lsa_lab.judging.statements import Statement, grid

A1 = "A1 (2508.00385)"
RIVAL, ERROR = "the rival that is best on other queries", "the error by GradS over that by"
USUAL = "relevance, similarity, novelty, three rules of diversity, a random choice"
PRODUCT = "and relevance times novelty, once or recomputed after each pick"
SCORES = (
    "A1's headline is +6.8% over the strongest baseline in version 1, +1.3% on OpenReview, in "
    "scores of language models; here errors are squared"
)
MEAN = "it was the mean of relative gains, biased against the one that is called better"
AMONG = f"{MEAN}; contributions are among the rivals"
LATER = "added after a look at these runs, with Eq. 2 alone"
IDS = "strongest usual random strongest_last_layer usual_last_layer -"
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


def rival_words(rival) -> dict[str, str]:
    was = f"{AMONG if rival == 'strongest' else MEAN}; the runs were judged as independent"
    return dict(zip(("beaten", "other", "note"), BEATEN[rival], strict=True)) | {"was": was}


def statements(config) -> tuple[Statement, ...]:
    fresh = f"{config.runs} fresh runs, {'40, and 8' if config.runs > 40 else '8'} before"
    return (_sweep_statement(config, fresh), *_task_statements(config, fresh))


def _sweep_statement(config, fresh):
    tasks = f"over {len(config.densities) * len(config.knowns) * len(config.noises)} tasks"

    def words(flow, rival):
        if flow == "last layer":
            later = dict(by=" by the last layer's flow", rule="the last layer's flow", redrawn="")
            later |= dict(note="which layer's flow A1 takes is not public", revision=LATER)
            return rival_words(rival) | later
        swept = "sweep, rivals and statistic chosen after a look at one place of it"
        return rival_words(rival) | dict(revision=swept, redrawn=fresh, by="", rule="GradS")

    return Statement(
        "beats",
        f"{A1}, in our setting",
        f"GradS{{by}} beats {{beaten}}, on average {tasks}",
        f"the error by {{rule}} over that by {{other}}, geometric mean {tasks},",
        "ratio",
        at_most=1.0,
        note="{note}",
        revision="{revision}",
        redrawn="{redrawn}",
        label="{flow}: {rival}",
        sample=lambda r, flow, rival: np.exp(
            sweep.log_ratios(r, rival, FLOWS[flow]).mean("cell").values
        ),
        cells=grid(IDS, flow=FLOWS, rival=BEATEN),
        words=words,
        message=f"GradS beats its rivals and a random choice, on average {tasks}",
    )


def _task_statements(config, fresh):
    shots = f"{config.judged} shots of {config.pool},"
    every = dict(statistic="ratio", at_most=1.0, redrawn=fresh)
    return (
        Statement(
            "duplicates",
            f"modelled on {A1}",
            "GradS beats its strongest rival with duplicates",
            f"{ERROR} {RIVAL}, {shots}",
            revision=AMONG,
            label="duplicates: strongest",
            sample=lambda r: sweep.task_ratios(r, "duplicates", "strongest"),
            **every,
        ),
        Statement(
            "on_the_table",
            f"{A1}, in our setting",
            "GradS beats {beaten} on the diabetes table",
            f"{ERROR} {{other}}, {shots}",
            overlap=1.0,  # the weights know one half of the rows; pools and queries are the other
            note="the runs are random halves of one table and overlap: the mean has the variance "
            "s²(1/R + 1), Nadeau and Bengio 2003",
            revision="{was}",
            label="table: {rival}",
            sample=lambda r, rival: sweep.task_ratios(r, "table", rival),
            cells=grid("table table_random", rival=("strongest", "random")),
            words=rival_words,
            **every,
        ),
        Statement(
            "recomputed_contribution",
            "derived here",
            "With duplicates in the pool it helps to recompute, after each pick, the contribution",
            f"the error over that of the same, computed once, {shots}",
            revision=MEAN,
            label="contribution again / once",
            sample=sweep.recomputing_ratios,
            **every,
        ),
        Statement(
            "last_layer",
            f"{A1}, ablation of layers, in our setting",
            "The last layer's flow is the best to select by, every demonstration alone",
            "the error by it over that by the earlier layer's that is best on other queries, "
            f"{shots}",
            revision=MEAN,
            label="last layer / earlier",
            sample=sweep.last_layer_ratios,
            **every,
        ),
    )
