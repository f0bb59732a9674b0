"""How the bound, the risk and the gap change together, as `clipping_and_bound` judges it."""

import numpy as np

from lsa_lab import results
from lsa_lab.statistics import spearman


def agreement(first, second):  # two of (run, module, layer, rank) -> [R, M, L]
    """Spearman's correlation over the ranks kept of ten digits, for the rest is rounding."""
    digits = np.vectorize(lambda value: float(f"{value:.9e}"))
    over_ranks = np.vectorize(spearman, signature="(q),(q)->()", otypes=[float])
    return over_ranks(digits(first.values), digits(second.values))


def changes(values):  # (..., rank) -> (..., rank but the full one)
    """What truncation changes, relative to the matrix whole."""
    return (values / values.isel(rank=0) - 1).isel(rank=slice(1, None))


def descent_samples(dataset) -> dict[str, np.ndarray]:
    measured = {name: dataset[f"descent_{name}"] for name in ("bound", "sum", "risk")}
    kept = slice(None, -1)  # but the drop
    moved = [changes(value.sel(module="w_pv")).isel(rank=kept) for value in measured.values()]
    keys = (measured[name].sel(module="w_kq") for name in ("bound", "risk"))
    return {
        "descent_values": max(float(abs(change).max()) for change in moved),
        "descent_bound": agreement(*keys).mean(1),
    }


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    exact = results.config_of(dataset).exact
    bound, risk, gap, total = (dataset[name] for name in ("bound", "risk", "gap", "sum"))
    places, cells = ("module", "layer"), ("module", "layer", "rank")
    lower = changes(bound) < -exact
    best = bound.argmin("rank")
    at_best = np.log(risk.isel(rank=best) / risk.isel(rank=0))
    return {
        "bound_falls": (changes(bound) > exact).mean(cells),
        "risk_falls_with_it": (lower & (changes(risk) < 0)).sum(cells) / lower.sum(cells),
        "ranks_risks": agreement(bound, risk).mean((1, 2)),
        "ranks_gaps": agreement(bound, gap).mean((1, 2)),
        "sum_ranks_gaps": agreement(total, gap).mean((1, 2)),
        "least_when_dropped": (best < len(dataset["rank"]) - 1).mean(places),
        "gap_least_when_dropped": (gap.isel(rank=-1) - gap.isel(rank=0)).mean(places),
        "chosen_by_bound": at_best.mean(places),
        **descent_samples(dataset),
    }
