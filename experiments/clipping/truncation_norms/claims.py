"""How often each norm rises, and what the statements of `truncation_norms` are judged by."""

from typing import NamedTuple

import numpy as np

from experiments.clipping.truncation_norms.config import MATRICES, MODULES, READINGS
from lsa_lab.statistics import worst


class Rises(NamedTuple):
    """How often a norm rises when a matrix is truncated."""

    provable: bool  # that it never does
    random: np.ndarray  # [S]  share of the draws of each seed
    trained: np.ndarray | None  # [R]  share of the prompts of each trained stack


def rises_by_norm(dataset) -> dict[str, Rises]:
    """The table in docs/theory, "Norms under truncation": averaged over the ranks and, where there
    are several, the layers."""
    first, later, last = slice(0, 1), slice(1, None), slice(0, -1)

    def rises(provable, norm, module, layers):
        shares = dataset.random_rises.sel(norm=norm, module=module).isel(layer=layers)
        trained = None
        if module in dataset.trained_module:
            trained = dataset.trained_rises.sel(norm=norm, trained_module=module)
            trained = trained.isel(layer=layers).mean(("layer", "rank")).values
        return Rises(provable, shares.mean(("layer", "rank")).values, trained)

    bounds = [rises(True, "bound", name, slice(None)) for name in MODULES]
    trained_bounds = [row.trained for row in bounds if row.trained is not None]
    random_bounds = np.max([row.random for row in bounds], axis=0)
    table = {"UB_t, any matrix": Rises(True, random_bounds, np.max(trained_bounds, axis=0))}
    table["|G_t|, W_V, any t"] = rises(True, "own", "W_V", slice(None))
    table["|G_1|, W_Q"] = rises(True, "own", "W_Q", first)
    table["|G_1|, merged"] = rises(True, "own", "merged", first)
    for i, reading in enumerate(READINGS):
        shares = dataset.mlp_rises.sel(reading=reading).mean("rank").values
        table[f"|{reading}|"] = Rises(i == 0, shares, None)
    table["|G_1|, W_K"] = rises(False, "own", "W_K", first)
    for name in ("W_K", "W_Q", "merged"):
        table[f"|G_t|, {name}, t > 1"] = rises(False, "own", name, later)
    for name in MODULES:
        table[f"a later |G|, {name}"] = rises(False, "later", name, last)
    for name in MODULES:
        table[f"Σ|G|², {name}"] = rises(False, "sum", name, last)
    return table


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [S] or [R]}
    table = rises_by_norm(dataset)
    own = [
        row.random for label, row in table.items() if label.startswith("|G") and not row.provable
    ]
    factored = dataset.sel(module=list(MATRICES))
    overall = factored.random_rises.mean(("module", "layer", "rank"))
    trained = dataset.trained_rises.sel(norm="sum")
    typical = dataset.random_typical.sel(norm="sum").mean("rank").transpose("seed", ...)
    return {
        "mlp_with_residuals": table[f"|{READINGS[1]}|"].random,
        "unprovable": worst(np.transpose(own), lambda seeds: -seeds.mean()),
        "own": overall.sel(norm="own").values,
        "sum": overall.sel(norm="sum").values,
        "sum_when_trained": trained.mean(("trained_module", "layer", "rank")).values,
        "typical": worst(typical, np.mean),
        "deep_is_steady": _last_less_first(factored.random_moves),
        "deep_is_steady_when_trained": _last_less_first(dataset.trained_moves),
        "deep_varies_less": _last_less_first(factored.random_spread),
        "deep_varies_less_when_trained": _last_less_first(dataset.trained_spread),
    }


def by_layer(values):  # (seed or run, a module, layer, rank) -> [R, L]
    module = next(axis for axis in values.dims if axis.endswith("module"))
    return values.mean((module, "rank")).values


def _last_less_first(values) -> np.ndarray:  # [R]
    rows = by_layer(values)
    return rows[:, -1] - rows[:, 0]
