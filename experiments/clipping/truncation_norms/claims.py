"""What the statements of `truncation_norms` are judged by."""

import numpy as np

from experiments.clipping.truncation_norms.config import CLAIMS
from experiments.clipping.update_norms import MODULES, READINGS
from lsa_lab import results
from lsa_lab.claims import about_the_mean


def rows_of(dataset):  # -> {label: (provable, share of draws [S], of trained prompts [R] or None)}
    """The table of I.2.7: averaged over the ranks and, where there are several, the layers."""
    first, later, last = slice(0, 1), slice(1, None), slice(0, -1)

    def shares(norm, module, layers):
        found = dataset.random_rises.sel(norm=norm, module=module).isel(layer=layers)
        ours = None
        if module in dataset.trained_module:
            ours = dataset.trained_rises.sel(norm=norm, trained_module=module)
            ours = ours.isel(layer=layers).mean(("layer", "rank")).values
        return found.mean(("layer", "rank")).values, ours

    table = {f"UB, {name}": (True, *shares("bound", name, slice(None))) for name in MODULES}
    table["|G_t|, W_V, any t"] = (True, *shares("own", "W_V", slice(None)))
    table["|G_1|, W_Q"] = (True, *shares("own", "W_Q", first))
    table["|G_1|, merged"] = (True, *shares("own", "merged", first))
    for i, reading in enumerate(READINGS):
        behind = dataset.mlp_rises.sel(reading=reading).mean("rank").values
        table[f"|{reading}|"] = (i == 0, behind, None)
    table["|G_1|, W_K"] = (False, *shares("own", "W_K", first))
    for name in ("W_K", "W_Q", "merged"):
        table[f"|G_t|, {name}, t > 1"] = (False, *shares("own", name, later))
    for name in MODULES:
        table[f"a later |G|, {name}"] = (False, *shares("later", name, last))
    for name in MODULES:
        table[f"Σ|G|², {name}"] = (False, *shares("sum", name, last))
    return table


def claims(dataset):
    settings, table = results.config_of(dataset), rows_of(dataset)
    found = {}  # [S] or [R] of each claim
    found["bounds"] = np.max([row[1] for name, row in table.items() if "UB" in name], axis=0)
    found["mlp"], found["mlp_with_residuals"] = (table[f"|{name}|"][1] for name in READINGS)
    own = {name: row for name, row in table.items() if name.startswith("|G")}
    found["provable"] = np.max([random for yes, random, _ in own.values() if yes], axis=0)
    ours = [ours for yes, _, ours in table.values() if yes and ours is not None]
    found["provable_when_trained"] = np.max(ours, axis=0)
    found["unprovable"] = min((row[1] for row in own.values() if not row[0]), key=np.mean)
    factored = dataset.sel(module=["W_V", "W_K", "W_Q"])
    overall = factored.random_rises.mean(("module", "layer", "rank"))
    found["own"], found["sum"] = (overall.sel(norm=norm).values for norm in ("own", "sum"))
    rises = dataset.trained_rises.sel(norm="sum")
    found["sum_when_trained"] = rises.stack(cell=[*rises.dims[1:]]).mean("cell").values
    total = dataset.random_typical.sel(norm="sum")
    cells = total.stack(cell=[*total.dims[1:]]).transpose("cell", "seed").values
    found["typical"] = max(cells, key=np.mean)
    moved = abs(factored.random_typical.sel(norm="sum")).mean(("module", "rank"))
    found["deep_is_steady"] = (moved.isel(layer=-1) - moved.isel(layer=0)).values
    error = np.abs(dataset.example.values - [0.1, 1.0]).max()
    found["counterexample"] = np.array([error, error])  # nothing random
    made = []
    for name, (source, statement, measured, side, bound) in CLAIMS.items():
        bound = getattr(settings, bound) if isinstance(bound, str) else bound
        criterion = f"{measured} {'<=' if side == 'at_most' else '>='} {bound:g}"
        row = (f"truncation_norms.{name}", source, statement, criterion, found[name])
        made.append(about_the_mean(*row, **{side: bound}))
    return made
