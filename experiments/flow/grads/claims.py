"""What `grads` judges: against relevance, the rival of all tasks; and against the strongest."""

from functools import partial

import numpy as np

from experiments.flow.grads.config import LAST, RECOMPUTED, RELEVANCE, SWEEP, VARIANTS
from lsa_lab.judging.claims import verdict_of
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import CONFIDENCE, mean_interval
from lsa_lab.store import results


def strongest(validation):  # [..., other, rule] -> names [...]
    """The rival that is best on other queries."""
    return validation.drop_sel(rule=list(VARIANTS)).mean("other").idxmin("rule")


def log_ratios(dataset, rival, rule="GradS"):  # -> [R, cells]
    """Logarithms of the error by a rule over that by a rival, in every cell of the sweep."""
    errors = dataset.sweep.stack(cell=SWEEP)
    if rival == "strongest":
        rival = strongest(dataset.sweep_validation).stack(cell=SWEEP)
    return np.log(errors.sel(rule=rule) / errors.sel(rule=rival)).transpose("run", "cell")


def noise_ratios(dataset, rule, noise):  # -> [R]
    """The error by a rule over that by relevance, geometric mean over the tasks without noise in
    the labels, or over those with the most."""
    ratios = log_ratios(dataset, RELEVANCE, rule)
    level = {"without": ratios.noise.min(), "with": ratios.noise.max()}[noise]
    return np.exp(ratios[:, (ratios.noise == level).values].mean("cell").values)


def intervals(ratios):  # log ratios [R, cells] -> [(low, high)] of their means
    """Their confidence is that of all cells at once (Bonferroni)."""
    confidence = 1 - (1 - CONFIDENCE) / ratios.sizes["cell"]
    return [mean_interval(each, confidence) for each in ratios.transpose("cell", "run").values]


def verdicts(ratios) -> list[str]:  # log ratios [R, cells] -> [cells]
    """In each cell: GradS wins if "holds", loses if "fails"."""
    return [verdict_of(interval, at_most=0) for interval in intervals(ratios)]


def task_ratios(dataset, task, rival):  # -> [R]
    """The error of GradS over that of a rival on one kind of tasks."""
    place = {"setting": task, "shots": results.config_of(dataset).judged}
    if rival == "strongest":
        rival = strongest(dataset.validation.sel(place)).item()
    errors = dataset.error.sel(place)
    return (errors.sel(rule="GradS") / errors.sel(rule=rival)).values


def last_layer_ratios(dataset):  # -> [R]
    """The error by the last layer's flow over that by the earlier layer's which is best on other
    queries."""
    place = {"setting": "prior", "shots": results.config_of(dataset).judged}
    others = dataset.layer_validation.sel(place).mean("other")
    errors = dataset.layer_error.sel(place)
    return (errors.isel(layer=-1) / errors.isel(layer=int(others[:-1].argmin("layer")))).values


def recomputing_ratios(dataset):  # -> [R]
    """The error with duplicates by contributions that are computed after each pick over that by
    the same, computed once."""
    errors = dataset.error.sel(setting="duplicates", shots=results.config_of(dataset).judged)
    return (errors.sel(rule=RECOMPUTED) / errors.sel(rule="contribution")).values


A1 = "A1 (2508.00385)"
SETTING = f"{A1}, in our setting"
RIVAL, ERROR = "the rival that is best on other queries", "the error by GradS over that by"
SCORES = (
    "A1's headline is +6.8% over the strongest baseline in version 1, +1.3% on OpenReview, in "
    "scores of language models; here errors are squared"
)
MEAN = "it was the mean of relative gains, biased against the one that is called better"
AMONG = f"{MEAN}; contributions are among the rivals"
FLOWS = {"GradS": "GradS", "GradS by the last layer's flow": LAST}  # who: the rule
BEATEN = {  # rival: in a sentence, in what is measured, note, what it was
    "strongest": (
        "its strongest rival",
        RIVAL,
        "rivals: relevance, similarity, novelty, three rules of diversity, a random choice, and "
        f"relevance times novelty, once or recomputed after each pick; {SCORES}",
        AMONG,
    ),
    "random": ("a random choice", "a random choice", "", MEAN),
}


def rival_words(rival) -> dict[str, str]:
    return dict(zip(("beaten", "other", "note", "was"), BEATEN[rival], strict=True))


def statements(config) -> tuple[Statement, ...]:
    fresh = f"{config.runs} fresh runs, {'40, and 8' if config.runs > 40 else '8'} before"
    return (*_sweep_statements(config, fresh), *_task_statements(config, fresh))


def _sweep_statements(config, fresh):
    kinds = len(config.densities) * len(config.knowns)
    tasks = f"over {kinds * len(config.noises)} tasks"
    return (
        Statement(
            "noise_decides",
            SETTING,
            "{flow} beats selection by relevance {noise} noise in the labels",
            f"the error by it over that by relevance, geometric mean over {kinds} tasks,",
            "ratio",
            at_most=1.0,
            note=f"noise of standard deviation {max(config.noises):g}; to the weights it is new, "
            f"and so the flow takes it for information; {SCORES}",
            revision="rival, and the split by noise, since a look at the paper tier: the mean is "
            "one of two opposite effects; the rival was the best of each task",
            sample=lambda r, flow, noise: noise_ratios(r, FLOWS[flow], noise),
            cells=grid(
                "without_noise with_noise last_layer_without_noise last_layer_with_noise",
                flow=FLOWS,
                noise=("without", "with"),
            ),
            message="GradS beats selection by relevance without noise in the labels, and loses "
            "with it",
        ),
        Statement(
            "beats",
            SETTING,
            f"GradS beats {{beaten}}, on average {tasks}",
            f"{ERROR} {{other}}, geometric mean {tasks},",
            "ratio",
            at_most=1.0,
            note="{note}",
            revision="sweep, rivals and statistic chosen after a look at one place of it",
            redrawn=fresh,
            sample=lambda r, rival: np.exp(log_ratios(r, rival).mean("cell").values),
            cells=grid("strongest random", rival=BEATEN),
            words=rival_words,
            message=f"GradS beats its strongest rival and a random choice, on average {tasks}",
        ),
    )


def _task_statements(config, fresh):
    shots = f"{config.judged} shots of {config.pool},"
    ratio = partial(Statement, statistic="ratio", redrawn=fresh)
    return (
        ratio(
            "duplicates",
            f"modelled on {A1}",
            "GradS beats its strongest rival with duplicates",
            f"{ERROR} {RIVAL}, {shots}",
            at_most=1.0,
            revision=AMONG,
            sample=lambda r: task_ratios(r, "duplicates", "strongest"),
        ),
        ratio(
            "on_the_table",
            SETTING,
            "GradS beats {beaten} on the diabetes table",
            f"{ERROR} {{other}}, {shots}",
            at_most=1.0,
            overlap=1.0,  # the weights know one half of the rows; pools and queries are the other
            note="the runs are random halves of one table and overlap: the mean has the variance "
            "s²(1/R + 1), Nadeau and Bengio 2003",
            revision="{was}; the runs were judged as independent",
            sample=lambda r, rival: task_ratios(r, "table", rival),
            cells=grid("table table_random", rival=BEATEN),
            words=rival_words,
        ),
        ratio(
            "recomputed_contribution",
            "derived here",
            "With duplicates in the pool it helps to recompute, after each pick, the contribution",
            f"the error over that of the same, computed once, {shots}",
            at_most=1.0,
            revision=MEAN,
            sample=recomputing_ratios,
        ),
        ratio(
            "last_layer",
            f"{A1}, ablation of layers, in our setting",
            "The last layer's flow is the best to select by, every demonstration alone, without "
            "noise in the labels",
            "the error by it over that by the earlier layer's that is best on other queries, "
            f"{shots}",
            at_most=1.0,
            revision=f"{MEAN}; the words did not say that labels have no noise",
            sample=last_layer_ratios,
        ),
    )
