"""What clipping does to the risk, layer by layer, as `clipping_curves` judges it."""

import numpy as np

from experiments.clipping.clipping_curves.config import DROPPED
from experiments.clipping.layer_ends import shallow_and_deep
from experiments.clipping.transformer_config import PARTS
from lsa_lab import results
from lsa_lab.statistics import mean_interval


def relative(dataset):  # -> (run, shots, layer, part, rate)
    """Changes over the risk of the same run unclipped, at as many shots."""
    return dataset.change / dataset.unclipped


def drastic(values, high):
    """Averaged over the rates from ``high`` on; dropping is not among them."""
    return values.sel(rate=slice(high, DROPPED - 1e-9)).mean("rate")


def over_ends(values, config):  # -> two of (run, shots, part)
    """Drastic clipping of the shallow layers, and of the deep ones, one at a time."""
    return shallow_and_deep(drastic(values, config.high), config.ends)


def gains_by_others(changes):  # (run, layer, part, rate) -> [R]
    """The change of each run by that edit which is best, on average, for all the other runs."""
    table = changes.transpose("run", ...).values.reshape(changes.sizes["run"], -1)
    others = table.sum(0, keepdims=True) - table
    return table[np.arange(len(table)), others.argmin(1)]


def sides(changes):  # (run, ...) -> (...): -1, 0 or 1
    """The side of zero on which the interval over runs lies as a whole."""
    table = changes.transpose("run", ...).values
    intervals = map(mean_interval, table.reshape(len(table), -1).T)
    signs = [np.sign(low) * (np.sign(low) == np.sign(high)) for low, high in intervals]
    return changes.isel(run=0, drop=True).copy(data=np.reshape(signs, table.shape[1:]))


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    few, n, many = int(dataset.shots.min()), config.n, int(dataset.shots.max())
    change = relative(dataset)
    factors, rises = np.log10(1 + change), dataset.change / config.d
    shallow, deep = over_ends(factors, config)
    raised, _ = over_ends(rises, config)
    _, degraded = over_ends(change, config)
    clipped = (dataset.change + dataset.unclipped).sel(rate=max(config.rates)) / config.d
    guessed, _ = shallow_and_deep(clipped, config.ends)
    values = {}
    for part in PARTS:
        rows = {
            "deep_bears_more": (shallow - deep).sel(shots=n),
            "deep_is_flat": degraded.sel(shots=n),
            "shallow_collapses": guessed.sel(shots=n),
            "few_shots_collapse_less": shallow.sel(shots=few) - shallow.sel(shots=n),
            "few_shots_rise_less": raised.sel(shots=few) - raised.sel(shots=n),
        }
        values |= {f"{part.lower()}_{id}": row.sel(part=part).values for id, row in rows.items()}
    for name, shots in {"few": few, "trained": n, "many": many}.items():
        values[f"helps_{name}"] = gains_by_others(change.sel(shots=shots))
    values["as_good_as_ridge"] = (dataset.unclipped / dataset.ridge).sel(shots=n).values
    return values
