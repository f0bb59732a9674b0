"""What `clipping_search` judges: gains on the prompts that a search has, and on others."""

import numpy as np

from experiments.clipping.clipping_search.config import ALGORITHM, COMPOSED, PATIENT, TRAINED, WIDE
from experiments.clipping.transformers import fresh
from lsa_lab.judging.statements import Statement, grid

WORTHWHILE = 0.01  # share of the risk that is a gain to speak of
ADDED = "added after a look at these models on three of the tasks, with 1000 other prompts"
GAIN = "the gain on test, relative to the unclipped risk"
OVER_TASKS = "averaged over tasks,"
GROUPS = {"Algorithm 1": ALGORITHM, "patient": PATIENT, "wide": (WIDE,), "composed": (COMPOSED,)}


def numbers(dataset) -> "Gains":
    return Gains(dataset)


class Gains:
    """What groups of searches gain, as shares of the unclipped risk."""

    def __init__(self, dataset):
        self.test = dataset.test_gain
        self.optimism = (dataset.validation_gain - self.test).mean("task")

    def gain(self, group):  # [R]
        return self.test.sel(search=list(GROUPS[group])).mean(("task", "search")).values

    def wins(self, group):  # [R]
        """Wins less losses, as a share of the searches."""
        test = self.test.sel(search=list(GROUPS[group]))
        return np.sign(test).mean(("task", "search")).values

    def selection(self, group):  # [R], or 0.0
        """What a group gains on validation beyond test; no group gains nothing."""
        if group == "none":
            return 0.0
        return self.optimism.sel(search=list(GROUPS[group])).mean("search").values

    def difference(self, group, other):  # [R]
        left, right = (
            self.test.sel(search=list(GROUPS[name])).mean("search") for name in (group, other)
        )
        return (left - right).mean("task").values

    @property
    def matched(self):  # (run,)
        """The gain of the widest search on the task of training."""
        return self.test.sel(search=WIDE, task=TRAINED)

    def mismatch(self):  # [R]
        other_tasks = self.test.sel(search=WIDE).drop_sel(task=TRAINED).mean("task")
        return (other_tasks - self.matched).values


def statements(config) -> tuple[Statement, ...]:
    redrawn = f"{fresh(config)}, with twice the prompts"
    return (
        *_about_algorithm_1(config, redrawn),
        _about_selection(config, redrawn),
        *_about_wider_searches(redrawn),
    )


def _about_algorithm_1(config, redrawn):
    paper = "A2 (2406.03768), figure 4 and appendix C.5, in our setting"
    groups = {
        "Algorithm 1": dict(
            prompts=config.validation,
            whose="A2's ",
            gains="table C.5: +.019 of score on average",
            wins="table C.5: 20 wins, 3 losses, 5 ties",
            revision="",
            redrawn=redrawn,
            more="",
        ),
        "patient": dict(
            prompts=config.more_validation,
            whose="",
            gains="",
            wins="",
            revision=ADDED,
            redrawn="",
            more=",\nmore prompts",
        ),
    }
    few_or_many = dict(
        words=lambda group: groups[group], revision="{revision}", redrawn="{redrawn}"
    )
    return (
        Statement(
            "gains",
            paper,
            "With {prompts} prompts to search with, {whose}Algorithm 1 improves our models",
            f"{GAIN}, {OVER_TASKS}",
            at_least=WORTHWHILE,
            note="{gains}",
            label="Algorithm 1{more}",
            sample=lambda g, group: g.gain(group),
            cells=grid("algorithm_gains more_prompts_gain", group=groups),
            message=f"With {config.validation} prompts to search with, and with "
            f"{config.more_validation}, A2's Algorithm 1 improves our models",
            **few_or_many,
        ),
        Statement(
            "wins",
            paper,
            "With {prompts} prompts to search with, Algorithm 1 improves our models clearly more "
            "often than it harms them",
            "wins less losses on test, as a share of the searches,",
            at_least=0.1,
            note="{wins}",
            label="wins less losses{more}",
            sample=lambda g, group: g.wins(group),
            cells=grid("algorithm_wins more_prompts_win", group=groups),
            message=f"With {config.validation} prompts to search with, and with "
            f"{config.more_validation}, Algorithm 1 improves our models clearly more often than it "
            "harms them",
            **few_or_many,
        ),
    )


def _about_selection(config, redrawn):
    few, many = config.validation, config.more_validation
    beyond = "the gain on validation less that on test"
    own = dict(revision="", redrawn=redrawn)
    pairs = {
        ("Algorithm 1", "none"): dict(
            sentence="Algorithm 1's gain on validation is in part won by selection",
            beyond=beyond,
            what="optimism,\nAlgorithm 1",
            **own,
        ),
        ("Algorithm 1", "patient"): dict(
            sentence="The more prompts Algorithm 1 searches with, the less of its gain is "
            "selection",
            beyond=f"{beyond}, with {few} prompts less with {many}",
            what="optimism,\nfew less more prompts",
            revision=ADDED,
            redrawn="",
        ),
        ("wide", "Algorithm 1"): dict(
            sentence="The more edits are tried, the more of the gain on validation is selection",
            beyond=f"{beyond}, for {WIDE} less for Algorithm 1",
            what="optimism, all layers\nless Algorithm 1",
            **own,
        ),
    }
    return Statement(
        "optimism",
        "derived here",
        "{sentence}",
        f"{{beyond}}, {OVER_TASKS}",
        at_least=0.0,
        revision="{revision}",
        redrawn="{redrawn}",
        label="{what}",
        sample=lambda g, group, other: g.selection(group) - g.selection(other),
        cells={
            "selection": dict(group="Algorithm 1", other="none"),
            "more_prompts_are_fairer": dict(group="Algorithm 1", other="patient"),
            "wider_is_more_optimistic": dict(group="wide", other="Algorithm 1"),
        },
        words=lambda group, other: pairs[group, other],
        message="The gain on validation is in part selection, the more so with fewer prompts and "
        "with more edits",
    )


def _about_wider_searches(redrawn):
    wider = {
        "wide": dict(
            paper="derived here",
            sentence="A search of all layers and modules finds better edits than Algorithm 1",
            compared=f"{WIDE} less that of Algorithm 1",
            label="all layers less\nAlgorithm 1",
        ),
        "composed": dict(
            paper="modelled on Sharma et al. (2312.13558)",
            sentence="Edits, one after the other, improve on the best single one",
            compared=f"the composition less that of the best edit of {WIDE}",
            label="composition less\none edit",
        ),
    }
    return (
        Statement(
            "wider",
            "{paper}",
            "{sentence}",
            f"{GAIN}, of {{compared}}, {OVER_TASKS}",
            at_least=0.0,
            redrawn=redrawn,
            label="{label}",
            sample=lambda g, group, other: g.difference(group, other),
            cells={
                "wider_gains_more": dict(group="wide", other="Algorithm 1"),
                "composition_gains_more": dict(group="composed", other="wide"),
            },
            words=lambda group, other: wider[group],
            message="A search of all layers and modules gains more than Algorithm 1, and a "
            "composition of edits more than the best of them",
        ),
        Statement(
            "mismatch",
            "derived here",
            "Clipping gains more on tasks our models were not trained for",
            f"{GAIN}, of {WIDE} on the other tasks less that on the trained one,",
            at_least=0.0,
            redrawn=redrawn,
            label="other tasks less\nas trained",
            sample=lambda g: g.mismatch(),
        ),
        Statement(
            "matched",
            "derived here",
            "On the task of training a search gains nothing to speak of",
            f"{GAIN}, of {WIDE},",
            at_most=WORTHWHILE,
            note="a loss is no gain either",
            redrawn=redrawn,
            label="all layers,\nas trained",
            sample=lambda g: g.matched.values,
        ),
    )
