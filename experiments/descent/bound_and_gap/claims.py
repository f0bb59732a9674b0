"""What `bound_and_gap` judges: bounds beside gaps at the worst places of the grid, and how well
they rank it, for each task."""

from functools import cached_property

import numpy as np

from experiments.descent.bound_and_gap.config import GRID
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import best_elsewhere, spearman, worst
from lsa_lab.store import results

THEOREM = "A2 (2406.03768), Theorem 2"
OUR_READING = f"{THEOREM} and Assumption 1, our reading, in our setting"
BEST = "c is free: of all c that which ranks best on the other tasks, one for the whole grid"
SPREAD = "c_t is the spread of G_t over the prompts of a task, tr Cov / e², as Assumption 1 has it"
ALONE = "it was c = 0.01 alone"


def numbers(dataset) -> "Bounds":
    return Bounds(dataset)


class Bounds:
    """A result's bounds, gaps and rank correlations, [G] each."""

    def __init__(self, dataset):
        self.dataset = dataset.transpose("group", *GRID, "update_noise")
        self.largest_loss = results.config_of(dataset).largest_loss

    def above(self, bound, gap):
        return _least(self.dataset[bound] - np.abs(self.dataset[gap]))

    def below_losses(self, c):
        spread = c == "spread"
        bound = self.dataset.spread_bound if spread else least_bounds(self.dataset)
        return _least(self.largest_loss - bound)

    @cached_property
    def correlations(self):  # {c: {name: [G, c]}}
        bounds = {"best": "bound", "spread": "spread_bound"}
        return {c: rank_correlations(self.dataset, name) for c, name in bounds.items()}

    def rank(self, name, c):
        values = self.correlations[c][name]
        return values[:, 0] if c == "spread" else best_elsewhere(values)


def least_bounds(dataset):  # -> (group, *GRID)
    """The least over c of a bound on the gap without noise, with c chosen on the other tasks:
    bound(c) + |change of the population risk by that noise| + |change of the empirical one|."""
    total = dataset.noisy_bound + dataset.noise_cost
    axes = ("group", *GRID)
    return dataset.gap.transpose(*axes).copy(
        data=-best_elsewhere(-total.transpose(*axes, "update_noise").values)
    )


def rank_correlations(dataset, name) -> dict[str, np.ndarray]:  # {id: [G, c]}, one c for the spread
    """Spearman's correlation of the bound and the gap over the whole grid, at equal n averaged over
    n, and what the first has over that of 1/√n."""
    bound = dataset[name]
    if "update_noise" not in bound.dims:
        bound = bound.expand_dims("update_noise")
    everywhere = _agreement(bound, dataset.gap)
    parts = [_agreement(bound.sel(shots=[n]), dataset.gap.sel(shots=[n])) for n in bound.shots]
    count = (dataset.shots**-0.5).broadcast_like(dataset.gap).expand_dims("update_noise")
    return {
        "ranks": everywhere,
        "ranks_at_equal_n": np.mean(parts, axis=0),
        "better_than_counting": everywhere - _agreement(count, dataset.gap),
    }


def _agreement(bound, gap) -> np.ndarray:  # [G, c]
    bounds = bound.stack(place=GRID).transpose("group", "update_noise", "place").values
    gaps = gap.stack(place=GRID).transpose("group", "place").values
    rows = zip(bounds, gaps, strict=True)
    return np.array([[spearman(each, gap) for each in group] for group, gap in rows])


def _least(values) -> np.ndarray:  # [G, ...] -> [G]
    return worst(values, lambda groups: -groups.mean())


def statements(config) -> tuple[Statement, ...]:
    return (*about_the_height(config), *about_the_order())


def about_the_height(config) -> tuple[Statement, ...]:
    positive = dict(at_least=0.0, over="tasks", redrawn="fresh tasks")
    return (
        Statement(
            "above",
            OUR_READING,
            "With noise as large as the spread of the updates the bound lies above descent's gap",
            "bound - |gap| at the worst place of the grid",
            note=SPREAD,
            revision=f"{ALONE}, which was ours",
            label="bound, c = spread, less |gap|",
            sample=lambda c: c.above("spread_bound", "gap"),
            **positive,
        ),
        Statement(
            "above_with_noise",
            f"{THEOREM}, as stated",
            "The bound lies above the gap of descent that has the noise assumed, whatever its c",
            "bound - |gap| at the worst c and place of the grid",
            note="the updates are those of the noisy path; a mean stands inside the logarithm",
            revision=f"{ALONE}, with the updates of the path without noise",
            label="bound less noisy |gap|, worst c",
            sample=lambda c: c.above("noisy_bound", "noisy_gap"),
            **positive,
        ),
        Statement(
            "below_losses",
            "{source}",
            f"{{subject}} is below the largest loss {config.largest_loss:g}, which bounds every "
            "gap",
            "largest loss - {height}",
            note="{note}",
            revision="{revision}",
            label="largest loss less {label}",
            sample=lambda bounds, c: bounds.below_losses(c),
            cells=grid("says_something says_something_by_spread", c=("best", "spread")),
            words=lambda c: {
                "best": dict(
                    source=f"modelled on {THEOREM}",
                    subject="The least bound over c on the gap of descent without noise",
                    height="least of (bound + what the noise changes in the two risks), where that "
                    "is smallest",
                    note="the bound at c holds with that noise; c is chosen on the other tasks",
                    revision=ALONE,
                    label="least bound",
                ),
                "spread": dict(
                    source=OUR_READING,
                    subject="With noise as large as the spread of the updates the bound",
                    height="bound where the bound is largest",
                    note=SPREAD,
                    revision="added",
                    label="bound, c = spread",
                ),
            }[c],
            message="The bound, the least over c or with noise as large as the spread of the "
            f"updates, is below the largest loss {config.largest_loss:g}, which bounds every gap",
            **positive,
        ),
    )


def about_the_order() -> tuple[Statement, ...]:
    source = f"{THEOREM} and Remark 4, our reading, in our setting"
    c = ("best", "spread")
    chosen = {
        "best": dict(how="at the best c", note=BEST, revision=ALONE, aside=""),
        "spread": dict(
            how="with noise as large as its spread",
            note=SPREAD,
            revision="added",
            aside=", c = spread",
        ),
    }
    common = dict(
        over="tasks",
        note="{note}",
        revision="{revision}",
        redrawn="fresh tasks",
        words=lambda c: chosen[c],
    )
    return (
        Statement(
            "ranks_the_grid",
            source,
            "The bound ranks depths, numbers of demonstrations and noises as the gap does, {how}",
            "Spearman's correlation over the whole grid",
            at_least=0.5,
            label="whole grid{aside}",
            sample=lambda bounds, c: bounds.rank("ranks", c),
            cells=grid("ranks ranks_by_spread", c=c),
            message="At the best c, and with noise as large as its spread, the bound ranks depths, "
            "numbers of demonstrations and noises as the gap does",
            **common,
        ),
        Statement(
            "ranks_where_n_is_equal",
            source,
            "It ranks depths and noises as the gap does where n is the same, {how}",
            "Spearman's correlation at equal n, averaged over n,",
            at_least=0.5,
            label="at equal n{aside}",
            sample=lambda bounds, c: bounds.rank("ranks_at_equal_n", c),
            cells=grid("ranks_at_equal_n ranks_at_equal_n_by_spread", c=c),
            message="At the best c, and with noise as large as its spread, the bound ranks depths "
            "and noises as the gap does where n is the same",
            **common,
        ),
        Statement(
            "counting",
            "derived here",
            "The bound ranks the grid at least as well as 1/√n alone, {how}",
            "the paired difference of the rank correlations",
            at_least=0.0,
            label="less that of 1/√n{aside}",
            sample=lambda bounds, c: bounds.rank("better_than_counting", c),
            cells=grid("better_than_counting better_than_counting_by_spread", c=c),
            message="At the best c, and with noise as large as its spread, the bound ranks the "
            "grid at least as well as 1/√n alone",
            **common,
        ),
    )
