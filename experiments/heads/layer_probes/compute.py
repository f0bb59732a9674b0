"""In which layer is the answer readable, and are layer 1's tokens preprocessed covariates?"""

import numpy as np

from experiments.heads.layer_probes import probing
from experiments.heads.layer_probes.config import Config
from experiments.heads.layer_probes.first_layer_descent import FEATURES, descents
from experiments.heads.layer_probes.probing import RULES
from experiments.models import sparse_models


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    looked = config.present(config.dissected)
    names = list(dict.fromkeys([*config.present(config.panels), *looked]))
    made = []
    for name in names:
        found = measure(config, probing.load(config, name, progress), name in looked)
        made.append(found.expand_dims(case=[name]))
    whole = xr.merge(made, join="outer", compat="no_conflicts").sel(case=names)
    models = list(dict.fromkeys(model for one in made for model in one.model.values))
    labels = {"rule": list(RULES), "feature": list(FEATURES)}
    return whole.sel(model=models).assign_coords(labels)


def measure(config, case, looked_at: bool):
    """Of one family; ``looked_at``: descent on its first layer too."""
    import xarray as xr

    found = probing.readers(config, case)
    axes = ("model", "run", "layer")
    names = ("reader", "own", "held", "control")
    made = {name: (axes, found[:, :, i]) for i, name in enumerate(names)}
    heads = [int(model.masks[0, 0].sum()) for model in case.models.values()]
    d = sparse_models.width(case.family) - case.family.scratch - 1
    made["share"] = ("model", np.minimum(np.array(heads) / d, 1.0))
    made["known"] = ("rule", probing.known(config, case))
    made["noise"] = ((), case.family.noise_std)
    made["lost"] = ((), case.lost)
    if looked_at:
        made["descent"] = (("run", "feature", "half", "step"), descents(config, case))
    coords = {"layer": np.arange(case.family.depth + 1), "run": np.arange(case.runs)}
    return xr.Dataset(made, {**coords, "model": list(case.models)})
