"""The risks of descent on the features of many heads, and of too few."""

from experiments.heads.head_lower_bound.config import Config
from experiments.heads.head_lower_bound.risks import risks


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    return xr.Dataset(
        {"risk": (("features", "run", "used"), risks(config))},
        {"features": ["alone", "beside raw"], "used": list(config.heads)},
    )
