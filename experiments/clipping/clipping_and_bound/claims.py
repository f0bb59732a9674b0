"""How the bound, the risk and the gap change together, as `clipping_and_bound` judges it."""

import numpy as np

from lsa_lab import results
from lsa_lab.statistics import best_elsewhere, spearman


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


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    dataset = dataset.transpose("run", "prompts", "module", "layer", "rank", "update_noise", ...)
    exact = results.config_of(dataset).exact
    bound, risk, gap, total = (dataset[name] for name in ("bound", "risk", "gap", "sum"))
    places, cells = ("module", "layer"), ("module", "layer", "rank")
    lower = changes(bound) < -exact
    both = (lower & (changes(risk) < 0)).sum(cells)
    best = bound.argmin("rank")
    at_best = np.log(risk.isel(rank=best) / risk.isel(rank=0))
    dropped = (gap.isel(rank=-1) - gap.isel(rank=0)).mean("module")  # either drops the layer
    keys = (dataset[f"descent_{name}"].sel(module=["w_kq"]) for name in ("bound", "risk"))
    rises, elsewhere = (changes(bound) > exact).mean(cells), best < len(dataset["rank"]) - 1
    return {
        "bound_falls": -best_elsewhere(-rises.values),
        "risk_falls_with_it": best_elsewhere((both / lower.sum(cells).clip(1)).values),
        "ranks_risks": best_elsewhere(agreements(bound, risk).mean((1, 2))),
        "ranks_gaps": best_elsewhere(agreements(bound, gap).mean((1, 2))),
        "sum_ranks_gaps": agreement(total, gap).mean((1, 2)),
        "least_when_dropped": -best_elsewhere(-elsewhere.mean(places).values),
        "gap_least_when_dropped": dropped.mean("layer").values,
        "gap_falls_when_dropped": (dropped < 0).mean("layer").values,
        "chosen_by_bound": -best_elsewhere(-at_best.mean(places).values),
        "descent_bound": best_elsewhere(agreements(*keys).mean((1, 2))),
    }
