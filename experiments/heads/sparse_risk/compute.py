"""What every rule loses at every place of the panels, on common prompts, and its rates."""

from experiments.heads.sparse_risk.config import RULES, Config, axes_of
from experiments.heads.sparse_risk.places import measure, places
from experiments.heads.sparse_risk.rates import along_axes
from lsa_lab.store import parts


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    panels = places(config)
    wide = {"wide": panels.pop("wide")}
    rows = measure(config, panels, config.prompts, config.tuning, 0)
    rows |= measure(config, wide, config.wide_prompts, config.wide_tuning, 2)
    variables, coordinates = {}, {"rule": list(RULES)}
    for panel, axes in axes_of(config).items():
        shape, (risks, bounds) = [len(values) for values in axes.values()], rows[panel]
        risks = risks.reshape(*shape, *risks.shape[1:])
        variables[panel] = ((*axes, "rule", "run"), risks)
        variables[f"{panel}_bound"] = (tuple(axes), bounds.reshape(shape))
        coordinates |= {axis: list(values) for axis, values in axes.items()}
    return parts.join(xr.Dataset(variables, coordinates), rates=along_axes(config.rates))
