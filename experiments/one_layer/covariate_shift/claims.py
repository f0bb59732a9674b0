"""What `covariate_shift` judges: risks beside theory and beside zero, and errors on a table."""

from functools import cached_property

from experiments.one_layer.covariate_shift.config import SHIFTS
from lsa_lab.judging.statements import Statement
from lsa_lab.judging.statistics import worst
from lsa_lab.store import results


def numbers(dataset) -> "Shifted":
    return Shifted(dataset)


class Shifted:
    """A result, with the errors on the table at the length of the training."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)

    @cached_property
    def table(self):  # (learner, group)
        errors = self.dataset.table_error.sel(table_length=self.config.n)
        return errors.astype(float).transpose("learner", "group")

    def apart(self, rival):  # [G]
        """The squared error of the trained layer less that of a rival, in each group."""
        return (self.table.sel(learner="trained layer") - self.table.sel(learner=rival)).values


def worst_ratio(dataset):  # [R]
    """Measured over predicted risks at the scale and length where their mean is farthest from 1."""
    ratios = (dataset.risk / dataset.theory).transpose("run", "case")
    return worst(ratios, lambda runs: abs(runs.mean() - 1))


def statements(config) -> tuple[Statement, ...]:
    source = "derived here from Zhang et al. 2306.09927"
    fresh = f"{config.runs} fresh runs, 8 before"
    mean = f"mean of {config.runs} layers and {config.table_prompts} prompts of a group's own rows"
    groups = dict(
        over="disjoint groups of patients",
        note=f"{mean}; columns standardised over the whole table",
        revision="it was overlapping prompts of the same table, judged as independent",
    )
    return (
        Statement(
            "theory",
            source,
            "At other scales and lengths the trained layer has the risk that theory gives Γ^{-1}",
            "measured over predicted risk, at the worst scale and length",
            at_least=0.95,
            at_most=1.05,
            redrawn=fresh,
            label="risk / theory's, worst place",
            sample=lambda r: worst_ratio(r.dataset),
        ),
        Statement(
            "floor",
            source,
            f"At scale {SHIFTS[-1]:g} even the longest prompt leaves it worse than predicting zero",
            f"(risk - risk of zero) / tr Λ', same prompts, m = {config.lengths[-1]}",
            at_least=0.0,
            redrawn=fresh,
            label=f"scale {SHIFTS[-1]:g}: risk less zero's",
            sample=lambda r: (r.dataset.risk.isel(case=-1) - r.dataset.zero).values,
        ),
        Statement(
            "table",
            "derived here",
            "A layer trained on isotropic Gaussians beats the mean on a real table (diabetes)",
            f"its squared error less that of the mean, m = n = {config.n},",
            at_most=0.0,
            label="table: error less the mean's",
            sample=lambda r: r.apart("mean"),
            **groups,
        ),
        Statement(
            "table_descent",
            "derived here",
            "On that real table descent with each prompt's own step size beats the trained layer",
            f"the layer's squared error less that of descent, m = n = {config.n},",
            at_least=0.0,
            label="table: error less descent's",
            sample=lambda r: r.apart("gradient descent"),
            **groups,
        ),
    )
