"""What the statements of `training_dynamics` are judged by."""

import numpy as np

from lsa_lab import results
from lsa_lab.claims import Claim, about_the_mean, verdict_of


def crossings(times, paths, levels):  # [..., t], [..., 1] -> [...]
    """When each path first reaches its level, by linear interpolation; NaN if it never does."""
    above = paths >= levels
    after = np.maximum(above.argmax(-1), 1)[..., None]
    y0, y1 = (np.take_along_axis(paths, i, -1)[..., 0] for i in (after - 1, after))
    t0, t1 = times[after[..., 0] - 1], times[after[..., 0]]
    with np.errstate(divide="ignore", invalid="ignore"):
        when = t0 + (t1 - t0) * (np.broadcast_to(levels, paths.shape)[..., 0] - y0) / (y1 - y0)
    return np.where(above.any(-1), when, np.nan)


def claims(dataset):
    settings = results.config_of(dataset)
    limit, half = float(dataset["limit"]), float(dataset.half_time)
    source = "derived here from Zhang et al. 2306.09927"
    mean = {
        kind: dataset[f"step_{kind}"].mean("step_entry") for kind in ("population", "stochastic")
    }
    laws = {kind: dataset[f"step_{kind}_law"].mean("step_entry") for kind in mean}
    worst = float(np.abs(mean["population"] - laws["population"]).max()) / limit
    off = np.abs(mean["stochastic"] - laws["stochastic"]).mean("step_stochastic_time") / limit
    times = dataset.step_stochastic_time.values
    halves = crossings(
        times, mean["stochastic"].transpose("run", ...).values, np.array([limit / 2])
    )
    modes = dataset.mode_stochastic.transpose("run", "mode_entry", "mode_stochastic_time").values
    reached = crossings(
        dataset.mode_stochastic_time.values, modes, dataset.mode_limit.values[None, :, None] / 2
    )
    order = np.argsort(dataset.mode_entry.values)[::-1]
    # A mode that never reaches its half is not in order: NaN compares as false.
    ordered = (np.diff(reached[:, order], axis=1) > 0).all(1)
    return [
        Claim(
            "training_dynamics.population",
            source,
            "The effective step of isotropic training follows a logistic law",
            f"largest |a - law| / a(∞) of descent on the population loss <= "
            f"{settings.population_error}",
            worst,
            (worst, worst),
            verdict_of((worst, worst), at_most=settings.population_error),
        ),
        about_the_mean(
            "training_dynamics.samples",
            source,
            "Descent on fresh samples, with every entry free, follows the same law",
            f"mean over time of |a - law| / a(∞) <= {settings.stochastic_error}",
            off,
            at_most=settings.stochastic_error,
        ),
        about_the_mean(
            "training_dynamics.half_time",
            source,
            "Half of the limit is reached after ln(1/(γa_0) - 1) / (2λ²√d)",
            f"|measured / formula - 1| <= {settings.half_time_error}",
            np.abs(halves / half - 1),
            at_most=settings.half_time_error,
        ),
        about_the_mean(
            "training_dynamics.order",
            source,
            "Modes are learnt in the order of the squared eigenvalues",
            f"share of runs whose modes reach half of their limits in that order >= "
            f"{settings.ordered_share}",
            ordered.astype(float),
            at_least=settings.ordered_share,
        ),
    ]
