"""What `whitened_matching` judges: gaps and errors after whitened matching over its rivals'."""

from functools import partial

import numpy as np

from experiments.matching.whitened_matching.config import (
    CASES,
    MATCHING,
    RIVALS,
    directions,
    served_dims,
)
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import spearman, worst_elsewhere
from lsa_lab.store import results

WHITE, PLAIN, SCALED = MATCHING
A3 = "modelled on A3 (2506.04579), its method"
LOOKED = "added after a look at other runs"
OVER_PLAIN = "over that after plain matching"
WORST = "at the d that is worst for the other runs"


class Ratios:
    """Gaps and errors after whitened matching over those of a rival, at a depth of descent."""

    def __init__(self, dataset):
        self.config, self.dataset = results.config_of(dataset), dataset.transpose("run", ...)
        self.depth, self.deepest = self.config.depth, max(self.config.depths)
        self.served = served_dims(self.config)

    def knee(self, rule):  # [R]
        gap = self.dataset.used_gap.sel(depth=self.depth, matched=rule)
        return (gap.sel(used=self.config.d + 1) / gap.sel(used=self.config.d)).values

    def gap(self, rival, depth, dims):  # [run, d]
        return ratio(self.dataset.d_gap.sel(d=dims, depth=depth), rival)

    def worst(self, rival, depth, dims=None):  # [R], None without dims
        """The ratio at that d which is worst for the other runs, by default of those served."""
        dims = self.served if dims is None else list(dims)
        return worst_elsewhere(self.gap(rival, depth, dims).values) if dims else None

    def mean(self, rival, depth):  # [R], None without dims
        if self.served:
            return np.exp(np.log(self.gap(rival, depth, self.served)).mean("d")).values

    def few(self):  # [R], None without sizes
        sizes = [n for n in self.config.sizes if n <= directions(self.config.d)]
        gap = self.dataset.n_gap.sel(n=sizes, depth=self.depth)
        return worst_elsewhere(ratio(gap, PLAIN).values) if sizes else None

    def error(self, case):  # [R]
        return ratio(self.dataset.case_error.sel(depth=self.deepest), PLAIN).sel(case=case).values

    def ranks(self):  # [R]
        """Spearman's correlation of whitened objectives and gaps, less that of plain ones."""
        gaps = self.dataset.random_gap.sel(depth=self.depth).values
        white, plain = (self.dataset.objective.sel(matched=rule).values for rule in (WHITE, PLAIN))
        rows = zip(white, plain, gaps, strict=True)
        return np.array([spearman(w, gap) - spearman(p, gap) for w, p, gap in rows])

    def bound(self):  # [R]
        return (self.dataset.bound / self.dataset.distance).sel(depth=self.deepest).values


numbers = Ratios


def ratio(values, rival):
    """Gaps or errors of whitened matching over those of a rival."""
    axis = "rule" if "rule" in values.dims else "few_rule"
    return values.sel({axis: WHITE}) / values.sel({axis: rival})


def statements(config) -> tuple[Statement, ...]:
    median = partial(Statement, statistic="median", redrawn=f"{config.runs} fresh runs, 16 before")
    deepest, widest = max(config.depths), max(config.dims)
    gap, deep_gap = f"the gap of {config.depth} layers", f"the gap of {deepest} layers"
    return (
        median(
            "knee",
            "derived here",
            "{named} matching has a knee at d + 1 checkpoints",
            f"{gap} with d + 1 checkpoints over that with d,",
            at_most=0.5,
            sample=lambda r, matching: r.knee(WHITE if matching == "whitened" else PLAIN),
            cells=grid("knee_whitened knee_plain", matching=("whitened", "plain")),
            words=lambda matching: dict(named=matching.capitalize()),
            message="Whitened matching and plain matching have a knee at d + 1 checkpoints",
        ),
        median(
            "nearer",
            A3,
            "Whitened matching comes nearer to the pool than plain matching, as far as "
            "demonstrations outnumber directions",
            f"{gap} {OVER_PLAIN}, {WORST}",
            at_most=0.5,
            sample=lambda r: r.worst(PLAIN, r.depth),
        ),
        median(
            "nearer_deep",
            A3,
            "The same for a deep descent",
            f"{deep_gap} {OVER_PLAIN}, {WORST}",
            at_most=0.5,
            sample=lambda r: r.worst(PLAIN, r.deepest),
        ),
        median(
            "nearer_shallow",
            A3,
            "The same for a single layer",
            f"the gap of one layer {OVER_PLAIN}, {WORST}",
            at_most=1.0,
            sample=lambda r: r.worst(PLAIN, min(r.config.depths)),
        ),
        median(
            "beyond",
            A3,
            "With more directions than demonstrations it comes no less near",
            f"{gap} {OVER_PLAIN}, d = {widest}",
            at_most=1.0,
            sample=lambda r: r.gap(PLAIN, r.depth, widest).values,
        ),
        median(
            "few",
            A3,
            "With fewer demonstrations than directions it comes no less near",
            f"{gap} {OVER_PLAIN}, at the worst n of the other runs",
            at_most=1.0,
            sample=lambda r: r.few(),
        ),
        median(
            "scaled",
            "derived here",
            "It is not the units of each entry: whitening is more than scaling",
            f"{gap} over that after matching of gradients whose entries have one size, {WORST}",
            at_most=0.5,
            sample=lambda r: r.worst(SCALED, r.depth),
        ),
        median(
            "scaled_deep",
            "derived here",
            "Whitening is no worse than scaling for a deep descent",
            f"{deep_gap} over that after matching of scaled gradients, geometric mean over d",
            at_most=1.0,
            revision=LOOKED,
            sample=lambda r: r.mean(SCALED, r.deepest),
        ),
        median(
            "over_rival",
            "derived here",
            "Whitened matching comes nearer to the pool than {rival} subsets, at any d",
            f"{gap} over that after {{rival}} ones, {WORST}",
            at_most=0.5,
            sample=lambda r, rival: r.worst(rival, r.depth, r.config.dims),
            cells=grid("over_k_means over_determinantal over_random over_stratified", rival=RIVALS),
            message="Whitened matching comes nearer to the pool than subsets of any of four "
            "rivals, at any d",
        ),
        median(
            "error",
            "derived here",
            "Whitened matching teaches no worse than plain matching: {pool}",
            f"the error of {deepest} layers {OVER_PLAIN}",
            at_most=1.05,
            sample=lambda r, pool: r.error(pool),
            cells=grid(
                "case_usual case_noisy_labels case_wrong_labels case_heavy_tails "
                "case_nearly_singular case_shifted_queries case_two_tasks case_a_task_each "
                "case_two_classes case_signs",
                pool=CASES,
            ),
            message="Whitened matching teaches no worse than plain matching in ten kinds of pools",
        ),
        median(
            "bound",
            "derived here",
            "The bound on the gap of the deep descent is less than ten times the gap",
            "the bound over the distance of the learned weights",
            at_most=10.0,
            sample=lambda r: r.bound(),
        ),
        median(
            "ranks",
            "derived here",
            "The whitened objective tells near subsets from far ones better than the plain one",
            "Spearman's correlation of objective and gap over random subsets, less that of the "
            "plain objective,",
            at_least=0.0,
            sample=lambda r: r.ranks(),
        ),
    )
