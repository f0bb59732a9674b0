"""What every rule loses at every place of the six panels, on common prompts."""

from experiments.heads.sparse_risk.config import DESCENT, PREPROCESSED, RULES, Config, axes_of
from experiments.heads.sparse_risk.places import measure, places


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    panels = places(config)
    wide = {"wide": panels.pop("wide")}
    rows = measure(config, panels, config.prompts, config.tuning, 0)
    rows |= measure(config, wide, config.wide_prompts, config.wide_tuning, 2)
    variables, coordinates = {}, {"rule": list(RULES), "descent": [DESCENT, PREPROCESSED]}
    for panel, axes in axes_of(config).items():
        shape = [len(values) for values in axes.values()]
        for name, more, values in zip(
            ("", "_steps", "_bound"), (("rule", "run"), ("descent",), ()), rows[panel], strict=True
        ):
            variables[panel + name] = ((*axes, *more), values.reshape(*shape, *values.shape[1:]))
        coordinates |= {axis: list(values) for axis, values in axes.items()}
    return xr.Dataset(variables, coordinates)
