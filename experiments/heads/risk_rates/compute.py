"""The risks of every rule along each axis."""

import numpy as np

from experiments.heads.risk_rates.config import PANELS, RULES, Config
from experiments.heads.risk_rates.losses import Place, draw, losses, penalties


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    panels = places(config)
    everywhere = list(dict.fromkeys(place for row in panels.values() for place in row))
    task = progress and progress.add_task("risk_rates", total=len(everywhere))
    rows = {}
    for i, place in enumerate(everywhere):
        rows[place] = measure(config, place, np.random.default_rng([config.seed, i]))
        if progress:
            progress.update(task, completed=i + 1)
    variables = {}
    for panel, row in panels.items():
        risks, chosen = zip(*(rows[place] for place in row), strict=True)
        variables[panel] = ((PANELS[panel], "rule", "run"), np.stack(risks))
        variables[f"{panel}_chosen"] = ((PANELS[panel], "parameter"), np.stack(chosen))
    axes = {"n": config.lengths, "s": config.sparsities, "d": config.widths}
    coordinates = {axis: list(values) for axis, values in axes.items()}
    return xr.Dataset(
        variables,
        coordinates | {"rule": list(RULES), "parameter": ["steps", "preprocessed steps", "Lasso"]},
    )


def places(config: Config) -> dict[str, list[Place]]:
    """{panel: the place of each of its points}"""
    d, s, longest, middle = config.d, config.s, config.lengths[-1], config.middle
    return {
        "by_n": [Place(n, d, s) for n in config.lengths],
        "by_s": [Place(longest, d, s) for s in config.sparsities],
        "by_d": [Place(longest, d, s) for d in config.widths],
        "short_by_s": [Place(middle, d, s) for s in config.sparsities],
        "short_by_d": [Place(middle, d, s) for d in config.widths],
    }


def measure(config: Config, place: Place, rng) -> tuple[np.ndarray, np.ndarray]:
    """Mean losses [RULES, R]; the numbers of steps and the penalty's place on its grid [3]."""
    counts = (config.runs * config.prompts, config.tuning)
    batches = [draw(rng, place, config.noise_var, count) for count in counts]
    parameters = penalties(place, config.noise_var)
    each, chosen = losses(*batches, *parameters, doublings=config.doublings)
    risks = np.asarray(each).reshape(len(RULES), config.runs, config.prompts).mean(2)
    return risks, np.array([*(2 ** np.asarray(chosen[:2])), int(chosen[2])])
