"""What the statements of `clipping_curves` are judged by."""

import numpy as np

from experiments.clipping.clipping_curves.config import CLAIMS, DROPPED
from experiments.clipping.layer_ends import shallow_and_deep
from experiments.clipping.transformer_config import PARTS
from lsa_lab import results
from lsa_lab.claims import about_the_mean


def relative(dataset):  # -> (run, layer, module, rate), (run, shots, layer, part, rate)
    """Changes over the risk of the same run unclipped, at as many shots."""
    n = results.config_of(dataset).n
    unclipped = dataset.unclipped
    return dataset.change / unclipped.sel(shots=n), dataset.by_shots / unclipped


def drastic(values, settings):
    """Averaged over the high rates; dropping is not among them."""
    return values.sel(rate=slice(settings.high, DROPPED - 1e-9)).mean("rate")


def shallow_less_deep(by_shots, settings):  # -> (run, shots, part)
    """log10 of the risk after clipping shallow layers over that after clipping deep ones."""
    logs = drastic(np.log10(1 + by_shots), settings)
    shallow, deep = shallow_and_deep(logs, settings.ends)
    return shallow - deep


def left_out_gains(changes):  # (run, layer, part, rate) -> [R]
    """For each run the change by that edit which is best, on average, for all the other runs."""
    table = changes.transpose("run", ...).values.reshape(changes.sizes["run"], -1)
    others = table.sum(0, keepdims=True) - table
    return table[np.arange(len(table)), others.argmin(1)]


def claims(dataset):
    settings = results.config_of(dataset)
    change, by_shots = relative(dataset)
    few, many = int(dataset.shots.min()), int(dataset.shots.max())
    absolute = drastic(dataset.by_shots, settings) / settings.d
    samples = {}
    for part in PARTS:
        name, at = part.lower(), by_shots.sel(part=part)
        there = drastic(at.sel(shots=settings.n), settings)
        collapse, _ = shallow_and_deep(absolute.sel(part=part), settings.ends)
        apart = shallow_less_deep(at, settings).sel(shots=settings.n)
        less = collapse.sel(shots=few) - collapse.sel(shots=settings.n)
        samples[f"{name}_deep_bears_more"] = apart.values
        samples[f"{name}_deep_is_flat"] = shallow_and_deep(there, settings.ends)[1].values
        samples[f"{name}_few_shots_collapse_less"] = less.values
    for which, shots in (("few", few), ("trained", settings.n), ("many", many)):
        samples[f"helps_{which}"] = left_out_gains(by_shots.sel(shots=shots))
    keys = drastic(change.sel(module="W_k"), settings)
    samples["keys_alone"] = shallow_and_deep(keys, settings.ends)[0].values
    known = vars(settings) | {"few": few, "many": many, "-gain": -settings.gain}
    made = []
    for name, (source, statement, criterion, bounds) in CLAIMS.items():
        said = (source, statement.format(**known), criterion.format(**known), samples[name])
        limits = {side: known.get(bound, bound) for side, bound in bounds.items()}
        made.append(about_the_mean(f"clipping_curves.{name}", *said, **limits))
    return made
