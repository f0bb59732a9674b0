"""Paths of the effective step and of modes beside their laws."""

from itertools import pairwise

import numpy as np

from experiments.one_layer.training_dynamics import claims
from experiments.one_layer.training_dynamics.claims import crossings, delays, distance_from_law
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

TRAINED = style.METHOD["linear"]["color"]


def plot(dataset):
    return style.panels(dataset, 2.8, isotropic, modes)


def appendix(dataset):
    """The loss of separate heads, beside the plateaus of the formula."""
    figure, (ax,) = style.figure(3.25, 2.3, first="c")
    times = dataset.head_time.values
    style.line(ax, times, dataset.head_loss)
    for value in dataset.plateau.values:
        ax.axhline(value, color="grey", lw=0.8, ls="--")
    direct_label(ax, times[-1], dataset.plateau.values[0], "plateaus, formula", "dimgrey", (-2, -2))
    style.log_axes(ax, x=True)
    ax.set(xlabel="time", ylabel="loss", xlim=(times[1], times[-1]), title="Heads learn in turn")
    return figure


def isotropic(ax, dataset):
    limit, times = dataset["limit"].item(), dataset.step_stochastic_time.values
    paths, law, population = (
        100 * dataset[name].mean("step_entry") / limit
        for name in ("step_stochastic", "step_stochastic_law", "step_population")
    )
    style.band(ax, times, paths.transpose("run", ...), None, TRAINED, marker=None)
    style.line(ax, times, law)
    few = slice(None, None, max(1, len(times) // 20))
    ax.plot(dataset.step_population_time[few], population[few], "o", color="grey", mfc="white")
    half = dataset.half_time.item()
    ax.axvline(half, color="grey", lw=0.8, ls="--")
    off = 100 * evidence(claims, dataset)[1]["samples"].mean()
    direct_label(ax, half, 2, "half-time, formula", "dimgrey", (3, 2))
    for place, text, color in (
        (0.62, "logistic law", style.BLACK),
        (0.5, f"samples: {off:.2g} % off on average", TRAINED),
        (0.38, "population loss: circles", "dimgrey"),
    ):
        direct_label(ax, 1.5 * half, 100 * place, text, color, (3, 0))
    ax.set(xlabel="time = steps × rate", ylabel="effective step, % of its limit")
    ax.set_title("The step follows the logistic law")


def modes(ax, dataset):
    """Each mode beside its law, with how much later than the one before it is half-way."""
    from matplotlib import colormaps

    times, values = dataset.mode_stochastic_time.values, dataset.mode_entry.values
    shades = colormaps["viridis"](np.linspace(0, 0.85, len(values)))
    halves = []
    for value, shade in zip(values, shades, strict=True):
        mode = dataset.sel(mode_entry=value)
        paths = 100 * (mode.mode_stochastic / mode.mode_limit).transpose("run", ...)
        style.band(ax, times, paths, None, shade, marker=None)
        law = 100 * mode.mode_population_law / mode.mode_limit
        style.line(ax, dataset.mode_population_time, law, style="--")
        low, high = (crossings(times, paths.values, np.array([y])) for y in (50, 70))
        if np.isfinite(np.median(low)):
            halves.append(np.median(low))
        if np.isfinite(np.median(high)):
            direct_label(ax, np.median(high), 70, f"λ = {value:g}", shade, (-3, 0))
    ratios = np.median(delays(dataset), 0)
    for (before, after), ratio in zip(pairwise(sorted(halves)), ratios, strict=False):
        direct_label(ax, np.sqrt(before * after), 50, f"× {ratio:.2g}", "dimgrey", (0, 0))
    style.log_axes(ax, x=True)
    ax.set(xlabel="time", ylabel="mode, % of its limit", xlim=(times[1], times[-1]))
    ax.set_title("Smaller modes wait their turn")


def caption(dataset) -> str:
    config, (_, measured) = results.config_of(dataset), evidence(claims, dataset)
    eigenvalues = ", ".join(f"{value:g}" for value in config.eigenvalues)
    population = 100 * float(distance_from_law(dataset, "population").max())
    return (
        "Training on fresh samples is off the logistic law by "
        f"{100 * measured['samples'].mean():.2g} % of the limit, on average over time. Descent on "
        f"the population loss is never more than {population:.2g} % off. Each mode takes at least "
        f"{measured['order'].min():.2g} times the time of the one before. Black lines are laws. "
        f"Bands are the middle 80 % of runs on fresh batches of {config.batch}. Eigenvalues λ are "
        f"{eigenvalues}."
    )
