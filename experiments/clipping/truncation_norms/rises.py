"""How often each norm rises when one matrix of a stack is truncated, out of a result."""

from typing import NamedTuple

import numpy as np

from experiments.clipping.truncation_norms.config import MATRICES, MODULES, READINGS


class Rises(NamedTuple):
    """How often a norm rises when a matrix is truncated."""

    provable: bool  # that it never does
    random: np.ndarray  # [S]  share of the draws of each seed
    trained: np.ndarray | None  # [R]  share of the prompts of each trained stack


def table_of_rises(dataset) -> dict[str, Rises]:
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
        table[f"|{reading}|"] = Rises(i == 0, mlp_rises(dataset, reading), None)
    table["|G_1|, W_K"] = rises(False, "own", "W_K", first)
    for name in ("W_K", "W_Q", "merged"):
        table[f"|G_t|, {name}, t > 1"] = rises(False, "own", name, later)
    for name in MODULES:
        table[f"a later |G|, {name}"] = rises(False, "later", name, last)
    for name in MODULES:
        table[f"Σ|G|², {name}"] = rises(False, "sum", name, last)
    return table


def mlp_rises(dataset, reading):  # [S]
    return dataset.mlp_rises.sel(reading=reading).mean("rank").values


def norm_rises(dataset, norm, kind):  # [S] or [R]
    """The share in which a norm rises, over all matrices, layers and ranks."""
    if kind == "trained":
        rises = dataset.trained_rises.sel(norm=norm)
        return rises.mean(("trained_module", "layer", "rank")).values
    rises = factored(dataset).random_rises.mean(("module", "layer", "rank"))
    return rises.sel(norm=norm).values


def factored(dataset):
    """Random stacks whose matrices are truncated one by one, not merged."""
    return dataset.sel(module=list(MATRICES))


def layer_means(values):  # (seed or run, a module, layer, rank) -> [R, L]
    module = next(axis for axis in values.dims if axis.endswith("module"))
    return values.mean((module, "rank")).values
