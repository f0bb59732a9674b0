"""What the statements of `clipping_and_bound` are judged by."""

import numpy as np

from experiments.clipping.clipping_and_bound.config import CLAIMS
from lsa_lab import results
from lsa_lab.claims import about_the_mean


def agreement(first, second):  # two of (run, module, layer, rank) -> [R, M, L]
    """Spearman's correlation over the ranks kept, 0 where either does not change."""
    from scipy.stats import spearmanr

    def of(*pair):
        pair = [np.array([float(f"{value:.9e}") for value in one]) for one in pair]
        return 0.0 if any(np.ptp(one) == 0 for one in pair) else spearmanr(*pair).statistic

    return np.vectorize(of, signature="(q),(q)->()")(first.values, second.values)


def claims(dataset):
    settings = results.config_of(dataset)
    bound, risk, gap, total = (dataset[name] for name in ("bound", "risk", "gap", "sum"))
    cells = ("module", "layer", "rank")
    clipped = slice(1, None)

    def change(values):
        return (values / values.isel(rank=0) - 1).isel(rank=clipped)

    lower = change(bound) < -settings.exact
    best = bound.argmin("rank")
    at_best = np.log(risk.isel(rank=best) / risk.isel(rank=0))
    descent = [change(dataset[f"descent_{name}"]) for name in ("bound", "sum", "risk")]
    largest = [abs(one.sel(module="w_pv").isel(rank=slice(None, -1))).max() for one in descent]
    keys = [dataset[f"descent_{name}"].sel(module="w_kq") for name in ("bound", "risk")]
    found = {
        "bound_falls": (change(bound) > settings.exact).mean(cells),
        "risk_falls_with_it": (lower & (change(risk) < 0)).sum(cells) / lower.sum(cells),
        "ranks_risks": agreement(bound, risk).mean((1, 2)),
        "ranks_gaps": agreement(bound, gap).mean((1, 2)),
        "sum_ranks_gaps": agreement(total, gap).mean((1, 2)),
        "least_when_dropped": (best < len(dataset["rank"]) - 1).mean(cells[:2]),
        "gap_least_when_dropped": (gap.isel(rank=-1) - gap.isel(rank=0)).mean(cells[:2]),
        "chosen_by_bound": at_best.mean(cells[:2]),
        "descent_values": np.full(2, max(map(float, largest))),  # nothing random
        "descent_bound": agreement(*keys).mean(1),
    }
    made = []
    for name, (source, statement, measured, side, limit) in CLAIMS.items():
        limit = getattr(settings, limit) if isinstance(limit, str) else limit
        criterion = f"{measured} {'<=' if side == 'at_most' else '>='} {limit:g}"
        row = (f"clipping_and_bound.{name}", source, statement, criterion, np.asarray(found[name]))
        made.append(about_the_mean(*row, **{side: limit}))
    return made
