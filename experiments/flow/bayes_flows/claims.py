"""What `bayes_flows` judges.

It was fixed before the first run. Known were the committed stacks of `many_shot_flow`, and losses
of a trial of the training; flows of these stacks had not been looked at.
"""

from functools import partial

import numpy as np

from experiments.flow.bayes_flows.config import PRIORS, name
from experiments.models.specs import KERNELS
from lsa_lab.judging.statements import Statement, grid, having
from lsa_lab.judging.statistics import spearman
from lsa_lab.store import parts, results

NEAR = 0.1  # the excess risk over the Bayes rule's, as a part of its risk, of a stack that is near
BAND = 0.1  # how far from 1 a disparity over the Bayes rule's may be
RISING = 0.8  # the rank correlation of layers and correlations: of four layers two neighbours swap
SLOPE = 0.05  # the change for each doubling of depth that counts as none
DEGREE = 3.0  # the effective degree, of at most 3^L - 1
SMALL = 0.5  # a change of the log ratio up to which it is left as it is
OWN = "derived here"
DEPTHS = (1, 2, 4, 8)
THEOREM = f'{OWN}, docs/theory, "Near in risk, near in flow"'
# The ids of the rows by kernel, prior and depth.
ENDS = """
linear_dense_1_ends linear_dense_2_ends linear_dense_4_ends linear_dense_8_ends
linear_sparse_1_ends linear_sparse_2_ends linear_sparse_4_ends linear_sparse_8_ends
softmax_dense_1_ends softmax_dense_2_ends softmax_dense_4_ends softmax_dense_8_ends
softmax_sparse_1_ends softmax_sparse_2_ends softmax_sparse_4_ends softmax_sparse_8_ends
"""
NO_FURTHER = """
linear_dense_1_no_further linear_dense_2_no_further linear_dense_4_no_further
linear_dense_8_no_further linear_sparse_1_no_further linear_sparse_2_no_further
linear_sparse_4_no_further linear_sparse_8_no_further softmax_dense_1_no_further
softmax_dense_2_no_further softmax_dense_4_no_further softmax_dense_8_no_further
softmax_sparse_1_no_further softmax_sparse_2_no_further softmax_sparse_4_no_further
softmax_sparse_8_no_further
"""
RISES = """
linear_dense_2_rises linear_dense_4_rises linear_dense_8_rises linear_sparse_2_rises
linear_sparse_4_rises linear_sparse_8_rises softmax_dense_2_rises softmax_dense_4_rises
softmax_dense_8_rises softmax_sparse_2_rises softmax_sparse_4_rises softmax_sparse_8_rises
"""
DEGREES = """
linear_1_degree linear_2_degree linear_4_degree linear_8_degree softmax_1_degree
softmax_2_degree softmax_4_degree softmax_8_degree
"""


class Flows:
    """A result's stacks beside the Bayes rule, [R, P] by run and place on the path of training."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)

    def excess(self, kernel, prior, depth):  # -> [R, P]
        """E (ŷ - Bayes)² over the risk of the Bayes rule."""
        gap = self._gap(kernel, prior, depth)
        return (gap.sel(square="answers") / gap.sel(square="error").mean()).values

    def end(self, kernel, prior, depth):  # -> [R, P]
        """The last layer's disparity over the Bayes rule's."""
        values = self._values("disparity", kernel, prior, depth)
        return values[..., -2] / values[..., -1]

    def agreement(self, kernel, prior, depth):  # -> [R, P, L]
        return self._values("agreement", kernel, prior, depth)

    def once_near(self, kernel, prior, depth):  # -> [R], or None: some run never comes near
        """The end's disparity over the Bayes rule's where a run first is near it in risk."""
        near = self.excess(kernel, prior, depth) <= NEAR
        if not near.any(axis=1).all():
            return None
        return self.end(kernel, prior, depth)[np.arange(len(near)), near.argmax(axis=1)]

    def last(self, kernel, prior, depth):  # -> [R]
        return self.end(kernel, prior, depth)[:, -1]

    def rise(self, kernel, prior, depth):  # -> [R]
        """Spearman's correlation of the layer with the correlation of its log flows with the Bayes
        rule's, at the end of the training."""
        last = self.agreement(kernel, prior, depth)[:, -1]
        return np.array([spearman(np.arange(depth), row) for row in last])

    def slope(self, kernel, prior):  # -> [R], or None: fewer than two depths come near
        """What a doubling of the depth adds to the end's disparity over the Bayes rule's."""
        near = {d: self.once_near(kernel, prior, d) for d in self.config.depths}
        near = {d: values for d, values in near.items() if values is not None}
        if len(near) < 2:
            return None
        doublings = np.log2([*near]) - np.log2([*near]).mean()
        return doublings @ np.stack([*near.values()]) / (doublings @ doublings)

    def degree(self, kernel, depth):  # -> [R]
        """E ∇δᵀ C ∇δ / E δ² at the end of the training."""
        gap = self._gap(kernel, "dense", depth).isel(step=-1)
        return (gap.sel(square="flows") / gap.sel(square="answers")).values

    def changes(self):  # [restart, direction, budget]
        """The log ratio after the last layer less that after the first, where ascent ended."""
        path = parts.part(self.dataset, "limits").search.transpose("restart", ...)
        return path.isel(search_layer=-1) - path.isel(search_layer=0)

    def least_change(self, says):  # -> [restarts]
        """What ascent for the least finds: the change at the largest budget, or the last log ratio
        at that which is shown."""
        limits = self.config.limits
        if says == "order":
            path = parts.part(self.dataset, "limits").search
            return path.sel(direction="least", budget=limits.shown).isel(search_layer=-1).values
        return self.changes().sel(direction="least", budget=max(limits.budgets)).values

    def _gap(self, kernel, prior, depth):
        gap = self.dataset.gap.sel(kernel=kernel, prior=prior, depth=depth)
        return gap.transpose("run", "step", "square")

    def _values(self, what, kernel, prior, depth):
        return self.dataset[f"{what}, {name(kernel, prior, depth)}"].values


numbers = Flows


def statements(config) -> tuple[Statement, ...]:
    return (*_end_statements(config), *_depth_statements(config), _every_stack(config.limits))


def _words(kernel, prior="dense", depth=1):
    return dict(layers="one layer" if depth == 1 else f"{depth} layers")


def _cells(config, ids, **axes):
    """The cells whose depth the tier has."""
    axes = {"kernel": KERNELS, **axes, "depth": axes.pop("depth", DEPTHS)}
    return having(grid(ids, **axes), depth=config.depths)


def _end_statements(config):
    where = "{kernel} stacks of {layers}, {prior} prior"
    end = "the last layer's median |log ratio| of two flows over that of the Bayes rule on the "
    near = f"once the excess risk over the Bayes rule's is at most {NEAR:.0%} of it"
    median = partial(Statement, statistic="median", words=_words)
    return (
        median(
            "ends_at_bayes",
            THEOREM,
            f"Two flows are as unequal as the Bayes rule's in {where}, {near}",
            f"{end}same prompts, at each run's first such checkpoint,",
            at_least=1 - BAND,
            at_most=1 + BAND,
            note="judged where all runs come so near",
            sample=Flows.once_near,
            cells=_cells(config, ENDS, prior=PRIORS),
            message=f"Two flows are as unequal as the Bayes rule's at every depth, {near}",
        ),
        median(
            "no_further",
            OWN,
            f"Trained {where}, make two flows no more unequal than the Bayes rule's",
            f"{end}same prompts, at the end of the training,",
            at_most=1 + BAND,
            sample=Flows.last,
            cells=_cells(config, NO_FURTHER, prior=PRIORS),
            message="Trained stacks make two flows no more unequal than the Bayes rule's, near it "
            "or not",
        ),
    )


def _depth_statements(config):
    median = partial(Statement, statistic="median", words=_words)
    return (
        median(
            "agreement_rises",
            OWN,
            "Layer by layer log flows come to correlate with the Bayes rule's in trained {kernel} "
            "stacks of {layers}, {prior} prior",
            "Spearman's correlation of the layer with the mean over prompts of the correlation of "
            "its log flows with the Bayes rule's, at the end of the training,",
            at_least=RISING,
            sample=Flows.rise,
            cells=_cells(config, RISES, prior=PRIORS, depth=DEPTHS[1:]),
            message="Layer by layer log flows come to correlate with the Bayes rule's",
        ),
        median(
            "same_at_every_depth",
            OWN,
            "Where {kernel} stacks come near the Bayes rule of the {prior} prior, depth does not "
            "change how unequal their flows are",
            "the slope, for each doubling of depth, of ends_at_bayes's number over the depths that "
            "come near,",
            margin=SLOPE,
            sample=Flows.slope,
            cells=grid(
                "linear_dense_slope linear_sparse_slope softmax_dense_slope softmax_sparse_slope",
                kernel=KERNELS,
                prior=PRIORS,
            ),
            message="Where stacks come near the Bayes rule depth does not change how unequal their "
            "flows are",
        ),
        median(
            "degree",
            THEOREM,
            "Flows of trained {kernel} stacks of {layers} are as near to the Bayes rule's as "
            f"polynomials of degree {DEGREE:g} would have to be",
            "the squared distance of the flows to the labels, in the metric of their covariance, "
            "over that of the answers, at the end of the training,",
            at_most=DEGREE,
            note="a theorem for linear stacks with 3^L - 1, read in units that are not their own; "
            "dense prior",
            sample=Flows.degree,
            cells=_cells(config, DEGREES),
            message="Flows of trained stacks are as near to the Bayes rule's as polynomials of "
            f"degree {DEGREE:g} would have to be, at every depth",
        ),
    )


def _every_stack(limits):
    words = {
        "ratio": (
            "depth enlarges the ratio of two flows",
            "the least change of the log ratio that ascent finds, at the largest budget,",
        ),
        "order": (
            "the demonstration ahead after one layer stays ahead",
            f"the last log ratio where ascent seeks the least, at budget {limits.shown:g},",
        ),
    }
    return Statement(
        "every_stack",
        "A1 (2508.00385), Theorem 1, our reading, in our setting",
        "In every linear stack, {happens}",
        "{what}",
        "median",
        over="restarts",
        at_least=0,
        note="'every stack' is our quantifier: A1's conditions are not public",
        sample=Flows.least_change,
        cells=grid("theorem_1 order", says=words),
        words=lambda says: dict(zip(("happens", "what"), words[says], strict=True)),
        message="In every linear stack, depth enlarges the ratio of two flows, and the "
        "demonstration ahead after one layer stays ahead",
    )
