"""What `clipping_search` judges: gains on the prompts that a search has, and on others."""

from functools import partial

import numpy as np

from experiments.clipping.clipped_models import CUT, PARTS, WORTHWHILE, fresh_prompts
from experiments.clipping.clipping_search.config import ALGORITHM, TASKS, TRAINED, WIDE
from lsa_lab.judging.statements import Statement, grid

PAPER = "A2 (2406.03768), figure 4 and appendix C.5, in our setting"
GAIN = "the gain on test, relative to the unclipped risk,"


class Gains:
    """What searches and the rival gain, as shares of the unclipped risk."""

    def __init__(self, dataset):
        self.test, self.scaled = dataset.test_gain, dataset.scaled_gain  # (task, search, run)
        self.optimism = (dataset.validation_gain - self.test).mean("task")
        self.algorithm = self.test.sel(search=list(ALGORITHM))
        # Of the two parts that which gains more on validation.
        first = dataset.validation_gain.sel(search=list(ALGORITHM)).argmax("search")
        self.better = self.algorithm.isel(search=first)  # (task, run)

    def selection(self, wide):  # [R]
        """What Algorithm 1 gains on validation beyond test, or the wide search beyond it."""
        own = self.optimism.sel(search=list(ALGORITHM)).mean("search")
        return (self.optimism.sel(search=WIDE) - own if wide else own).values


numbers = Gains


def statements(config) -> tuple[Statement, ...]:
    cut = partial(Statement, revision=CUT, redrawn=fresh_prompts(config))
    by_task = partial(cut, revision=f"by task and part; it was the mean over all; {CUT}")
    return (
        by_task(
            "gain",
            PAPER,
            f"With {config.validation} prompts to search with, A2's Algorithm 1 on the {{part}} "
            "improves our models: {task}",
            GAIN,
            at_least=WORTHWHILE,
            note="table C.5: +.019 of score on average",
            sample=lambda g, part, task: (
                g.test.sel(search=f"Algorithm 1, {part}", task=task).values
            ),
            cells=grid(
                "attention_as_trained attention_no_noise attention_more_noise "
                "attention_fewer_shots attention_smaller_inputs attention_larger_inputs "
                "attention_sparse_weights mlp_as_trained mlp_no_noise mlp_more_noise "
                "mlp_fewer_shots mlp_smaller_inputs mlp_larger_inputs mlp_sparse_weights",
                part=PARTS,
                task=TASKS,
            ),
            message="A2's Algorithm 1 improves the attention or the MLP of our models",
        ),
        by_task(
            "algorithm_gains",
            PAPER,
            "A2's Algorithm 1 improves our models on most tasks",
            f"the share of tasks and parts in which it gains {WORTHWHILE:g} of the risk or more",
            at_least=0.5,
            note="the mean over tasks, which was judged before, is that of larger inputs",
            sample=lambda g: (g.algorithm >= WORTHWHILE).mean(("task", "search")).values,
        ),
        cut(
            "algorithm_wins",
            PAPER,
            "Algorithm 1 improves our models clearly more often than it harms them",
            "wins less losses on test, as a share of the searches,",
            at_least=0.1,
            note="table C.5: 20 wins, 3 losses, 5 ties",
            sample=lambda g: np.sign(g.algorithm).mean(("task", "search")).values,
        ),
        Statement(
            "scaled_answers",
            "derived here",
            "On most tasks one searched number times the answer gains as much as Algorithm 1",
            f"the share of tasks in which it gains at most {WORTHWHILE:g} less than Algorithm 1 on "
            "the part that gains more on validation",
            at_least=0.5,
            note="the null of Algorithm 1: a rival that edits no weight",
            revision="added; a row for each task was undecided in four of seven",
            sample=lambda g: (g.scaled >= g.better - WORTHWHILE).mean("task").values,
        ),
        Statement(
            "no_edit",
            "derived here",
            "On most tasks no edit at all gains as much as Algorithm 1",
            f"the share of tasks in which Algorithm 1 gains {WORTHWHILE:g} or less on the part "
            "that gains more on validation",
            unjudged="a null for scaled_answers, whose number may be one",
            revision="added",
            sample=lambda g: (g.better <= WORTHWHILE).mean("task").values,
        ),
        cut(
            "matched",
            "derived here",
            "On the task of training a search of all layers and modules gains nothing to speak of",
            GAIN,
            at_most=WORTHWHILE,
            note="a loss is no gain either",
            sample=lambda g: g.test.sel(search=WIDE, task=TRAINED).values,
        ),
        cut(
            "optimism",
            "derived here",
            "The gain on validation is in part won by selection: {search}",
            "the gain on validation less that on test, averaged over tasks, of Algorithm 1, and by "
            "how much it is larger for a search of all layers and modules,",
            at_least=0.0,
            sample=lambda g, search: g.selection(search != "Algorithm 1"),
            cells=grid(
                "selection wider_is_more_optimistic",
                search=("Algorithm 1", "how much more by a wide search"),
            ),
            message="The gain on validation is in part won by selection, the more so with more "
            "edits",
        ),
    )
