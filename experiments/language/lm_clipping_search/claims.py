"""What `lm_clipping_search` judges: what searches gain on validation and on fresh sentences."""

from functools import cached_property

import numpy as np

from experiments.language.language_config import redrawn
from experiments.language.lm_clipping_search.config import ALGORITHM, WIDE
from lsa_lab.judging.statements import Statement, grid

ADDED = "added to these runs: beside Algorithm 1, which gains less, alone"
ALGORITHM_1 = dict(searched="Algorithm 1", over="parts and data sets")
MORE_LAYERS = dict(searched=f"a search of {WIDE}", over="data sets")


def numbers(dataset) -> "Gains":
    return Gains(dataset)


class Gains:
    """What searches and their rivals gain."""

    def __init__(self, dataset):
        self.dataset = dataset

    @cached_property
    def test(self):  # (task, run, search, reading)
        """Clipped less unclipped on fresh sentences."""
        return self.dataset.clipped - self.dataset.unclipped

    @cached_property
    def rivals(self):  # {name: (task, run)}
        """The accuracies that rivals to clipping gain."""
        base = self.dataset.unclipped.sel(reading="accuracy")
        fitted = self.dataset.unclipped.sel(reading="fitted")
        return {"calibrated": self.dataset.calibrated - base, "threshold fitted": fitted - base}

    @cached_property
    def optimism(self):  # (task, run, search)
        return self.dataset.validation_gain - self.test.sel(reading="accuracy")

    def gain(self, search, reading="accuracy"):  # (task, run)
        return _of_search(self.test.sel(reading=reading), search)

    def wins(self):  # (task, run)
        return _of_search(np.sign(self.test.sel(reading="accuracy")), "algorithm")


def _of_search(values, search):
    """The values of the wider search, or the mean of both parts of Algorithm 1."""
    if search == "wider":
        return values.sel(search=WIDE)
    return values.sel(search=list(ALGORITHM)).mean("search")


def averaged(values):  # (task, run) -> [R]
    return values.mean("task").values


def statements(config) -> tuple[Statement, ...]:
    titles = " and ".join(task.title for _, task in config.tasks)
    where = f"{config.model_name}, on {titles}"
    paper, ours = "A2 (2406.03768), figure 4 and appendix C.5, in our setting", "derived here"
    these, fresh = dict(over="sets of demonstrations"), redrawn(config, 9)
    sets = these | dict(redrawn=fresh)
    gain, optimism = "the gain of accuracy on test", "the gain on validation less that on test"
    gains = {
        "algorithm": dict(
            source=paper,
            edit="A2's Algorithm 1",
            over="parts and data sets",
            note="table C.5: +.019 of score on average",
            revision="",
            redrawn=fresh,
            label="Algorithm 1",
        ),
        "wider": dict(
            source="A2 (2406.03768), figure 1 (i), our reading, in our setting",
            edit=f"the edit that a search of {WIDE} chooses",
            over="data sets",
            note="an edit for each set; `lm_clipping` judges one edit for all sets",
            revision=ADDED,
            redrawn="",
            label="more layers",
        ),
    }
    readings = {
        "auc": dict(
            nothing=f"the edit that a search of {WIDE} chooses does not tell the classes apart "
            "better",
            measured="AUC on test, clipped less unclipped",
            label="AUC, more layers",
        ),
        "fitted": dict(
            nothing="where each model has its threshold fitted, the clipped one gains nothing to "
            "speak of",
            measured=f"accuracy on test at the fitted threshold, chosen by a search of {WIDE} less "
            "unclipped",
            label="more layers,\nboth at their threshold",
        ),
    }
    free = "contextual calibration"
    rivals = {
        ("threshold fitted", "wider"): MORE_LAYERS
        | dict(
            rival="a threshold fitted on the same validation sentences",
            less="by the threshold less by the search",
            revision="",
            redrawn=fresh,
            label="threshold less more layers",
        ),
        ("calibrated", "algorithm"): ALGORITHM_1
        | dict(
            rival=f"{free}, which needs no label,",
            less="by calibration less by Algorithm 1",
            revision="",
            redrawn=fresh,
            label="calibrated less Algorithm 1",
        ),
        ("calibrated", "wider"): MORE_LAYERS
        | dict(
            rival=free,
            less="by calibration less by the search",
            revision=ADDED,
            redrawn="",
            label="calibrated less more layers",
        ),
    }
    return (
        Statement(
            "gains",
            "{source}",
            f"{where}: {{edit}} improves accuracy",
            f"{gain}, averaged over {{over}},",
            at_least=0.01,
            note="{note}",
            revision="{revision}",
            redrawn="{redrawn}",
            label="{label}",
            sample=lambda g, search: averaged(g.gain(search)),
            cells=grid("algorithm_gains wider_gains", search=gains),
            words=lambda search: gains[search],
            message=f"{where}: A2's Algorithm 1 improves accuracy, and so does a search of {WIDE}",
            **these,
        ),
        Statement(
            "algorithm_wins",
            paper,
            f"{where}: it improves accuracy clearly more often than it harms",
            "wins less losses on test, as a share of the searches,",
            at_least=0.1,
            note="table C.5: 20 wins, 3 losses, 5 ties",
            label="wins less losses",
            sample=lambda g: averaged(g.wins()),
            **sets,
        ),
        Statement(
            "algorithm_auc",
            ours,
            f"{where}: what it chooses, which may be no edit, tells the classes apart as the "
            "unclipped model does",
            "AUC on test, clipped less unclipped, averaged over parts and data sets,",
            margin=0.01,
            note="where it chooses no edit the difference is 0",
            label="AUC, Algorithm 1",
            sample=lambda g: averaged(g.gain("algorithm", "auc")),
            **sets,
        ),
        Statement(
            "selection",
            ours,
            f"{where}: its gain on validation is in part won by selection",
            f"{optimism}, averaged over parts and data sets,",
            at_least=0.0,
            label="optimism, Algorithm 1",
            sample=lambda g: averaged(_of_search(g.optimism, "algorithm")),
            **sets,
        ),
        Statement(
            "wider_gains_more",
            ours,
            f"{where}: a search of {WIDE} finds better edits",
            f"{gain}, of {WIDE} less that of Algorithm 1, averaged over data sets,",
            at_least=0.0,
            label="more layers less Algorithm 1",
            sample=lambda g: averaged(g.gain("wider") - g.gain("algorithm")),
            **sets,
        ),
        Statement(
            "wider_is_more_optimistic",
            ours,
            f"{where}: a search of {WIDE} promises more than it keeps by a larger amount",
            f"{optimism}, of {WIDE} less that of Algorithm 1, averaged over data sets,",
            at_least=0.0,
            note="an amount; as a share of the gain on validation it is another question",
            label="optimism, more layers\nless Algorithm 1",
            sample=lambda g: averaged(
                _of_search(g.optimism, "wider") - _of_search(g.optimism, "algorithm")
            ),
            **sets,
        ),
        Statement(
            "beyond_the_threshold",
            ours,
            f"{where}: {{nothing}}",
            "{measured}, averaged over data sets,",
            at_most=0.01,
            label="{label}",
            sample=lambda g, reading: averaged(g.gain("wider", reading)),
            cells=grid("wider_auc beside_a_threshold", reading=readings),
            words=lambda reading: readings[reading],
            message=f"{where}: the edit that a search of {WIDE} chooses improves neither the AUC "
            "nor the accuracy at a fitted threshold",
            **sets,
        ),
        Statement(
            "rivals",
            ours,
            f"{where}: {{rival}} gains as much as {{searched}}",
            f"{gain}, {{less}}, averaged over {{over}},",
            at_least=-0.01,
            revision="{revision}",
            redrawn="{redrawn}",
            label="{label}",
            sample=lambda g, rival, search: averaged(g.rivals[rival] - g.gain(search)),
            cells=grid(
                "- threshold calibration calibration_wider",
                rival=("threshold fitted", "calibrated"),
                search=("algorithm", "wider"),
            ),
            words=lambda rival, search: rivals[rival, search],
            message=f"{where}: it is asked of contextual calibration and of a fitted threshold "
            "whether they gain as much as searches for an edit",
            **these,
        ),
    )
