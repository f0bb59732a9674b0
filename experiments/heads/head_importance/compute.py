"""Importances of the heads of every model, at its end and on the way, in one Dataset."""

from experiments.heads.head_importance import grid
from experiments.heads.head_importance.config import Config
from experiments.heads.head_importance.patterns import OTHERS
from experiments.models.trained import trained


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    runs = {
        name: trained(spec, f"sparse models: {name}", retrain=config.retrain, progress=progress)
        for name, spec in config.models
    }
    specs = [spec for _, spec in config.models]
    sizes = {
        "run": max(spec.training.seeds for spec in specs),
        "layer": max(spec.architecture.depth for spec in specs),
        "head": max(spec.architecture.heads for spec in specs),
        "look": max(spec.training.checkpoints for spec in specs),
        "state": len(grid.STATES),
        "representative": 1 + len(OTHERS),
    }
    variables, coordinates = grid.measured(config, runs)
    filled = {
        name: (dims, grid.padded(blocks, dims, sizes)) for name, (dims, blocks) in variables.items()
    }
    for name, (dims, rise) in list(filled.items()):
        if "rise" in name:
            filled[name.replace("rise", "effective")] = (dims[:-1], grid.effective(rise))
    return xr.Dataset(filled, coordinates)
