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

    table = {f"UB, {name}": rises(True, "bound", name, slice(None)) for name in MODULES}
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
    bounds = [row.random for label, row in table.items() if label.startswith("UB")]
    own = [row for label, row in table.items() if label.startswith("|G")]
    provable = [row.trained for row in table.values() if row.provable and row.trained is not None]
    rising = np.transpose([row.random for row in own if not row.provable])
    factored = dataset.sel(module=list(MATRICES))
    overall = factored.random_rises.mean(("module", "layer", "rank"))
    trained = dataset.trained_rises.sel(norm="sum")
    typical = dataset.random_typical.sel(norm="sum").transpose("seed", ...)
    moved = abs(factored.random_typical.sel(norm="sum")).mean(("module", "rank"))
    return {
        "bounds": np.max(bounds, axis=0),
        "mlp": table[f"|{READINGS[0]}|"].random,
        "mlp_with_residuals": table[f"|{READINGS[1]}|"].random,
        "provable": np.max([row.random for row in own if row.provable], axis=0),
        "provable_when_trained": np.max(provable, axis=0),
        "unprovable": worst(rising, lambda seeds: -seeds.mean()),
        "own": overall.sel(norm="own").values,
        "sum": overall.sel(norm="sum").values,
        "sum_when_trained": trained.mean(("trained_module", "layer", "rank")).values,
        "typical": worst(typical, np.mean),
        "deep_is_steady": (moved.isel(layer=-1) - moved.isel(layer=0)).values,
        "counterexample": np.abs(dataset.example.values - [0.1, 1.0]).max(),
    }
