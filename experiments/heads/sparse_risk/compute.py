"""Which rules can use sparsity in context, and how much do they gain?"""

from experiments.heads.sparse_risk.config import Config
from experiments.heads.sparse_risk.places import PLAIN, RULES, axes_of, measure, places

SQUARES, DESCENT, RIDGE, PREPROCESSED, LASSO = PLAIN


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    panels = places(config)
    wide = {"wide": panels.pop("wide")}
    found = measure(config, panels, config.prompts, config.tuning, 0)
    found |= measure(config, wide, config.wide_prompts, config.wide_tuning, 2)
    variables, coordinates = {}, {"rule": list(RULES), "descent": [DESCENT, PREPROCESSED]}
    for panel, axes in axes_of(config).items():
        shape = [len(values) for values in axes.values()]
        for name, more, values in zip(
            ("", "_steps", "_bound"), (("rule", "run"), ("descent",), ()), found[panel], strict=True
        ):
            variables[panel + name] = ((*axes, *more), values.reshape(*shape, *values.shape[1:]))
        coordinates |= {axis: list(values) for axis, values in axes.items()}
    return xr.Dataset(variables, coordinates)
