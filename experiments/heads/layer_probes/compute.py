"""What readers find after each layer of every model, and descent on the first layer's tokens."""

import numpy as np

from experiments.heads.layer_probes import probing
from experiments.heads.layer_probes.config import FEATURES, RULES, Config
from experiments.heads.layer_probes.first_layer_descent import descents


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    parts = []
    names = list(dict.fromkeys([*config.panels, *config.dissected]))
    for name in names:
        case = probing.finished_case(config, models[name])
        parts.append(measure(config, case, name in config.dissected).expand_dims(case=[name]))
    whole = xr.merge(parts, join="outer", compat="no_conflicts").sel(case=names)
    kinds = list(dict.fromkeys(kind for part in parts for kind in part.model.values))
    labels = {"rule": list(RULES), "feature": list(FEATURES)}
    return whole.sel(model=kinds).assign_coords(labels)


def measure(config, case, dissected: bool):
    """The Dataset of one model; ``dissected``: descent on its first layer too."""
    import xarray as xr

    numbers, spec = probing.readers(config, case), case.spec
    axes = ("model", "run", "layer")
    names = ("reader", "own", "held")
    arrays = {name: (axes, numbers[:, :, i]) for i, name in enumerate(names)}
    heads = [int(variant.models.gates[0, 0].sum()) for variant in case.variants.values()]
    arrays["share"] = ("model", np.minimum(np.array(heads) / spec.task.width, 1.0))
    arrays["known"] = ("rule", probing.risks_of_rules(config, case))
    arrays["lost"] = ((), case.lost)
    if dissected:
        paths = descents(config, case).astype(np.float32)  # most of the file
        arrays["descent"] = (("run", "feature", "half", "step"), paths)
    coords = {"layer": np.arange(spec.architecture.depth + 1), "run": np.arange(case.runs)}
    return xr.Dataset(arrays, {**coords, "model": list(case.variants)})
