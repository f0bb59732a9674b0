"""What clipping does to the risk, layer by layer, as `clipping_curves` judges it."""

import numpy as np

from experiments.clipping.clipping_curves.config import DROPPED
from experiments.clipping.layer_ends import shallow_and_deep
from experiments.clipping.transformer_config import PARTS
from lsa_lab import results
from lsa_lab.statistics import mean_interval


def relative(dataset):  # -> (run, layer, module, rate), (run, shots, layer, part, rate)
    """Changes over the risk of the same run unclipped, at as many shots."""
    n = results.config_of(dataset).n
    unclipped = dataset.unclipped
    return dataset.change / unclipped.sel(shots=n), dataset.by_shots / unclipped


def drastic(values, high):
    """Averaged over the rates from ``high`` on; dropping is not among them."""
    return values.sel(rate=slice(high, DROPPED - 1e-9)).mean("rate")


def shallow_less_deep(by_shots, config):  # -> (run, shots, part)
    """log10 of the risk after clipping shallow layers over that after clipping deep ones."""
    shallow, deep = shallow_and_deep(drastic(np.log10(1 + by_shots), config.high), config.ends)
    return shallow - deep


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


def improvements(changes):  # (run, layer, part, rate) -> "3 (attention 1 at 0.5, ...)"
    """How many edits improve the model by the interval over runs, and the first three of them."""
    better = (sides(changes) < 0).transpose("part", "layer", "rate")
    stacked = better.stack(place=better.dims)
    places = [
        place for place, holds in zip(stacked.place.values, stacked.values, strict=True) if holds
    ]
    names = [f"{part} {layer} at {rate:g}" for part, layer, rate in places[:3]]
    return f"{len(places)}" + f" ({', '.join(names)})" * bool(names)


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    change, by_shots = relative(dataset)
    few, many = int(dataset.shots.min()), int(dataset.shots.max())
    apart = shallow_less_deep(by_shots, config).sel(shots=config.n)
    _, deep = shallow_and_deep(drastic(by_shots.sel(shots=config.n), config.high), config.ends)
    rises = drastic(dataset.by_shots, config.high) / config.d
    collapse, _ = shallow_and_deep(rises, config.ends)
    less = collapse.sel(shots=few) - collapse.sel(shots=config.n)
    values = {}
    for part in PARTS:
        name = part.lower()
        values[f"{name}_deep_bears_more"] = apart.sel(part=part).values
        values[f"{name}_deep_is_flat"] = deep.sel(part=part).values
        values[f"{name}_few_shots_collapse_less"] = less.sel(part=part).values
    for name, shots in {"few": few, "trained": config.n, "many": many}.items():
        values[f"helps_{name}"] = gains_by_others(by_shots.sel(shots=shots))
    keys = drastic(change.sel(module="W_k"), config.high)
    values["keys_alone"] = shallow_and_deep(keys, config.ends)[0].values
    return values
