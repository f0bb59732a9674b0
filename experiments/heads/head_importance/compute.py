"""Do all heads of the first layer matter, and one head of each later layer?"""

from experiments.heads.head_importance import grid
from experiments.heads.head_importance.config import Config
from experiments.heads.head_importance.patterns import OTHERS
from experiments.models.sparse_training import trained


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    made = {
        name: trained(config.families, name, config.retrain, progress) for name in config.models
    }
    families = [one.family for one in made.values()]
    sizes = {
        "run": max(family.seeds for family in families),
        "layer": max(family.depth for family in families),
        "head": max(family.heads for family in families),
        "look": max(family.looks for family in families),
        "state": len(grid.STATES),
        "representative": 1 + len(OTHERS),
    }
    variables, coordinates = grid.measured(config, made)
    filled = {
        name: (dims, grid.padded(blocks, dims, sizes)) for name, (dims, blocks) in variables.items()
    }
    for name, (dims, rise) in list(filled.items()):
        if "rise" in name:
            filled[name.replace("rise", "effective")] = (dims[:-1], grid.effective(rise))
    return xr.Dataset(filled, coordinates)
