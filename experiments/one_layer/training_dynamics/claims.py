"""What `training_dynamics` judges: how far descent is from its laws, and when it is half-way."""

from functools import partial

import numpy as np

from lsa_lab.judging.statements import Statement

SOURCE = "derived here from Zhang et al. 2306.09927"


def half_time_errors(dataset) -> np.ndarray:  # [R]
    """|measured / formula - 1| of the time to half of the limit."""
    steps = dataset.step_stochastic.mean("step_entry").transpose("run", ...).values
    level = np.array([dataset["limit"].item() / 2])
    halves = crossings(dataset.step_stochastic_time.values, steps, level)
    return np.abs(halves / dataset.half_time.item() - 1)


def distance_from_law(dataset, kind):  # -> [(R,) t]
    """|a - law| / a(∞) at every time; of a and of its law, the mean over the diagonal."""
    path, law = (dataset[f"step_{kind}{end}"].mean("step_entry") for end in ("", "_law"))
    return np.abs(path - law) / dataset["limit"].item()


def delays(dataset) -> np.ndarray:  # [R, modes - 1]
    """The time to half of its limit of each mode over that of the mode with the next larger λ.

    One that never gets there is taken to do so at the end.
    """
    times = dataset.mode_stochastic_time.values
    paths = dataset.mode_stochastic.transpose("run", "mode_entry", "mode_stochastic_time").values
    reached = crossings(times, paths, dataset.mode_limit.values[None, :, None] / 2)
    reached = np.where(np.isfinite(reached), reached, times[-1])
    order = np.argsort(dataset.mode_entry.values)[::-1]
    return reached[:, order][:, 1:] / reached[:, order][:, :-1]


def crossings(times, paths, levels):  # [t], [..., t], [..., 1] -> [...]
    """When each path first reaches its level, by linear interpolation; NaN if it never does."""
    above = paths >= levels
    after = np.maximum(above.argmax(-1), 1)[..., None]
    y0, y1 = (np.take_along_axis(paths, i, -1)[..., 0] for i in (after - 1, after))
    t0, t1 = times[after[..., 0] - 1], times[after[..., 0]]
    with np.errstate(divide="ignore", invalid="ignore"):
        when = t0 + (t1 - t0) * (np.broadcast_to(levels, paths.shape)[..., 0] - y0) / (y1 - y0)
    return np.where(above.any(-1), when, np.nan)


def statements(config) -> tuple[Statement, ...]:
    again = partial(Statement, redrawn=f"{config.runs} fresh runs, 8 before")
    return (
        again(
            "samples",
            SOURCE,
            "Descent on fresh samples, with every entry free, follows the logistic law of the flow",
            "|a - law| / a(∞), averaged over time",
            at_most=0.05,
            sample=lambda r: distance_from_law(r, "stochastic").mean("step_stochastic_time").values,
        ),
        again(
            "half_time",
            SOURCE,
            "On samples half of the limit is reached after ln(1/(γa_0) - 1) / (2λ²√d)",
            "|measured / formula - 1| of that time",
            at_most=0.05,
            sample=half_time_errors,
        ),
        again(
            "order",
            SOURCE,
            "On samples modes are learnt in the order of the squared eigenvalues",
            "the time to half of a mode's limit over that of the mode before, where least,",
            "ratio",
            at_least=1.0,
            revision="it was the share of runs in that order, which had no spread",
            sample=lambda r: delays(r).min(1),
        ),
    )
