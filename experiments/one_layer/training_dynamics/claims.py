"""How far descent is from its laws, and when it reaches half of its limits, for each run."""

import numpy as np


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    limit, half_time = dataset["limit"].item(), dataset.half_time.item()
    steps = dataset.step_stochastic.mean("step_entry").transpose("run", ...).values
    halves = crossings(dataset.step_stochastic_time.values, steps, np.array([limit / 2]))
    return {
        "samples": distance_from_law(dataset, "stochastic").mean("step_stochastic_time").values,
        "half_time": np.abs(halves / half_time - 1),
        "order": delays(dataset).min(1),
    }


def distance_from_law(dataset, kind):  # -> [(R,) t]
    """|a - law| / a(∞) at every time; of a and of its law, the mean over the diagonal."""
    path, law = (dataset[f"step_{kind}{of}"].mean("step_entry") for of in ("", "_law"))
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
