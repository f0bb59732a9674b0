"""What `clipping_and_bound` judges: how the bound, the risk and the gap change together."""

from functools import cached_property

import numpy as np

from lsa_lab.judging.statements import Statement
from lsa_lab.judging.statistics import best_elsewhere, spearman

EXACT = 1e-9  # relative change that is none
CORRELATED = 0.5  # rank correlation over the ranks kept from which two numbers fall together
A2 = "A2 (2406.03768)"
SPEARMAN = "Spearman's correlation over the ranks kept, averaged over"
BEST_C = "at the c of C = cI that suits the statement best on the other"
RUNS = "16 fresh runs, 10 before"
FRESH = f"{RUNS}, with four times the prompts"
OVER_C = {"note": f"{BEST_C} runs", "revision": "it was c = 0.01", "redrawn": FRESH}
MAY = 'A2 says that lower norms "may" help, and warns of lost expressive power'
OVER_C_MAY = OVER_C | {"note": f"{BEST_C} runs; {MAY}"}
PLACES = ("module", "layer")
CELLS = (*PLACES, "rank")


def numbers(dataset) -> "Truncations":
    return Truncations(dataset)


class Truncations:
    """What every truncation of a result's stacks does to the bound, the risk and the gap."""

    def __init__(self, dataset):
        axes = ("run", "prompts", *CELLS, "update_noise")
        self.dataset = dataset.transpose(*axes, ...)
        self.risk, self.gap = self.dataset.risk, self.dataset.gap
        self.bound_change = changes(self.dataset.bound)

    @cached_property
    def least(self):  # (run, module, layer, update_noise)
        """The place of the rank at which the bound is least."""
        return self.dataset.bound.argmin("rank")

    def rises(self):  # [R]
        return -best_elsewhere(-(self.bound_change > EXACT).mean(CELLS).values)

    def risk_falls(self):  # [R]
        """The share with a lower risk, of the truncations with a lower bound."""
        lower = self.bound_change < -EXACT
        both = (lower & (changes(self.risk) < 0)).sum(CELLS)
        return best_elsewhere((both / lower.sum(CELLS).clip(1)).values)

    def correlation(self, size, loss):  # [R]
        size, loss = self.dataset[size], self.dataset[loss]
        if "update_noise" in size.dims:
            return best_elsewhere(agreements(size, loss).mean((1, 2)))
        return agreement(size, loss).mean((1, 2))

    def descent_correlation(self):  # [sets of prompts]
        tables = self.dataset[["descent_bound", "descent_risk"]].sel(module=["w_kq"])
        return best_elsewhere(agreements(*tables.values()).mean((1, 2)))

    def least_elsewhere(self):  # [R]
        """The share of layers at which the bound is not least when they are dropped."""
        elsewhere = self.least < len(self.dataset["rank"]) - 1
        return -best_elsewhere(-elsewhere.mean(PLACES).values)

    @cached_property
    def drop(self):  # (run, layer)
        """What a layer's drop, through either matrix, adds to the gap."""
        return (self.gap.isel(rank=-1) - self.gap.isel(rank=0)).mean("module")

    def risk_at_least(self):  # [R]
        at_least = np.log(self.risk.isel(rank=self.least) / self.risk.isel(rank=0))
        return -best_elsewhere(-at_least.mean(PLACES).values)


def agreement(first, second):  # two of (run, module, layer, rank) -> [R, M, L]
    """Spearman's correlation over the ranks kept of ten digits, for the rest is rounding."""
    digits = np.vectorize(lambda value: float(f"{value:.9e}"))
    over_ranks = np.vectorize(spearman, signature="(q),(q)->()", otypes=[float])
    return over_ranks(digits(first.values), digits(second.values))


def agreements(bound, other):  # the first with update_noise -> [R, M, L, c]
    at_each = [agreement(bound.sel(update_noise=c), other) for c in bound.update_noise.values]
    return np.stack(at_each, axis=-1)


def changes(values):  # (..., rank, ...) -> the same but for the full rank
    """What truncation changes, relative to the matrix whole."""
    return (values / values.isel(rank=0) - 1).isel(rank=slice(1, None))


def statements(config) -> tuple[Statement, ...]:
    return (*_about_the_bound(), *_about_dropping(), _about_descent())


def _about_the_bound():
    share = "the share of matrices, layers and ranks"
    bound = dict(norm="the bound", where="Remark 4", short="bound")
    pairs = {
        ("bound", "risk"): bound | dict(other="the risk", **OVER_C_MAY),
        ("bound", "gap"): bound | dict(other="the generalisation gap", **OVER_C),
        ("sum", "gap"): dict(
            norm="Σ|G_t|²",
            where="Remark 6",
            short="Σ|G|²",
            other="the generalisation gap",
            note="",
            revision="",
            redrawn=FRESH,
        ),
    }
    return (
        Statement(
            "bound_falls",
            f"{A2}, Remark 6 and Theorem 2, our reading, in our setting",
            "Truncating w_kq or w_pv of a trained stack lowers the bound of Theorem 2",
            f"{share} at which it rises",
            at_most=0.05,
            label="bound rises, share",
            sample=lambda t: t.rises(),
            **OVER_C,
        ),
        Statement(
            "risk_falls_with_it",
            f"{A2}, Remark 4, our reading, in our setting",
            "Where truncation lowers the bound, it lowers the risk",
            f"{share}, of those with a lower bound, in which the risk is lower",
            at_least=0.5,
            label="risk falls where the bound\ndoes, share",
            sample=lambda t: t.risk_falls(),
            **OVER_C_MAY,
        ),
        Statement(
            "ranks",
            f"{A2}, Theorem 2 and {{where}}, our reading, in our setting",
            "Over the ranks kept {norm} and {other} fall together",
            f"{SPEARMAN} matrices and layers",
            at_least=CORRELATED,
            note="{note}",
            revision="{revision}",
            redrawn="{redrawn}",
            label="{short} and {loss}, ρ",
            sample=lambda t, size, loss: t.correlation(size, loss),
            cells={
                "ranks_risks": dict(size="bound", loss="risk"),
                "ranks_gaps": dict(size="bound", loss="gap"),
                "sum_ranks_gaps": dict(size="sum", loss="gap"),
            },
            words=lambda size, loss: pairs[size, loss],
            message="Over the ranks kept the bound falls together with the risk and with the "
            "generalisation gap, and Σ|G_t|² with the gap",
        ),
    )


def _about_dropping():
    source = f"{A2}, appendix B.6, our reading, in our setting"
    best = 'A2 says that it "may be the best option for generalization error"'
    return (
        Statement(
            "least_when_dropped",
            source,
            "The bound is least where the layer is dropped",
            "the share of matrices and layers in which it is not",
            at_most=0.05,
            label="least bound is not at\nrank 0, share",
            sample=lambda t: t.least_elsewhere(),
            **OVER_C,
        ),
        Statement(
            "gap_least_when_dropped",
            source,
            "On average a layer dropped makes the generalisation gap no larger",
            "the gap when dropped - the gap unclipped, averaged over layers",
            at_most=0.0,
            note=best,
            revision="four times the prompts, for it was undecided",
            redrawn=RUNS,
            label="rise of the gap at rank 0",
            sample=lambda t: t.drop.mean("layer").values,
        ),
        Statement(
            "gap_falls_when_dropped",
            source,
            "Of most layers the drop makes the generalisation gap smaller",
            "the share of layers in which it does",
            at_least=0.5,
            note=best,
            revision="added",
            redrawn=FRESH,
            label="gap falls at rank 0, share",
            sample=lambda t: (t.drop < 0).mean("layer").values,
        ),
        Statement(
            "chosen_by_bound",
            "derived here",
            "The rank at which the bound is least predicts no worse than the whole matrix",
            "log(risk at that rank / risk unclipped), averaged over matrices and layers",
            at_most=0.0,
            label="log rise of the risk where\nthe bound is least",
            sample=lambda t: t.risk_at_least(),
            **OVER_C,
        ),
    )


def _about_descent():
    return Statement(
        "descent_bound",
        f"modelled on {A2}, Remark 4",
        "In stacks that descend, too, the bound and the risk fall together as w_kq is cut",
        f"{SPEARMAN} layers",
        at_least=CORRELATED,
        over="sets of prompts",
        note=f"{BEST_C} sets",
        revision="it was c = 0.01",
        redrawn="16 fresh sets of prompts, 8 before, four times as large",
        label="same in descent, ρ",
        sample=lambda t: t.descent_correlation(),
    )
