"""What `bound_and_gap` judges: bounds beside gaps at the worst places of the grid, how well they
rank it, for each task, and how the bound, the risk and the gap change as a layer is clipped."""

from functools import cached_property, partial

import numpy as np

from experiments.clipping.bound_and_gap.config import GRID
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import best_elsewhere, spearman, worst
from lsa_lab.store import parts, results

PAPER = "A2 (2406.03768)"
THEOREM = f"{PAPER}, Theorem 2"
EXACT = 1e-9  # relative change that is none
PLACES = ("module", "layer")
CELLS = (*PLACES, "rank")
SIDES = {"truncation": "risk", "a random edit as large": "random_risk"}  # the risk after each
BEST_C = "at the c of C = cI that suits the statement best on the other runs"
MAY = f'{BEST_C}; A2 says that lower norms "may" lower the risk, and warns of lost expressive power'


class Bounds:
    """A result's bounds, gaps and rank correlations, [G] each."""

    def __init__(self, dataset):
        self.dataset = parts.part(dataset).transpose("group", *GRID, "update_noise")
        self.largest_loss = results.config_of(dataset).largest_loss
        self.clipped = Truncations(parts.part(dataset, "clipped"))

    def excess(self, bound, gap):
        return least(self.dataset[bound] - np.abs(self.dataset[gap]))

    def room(self):
        return least(self.largest_loss - least_bounds(self.dataset))

    @cached_property
    def everywhere(self):  # [G, c]
        return rank_correlations(self.dataset.bound, self.dataset.gap, GRID)

    def equal_n_correlation(self):
        bound, gap = self.dataset.bound, self.dataset.gap
        pairs = [(bound.sel(shots=[n]), gap.sel(shots=[n])) for n in gap.shots]
        return best_elsewhere(np.mean([rank_correlations(*pair, GRID) for pair in pairs], axis=0))

    def lead_over_counting(self):
        gap = self.dataset.gap
        count = (self.dataset.shots**-0.5).broadcast_like(gap).expand_dims("update_noise")
        return best_elsewhere(self.everywhere - rank_correlations(count, gap, GRID))


numbers = Bounds


class Truncations:
    """What every truncation of trained stacks does to the bound, the risk and the gap, [R] each."""

    def __init__(self, dataset):
        self.dataset = dataset.transpose("run", *CELLS, "update_noise", ...)
        self.bound_change = changes(self.dataset.bound)
        self.least_rank = self.dataset.bound.argmin("rank")  # the place on that axis
        self.dropped = len(self.dataset["rank"]) - 1

    @cached_property
    def falls(self):  # {edit: (run, c)}
        """The shares with a lower risk, of the truncations with a lower bound and of random edits
        which are as large."""
        lower = self.bound_change < -EXACT
        return {
            edit: (lower & (self.risk_change(edit) < 0)).sum(CELLS) / lower.sum(CELLS).clip(1)
            for edit in SIDES
        }

    @cached_property
    def lead(self):  # (run, c)
        return self.falls["truncation"] - self.falls["a random edit as large"]

    def share_of_falls(self, edit):
        """One of the shares, at the c at which the other runs differ most from random edits."""
        chosen = (self.lead.sum("run") - self.lead).argmax("update_noise")
        return self.falls[edit].isel(update_noise=chosen).values

    def risk_change(self, edit):
        risk = self.dataset[SIDES[edit]].isel(rank=slice(1, None))
        return risk / self.dataset.risk.isel(rank=0) - 1

    def correlation(self, loss):
        ranked = rank_correlations(self.dataset.bound, self.dataset[loss], ["rank"])
        return best_elsewhere(ranked.mean((1, 2)))

    def rise_at_drop(self):
        """What a layer's drop, through either matrix, adds to the gap."""
        gap = self.dataset.gap
        return (gap.isel(rank=-1) - gap.isel(rank=0)).mean("module").mean("layer").values


def least_share(cases, over) -> np.ndarray:  # (run, *over, c) -> [R]
    """A share of cases, at the c at which it is least on the other runs."""
    return -best_elsewhere(-cases.mean(over).values)


def least_bounds(dataset):  # -> (group, *GRID)
    """The least over c of a bound on the gap without noise, with c chosen on the other tasks:
    bound(c) + |change of the population risk by that noise| + |change of the empirical one|."""
    total = dataset.noisy_bound + dataset.noise_cost
    least = -best_elsewhere(-total.transpose("group", *GRID, "update_noise").values)
    return dataset.gap.transpose("group", *GRID).copy(data=least)


def rank_correlations(bound, loss, over):  # -> [..., c]
    """Spearman's correlations over some axes, of ten digits: the rest is rounding."""
    digits = np.vectorize(lambda value: float(f"{value:.9e}"))
    bounds = bound.stack(place=over).transpose(..., "update_noise", "place").values
    losses = loss.stack(place=over).transpose(..., "place").values
    over_places = np.vectorize(spearman, signature="(q),(q)->()", otypes=[float])
    return over_places(digits(bounds), digits(losses)[..., None, :])


def changes(values):  # (..., rank, ...) -> the same but for the full rank
    """What truncation changes, relative to the matrix whole."""
    return (values / values.isel(rank=0) - 1).isel(rank=slice(1, None))


def least(values) -> np.ndarray:  # [G, ...] -> [G]
    return worst(values, lambda groups: -groups.mean())


def statements(config) -> tuple[Statement, ...]:
    of_tasks = partial(
        Statement, over="tasks", redrawn="fresh tasks", revision="it was c = 0.01 alone"
    )
    ranked = partial(of_tasks, note="c is that which ranks best on the other tasks, for all places")
    of_runs = partial(
        Statement,
        note=BEST_C,
        revision="it was c = 0.01",
        redrawn="16 fresh runs, 10 before, with four times the prompts",
    )
    reading = "our reading, in our setting"
    share = "the share of matrices, layers and ranks"
    return (
        of_tasks(
            "above",
            f"{THEOREM} and Assumption 1, {reading}",
            "With noise as large as the spread of the updates the bound lies above descent's gap",
            "bound - |gap| at the worst place of the grid",
            at_least=0.0,
            note="c_t is the spread of G_t over the prompts of a task, tr Cov / e², as "
            "Assumption 1 has it",
            sample=lambda b: b.excess("spread_bound", "gap"),
        ),
        of_tasks(
            "above_with_noise",
            f"{THEOREM}, as stated",
            "The bound lies above the gap of descent that has the noise assumed, whatever its c",
            "bound - |gap| at the worst c and place of the grid",
            at_least=0.0,
            note="the updates are those of the noisy path; a mean stands inside the logarithm",
            revision="it was c = 0.01 alone, with the updates of the path without noise",
            sample=lambda b: b.excess("noisy_bound", "noisy_gap"),
        ),
        of_tasks(
            "says_something",
            f"modelled on {THEOREM}",
            "The least bound over c on the gap of descent without noise is below the largest loss "
            f"{config.largest_loss:g}, which bounds every gap",
            "the largest loss less the least over c of the sum of the bound and of what the noise "
            "changes in the two risks, at the worst place of the grid,",
            at_least=0.0,
            note="the bound at c holds with that noise; c is chosen on the other tasks",
            sample=lambda b: b.room(),
        ),
        ranked(
            "ranks",
            f"{THEOREM} and Remark 4, {reading}",
            "The bound ranks depths, numbers of demonstrations and noises as the gap does, at the "
            "best c",
            "Spearman's correlation over the whole grid",
            at_least=0.5,
            sample=lambda b: best_elsewhere(b.everywhere),
        ),
        ranked(
            "ranks_at_equal_n",
            f"{THEOREM} and Remark 4, {reading}",
            "Where n is the same the bound ranks depths and noises as the gap does, at the best c",
            "Spearman's correlation at equal n, averaged over n,",
            at_least=0.5,
            sample=lambda b: b.equal_n_correlation(),
        ),
        ranked(
            "better_than_counting",
            "derived here",
            "The bound ranks the grid at least as well as 1/√n alone, at the best c",
            "the paired difference of the rank correlations",
            at_least=0.0,
            sample=lambda b: b.lead_over_counting(),
        ),
        of_runs(
            "bound_falls",
            f"{PAPER}, Remark 6 and Theorem 2, {reading}",
            "Truncating w_kq or w_pv of a trained stack lowers the bound of Theorem 2",
            f"{share} at which it rises",
            at_most=0.05,
            sample=lambda b: least_share(b.clipped.bound_change > EXACT, CELLS),
        ),
        of_runs(
            "risk_falls_with_it",
            f"{PAPER}, Remark 4, {reading}",
            "Where truncation lowers the bound, it lowers the risk more often than random edits "
            "that are as large",
            f"{share} with a lower bound in which the risk is lower, less that of random edits,",
            at_least=0.0,
            sample=lambda b: best_elsewhere(b.clipped.lead.values),
            note=MAY,
            revision="less that of random edits; it was the share",
            redrawn="",
        ),
        of_runs(
            "falls_with_the_bound",
            "derived here",
            "Where truncation lowers the bound, {edit} lowers the risk",
            f"{share} with a lower bound in which the risk is lower after {{edit}}",
            unjudged="the two sides of risk_falls_with_it",
            sample=lambda b, edit: b.clipped.share_of_falls(edit),
            cells=grid("truncation_lowers_risk random_lowers_risk", edit=SIDES),
            message="Where truncation lowers the bound, it lowers the risk at times, and so do "
            "random edits that are as large",
            revision="added",
            redrawn="",
        ),
        of_runs(
            "ranks_kept",
            f"{THEOREM} and Remark 4, {reading}",
            "Over the ranks kept the bound and the {loss} fall together",
            "Spearman's correlation over the ranks kept, averaged over matrices and layers,",
            at_least=0.5,
            sample=lambda b, loss: b.clipped.correlation(loss),
            cells=grid("ranks_risks ranks_gaps", loss=("risk", "gap")),
            message="Over the ranks kept the bound falls together with the risk and with the "
            "generalisation gap",
            note=MAY,
        ),
        of_runs(
            "least_when_dropped",
            f"{PAPER}, appendix B.6, {reading}",
            "The bound is least where the layer is dropped",
            "the share of matrices and layers in which it is not",
            at_most=0.05,
            sample=lambda b: least_share(b.clipped.least_rank < b.clipped.dropped, PLACES),
        ),
        Statement(
            "gap_least_when_dropped",
            f"{PAPER}, appendix B.6, {reading}",
            "On average a layer dropped makes the generalisation gap no larger",
            "the gap when dropped - the gap unclipped, averaged over layers,",
            at_most=0.0,
            note='A2 says that it "may be the best option for generalization error"',
            revision="four times the prompts, for it was undecided",
            redrawn="16 fresh runs, 10 before",
            sample=lambda b: b.clipped.rise_at_drop(),
        ),
    )
