"""What `bayes_flows` judges.

It was fixed before the first run. Known were the committed stacks of `many_shot_flow`, and losses
of a trial of the training; flows of these stacks had not been looked at.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from experiments.flow.bayes_flows.config import PRIORS, name
from experiments.models.specs import KERNELS
from lsa_lab.judging.statements import Statement, grid, having
from lsa_lab.judging.statistics import spearman
from lsa_lab.store import parts

NEAR = 0.1  # the excess risk over the Bayes rule's, as a part of its risk, of a stack that is near
BAND = 0.1  # how far from 1 a disparity over the Bayes rule's may be
OWN = "derived here"
THEOREM = f'{OWN}, docs/theory, "Near in risk, near in flow"'
DEPTHS = (1, 2, 4, 8)


class Flows:
    """A result's stacks beside the Bayes rule, [R, P] by run and place on the path of training."""

    def __init__(self, dataset):
        self.dataset, self.limits = dataset, parts.part(dataset, "limits")

    def excess(self, kernel, prior, depth):  # -> [R, P]
        """E (ŷ - Bayes)² over the risk of the Bayes rule."""
        gap = self._gap(kernel, prior, depth)
        return (gap.sel(square="answers") / gap.sel(square="error").mean()).values

    def end(self, kernel, prior, depth):  # -> [R, P]
        """The last layer's disparity over the Bayes rule's."""
        values = self.dataset[f"disparity, {name(kernel, prior, depth)}"].values
        return values[..., -2] / values[..., -1]

    def agreement(self, kernel, prior, depth):  # -> [R, L]
        """The correlation of log flows with the Bayes rule's, at the end of the training."""
        return self.dataset[f"agreement, {name(kernel, prior, depth)}"].values[:, -1]

    def once_near(self, kernel, prior, depth):  # -> [R], or None: some run never comes near
        """The end's disparity over the Bayes rule's where a run first is near it in risk."""
        near = self.excess(kernel, prior, depth) <= NEAR
        if not near.any(axis=1).all():
            return None
        return self.end(kernel, prior, depth)[np.arange(len(near)), near.argmax(axis=1)]

    def rise(self, kernel, prior, depth):  # -> [R]
        """Spearman's correlation of the layer with its ``agreement``."""
        return np.array(
            [spearman(np.arange(depth), row) for row in self.agreement(kernel, prior, depth)]
        )

    def degree(self, kernel, depth):  # -> [R]
        """E ∇δᵀ C ∇δ / E δ² at the end of the training."""
        gap = self._gap(kernel, "dense", depth).isel(step=-1)
        return (gap.sel(square="flows") / gap.sel(square="answers")).values

    def changes(self):  # [restart, direction, budget]
        """The log ratio after the last layer less that after the first, where ascent ended."""
        path = self.limits.search.transpose("restart", ...)
        return path.isel(search_layer=-1) - path.isel(search_layer=0)

    def _gap(self, kernel, prior, depth):
        gap = self.dataset.gap.sel(kernel=kernel, prior=prior, depth=depth)
        return gap.transpose("run", "step", "square")


numbers = Flows


def statements(config) -> tuple[Statement, ...]:
    return (*_trained_statements(config), *_ascent_statements(config.limits))


def _trained_statements(config):
    end = "the last layer's median |log ratio| of two flows over that of the Bayes rule on the "
    near = f"once the excess risk over the Bayes rule's is at most {NEAR:.0%} of it"
    stacks = "{kernel} stacks of depth {depth}, {prior} prior"
    trained = partial(Statement, statistic="median")
    axes = dict(kernel=KERNELS, prior=PRIORS)
    families = (
        trained(
            "ends_at_bayes",
            THEOREM,
            f"Two flows are as unequal as the Bayes rule's in {stacks}, {near}",
            f"{end}same prompts, at each run's first such checkpoint,",
            at_least=1 - BAND,
            at_most=1 + BAND,
            note="judged where all runs come so near",
            sample=Flows.once_near,
            cells=grid(
                "linear_dense_1_ends linear_dense_2_ends linear_dense_4_ends linear_dense_8_ends "
                "linear_sparse_1_ends linear_sparse_2_ends linear_sparse_4_ends "
                "linear_sparse_8_ends softmax_dense_1_ends softmax_dense_2_ends "
                "softmax_dense_4_ends softmax_dense_8_ends softmax_sparse_1_ends "
                "softmax_sparse_2_ends softmax_sparse_4_ends softmax_sparse_8_ends",
                **axes,
                depth=DEPTHS,
            ),
            message=f"Two flows are as unequal as the Bayes rule's at every depth, {near}",
        ),
        trained(
            "no_further",
            OWN,
            f"Trained {stacks}, make two flows no more unequal than the Bayes rule's",
            f"{end}same prompts, at the end of the training,",
            at_most=1 + BAND,
            sample=lambda flows, **kind: flows.end(**kind)[:, -1],
            cells=grid(
                "linear_dense_1_no_further linear_dense_2_no_further linear_dense_4_no_further "
                "linear_dense_8_no_further linear_sparse_1_no_further linear_sparse_2_no_further "
                "linear_sparse_4_no_further linear_sparse_8_no_further softmax_dense_1_no_further "
                "softmax_dense_2_no_further softmax_dense_4_no_further softmax_dense_8_no_further "
                "softmax_sparse_1_no_further softmax_sparse_2_no_further "
                "softmax_sparse_4_no_further softmax_sparse_8_no_further",
                **axes,
                depth=DEPTHS,
            ),
            message="Trained stacks make two flows no more unequal than the Bayes rule's, near it "
            "or not",
        ),
        trained(
            "agreement_rises",
            OWN,
            f"Layer by layer log flows come to correlate with the Bayes rule's in trained {stacks}",
            "Spearman's correlation of the layer with the mean over prompts of the correlation of "
            "its log flows with the Bayes rule's, at the end of the training,",
            at_least=0.8,
            note="of four layers two neighbours may swap",
            sample=Flows.rise,
            cells=grid(
                "linear_dense_2_rises linear_dense_4_rises linear_dense_8_rises "
                "linear_sparse_2_rises linear_sparse_4_rises linear_sparse_8_rises "
                "softmax_dense_2_rises softmax_dense_4_rises softmax_dense_8_rises "
                "softmax_sparse_2_rises softmax_sparse_4_rises softmax_sparse_8_rises",
                **axes,
                depth=DEPTHS[1:],
            ),
            message="Layer by layer log flows come to correlate with the Bayes rule's",
        ),
        trained(
            "degree",
            THEOREM,
            "Flows of trained {kernel} stacks of depth {depth} are as near to the Bayes rule's as "
            "polynomials of degree 3 would have to be",
            "the squared distance of the flows to the labels, in the metric of their covariance, "
            "over that of the answers, at the end of the training,",
            at_most=3.0,
            note="a theorem for linear stacks with 3^L - 1, read in units that are not their own; "
            "dense prior",
            sample=Flows.degree,
            cells=grid(
                "linear_1_degree linear_2_degree linear_4_degree linear_8_degree "
                "softmax_1_degree softmax_2_degree softmax_4_degree softmax_8_degree",
                kernel=KERNELS,
                depth=DEPTHS,
            ),
            message="Flows of trained stacks are as near to the Bayes rule's as polynomials of "
            "degree 3 would have to be, at every depth",
        ),
    )
    # A smaller tier lacks some depths.
    return [replace(each, cells=having(each.cells, depth=config.depths)) for each in families]


def _ascent_statements(limits):
    every_stack = partial(
        Statement,
        source="A1 (2508.00385), Theorem 1, our reading, in our setting",
        statistic="median",
        over="restarts",
        at_least=0,
        note="'every stack' is our quantifier: A1's conditions are not public",
    )
    return (
        every_stack(
            "theorem_1",
            says="In every linear stack depth enlarges the ratio of two flows",
            measured="the least change of the log ratio that ascent finds, at the largest budget,",
            sample=lambda flows: (
                flows.changes().sel(direction="least", budget=max(limits.budgets)).values
            ),
        ),
        every_stack(
            "order",
            says="In every linear stack the demonstration ahead after one layer stays ahead",
            measured="the last log ratio where ascent seeks the least, at budget "
            f"{limits.shown:g},",
            sample=lambda flows: (
                flows.limits.search.sel(direction="least", budget=limits.shown)[..., -1].values
            ),
        ),
    )
