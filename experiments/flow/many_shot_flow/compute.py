"""Does depth amplify disparity among many demonstrations, and what do duplicates take away?"""

import jax
import numpy as np

from experiments.flow.many_shot_flow import duplicates
from experiments.flow.many_shot_flow.config import Config
from experiments.flow.many_shot_flow.duplicates import KINDS


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    drawn, many = duplicates.draw(config), duplicates.models(config, progress)

    def seen(measure, count, pairs):  # -> {name: [K, C, R, B, ...]}
        batch = duplicates.prompts_of(config, drawn, count, pairs)
        each = ((forward, params(count)) for forward, params in many.values())
        parts = [duplicates.look(measure, *one, batch) for one in each]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)

    def ratios(logs):  # [K, C, R, B, L, n] -> {name: [K, C, R, B, L]}
        rows = [[duplicates.turned(one) for one in of_kind] for of_kind in logs]
        return {name: np.array([[one[name] for one in row] for row in rows]) for name in rows[0][0]}

    everything = [seen(duplicates.sizes, count, count // 2) for count in config.counts]
    everything = [values | ratios(values.pop("logs")) for values in everything]
    lost = sum(int((~np.isfinite(values["spread"])).sum()) for values in everything)
    axes = ("kind", "correlation", "run")
    data = {}
    for name in everything[0]:
        values = np.stack([_medians(values[name]) for values in everything])
        data[name] = (("count", *axes, "layer"), values)
    paired = everything[config.counts.index(config.count)]["size"]
    single = seen(duplicates.sizes, config.count, 1)["logs"][..., 0]
    for name, values in (("redundancy", paired), ("away", single)):  # each prompt less itself
        data[name] = ((*axes, "layer"), _medians(values - values[:, :1]))
    for name, values in seen(duplicates.joint, config.count, config.count // 2).items():
        data[name] = (axes, _medians(values))
    data["lost"] = ((), lost)
    return xr.Dataset(
        data,
        {
            "count": list(config.counts),
            "kind": list(KINDS),
            "correlation": list(config.correlations),
            "layer": np.arange(config.depth) + 1,
        },
    )


def _medians(values):  # [K, C, R, B, ...] -> [K, C, R, ...]
    """Over the prompts that are finite."""
    return np.nanmedian(np.where(np.isfinite(values), values, np.nan), axis=3)
