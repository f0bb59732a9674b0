"""The peak over prompts, the change over tasks, how fast d is large, and what is judged."""

import numpy as np

from experiments.one_layer.finite_pretraining import claims
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

COLOURS = style.COLOURS[3:]  # of risks: no method has them with a ring
KAPPAS = ("0.6", style.BLACK)  # of few tasks and of many


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.5, 2.5), ((1, 1), (1, 1)))
    plot_prompts(axes[0], dataset)
    plot_tasks(axes[1], dataset)
    plot_sizes(axes[2], dataset)
    plot_judged(axes[3], dataset)
    return figure


def plot_prompts(ax, dataset):
    first = dataset.isel(alpha=-1, d=-1).sel(risk="new tasks")
    for kappa, color, marker in zip(dataset.kappa.values[[0, -1]], KAPPAS, "^D", strict=False):
        own = first.sel(kappa=kappa)
        style.line(ax, own.line, own.over_tau, f"{kappa:g} d tasks", color)
        look = {"fmt": marker, "color": color, "mfc": "white", "capsize": 2}
        style.mean_points(ax, own.tau, own.measured.transpose("run", "tau"), **look)
    style.log_axes(ax, x=True, y=True, ticks=(0.1, 0.25, 0.5, 1, 2, 4, 10))
    ax.set(xlabel="prompts N / d²", ylabel="risk on new tasks", ylim=(None, 30))
    ax.set_title(f"n = {float(dataset.alpha[-1]):g} d")
    ax.legend()


def plot_tasks(ax, dataset):
    last = dataset.isel(alpha=-1, d=-1)
    at_last = last.isel(tau=-1)
    for name, color, marker in zip(dataset.risk.values, COLOURS, "os", strict=False):
        own, points = last.sel(risk=name), at_last.sel(risk=name)
        style.line(ax, own.line, own.over_kappa, name, color)
        style.line(ax, own.line, own.limit, None, color, ":")
        look = {"fmt": marker, "color": color, "mfc": "white", "capsize": 2}
        style.mean_points(ax, points.kappa, points.measured.transpose("run", "kappa"), **look)
    style.log_axes(ax, x=True, y=True, ticks=(0.1, 0.5, 1, 2, 4, 10))
    tau, alpha = float(dataset.tau[-1]), float(dataset.alpha[-1])
    ax.set(xlabel="tasks k / d", ylabel="risk", title=f"n = {alpha:g} d, N = {tau:g} d²")
    ax.legend()


def plot_sizes(ax, dataset):
    """Each judged place's geometric mean over runs at 1/d, and where the line through two ends."""
    fits = claims.numbers(dataset)
    ratios = np.log(fits.ratios.isel(tau=fits.far)).mean("run")
    ends = np.log(fits.limits.isel(tau=fits.far)).mean("run")
    inverse = np.append(1 / dataset.d.values, 0)
    for name, color, marker, aside in zip(
        dataset.risk.values, COLOURS, "os", (1, -1), strict=False
    ):
        at_sizes = ratios.sel(risk=name).transpose("d", ...).values.reshape(len(dataset.d), -1)
        rows = np.exp(np.vstack([at_sizes, ends.sel(risk=name).values.reshape(1, -1)]))
        x = inverse + aside * 0.012 * inverse[0]
        look = {"color": color, "mfc": "white", "marker": marker, "ms": 2.5, "lw": 0.4, "mew": 0.6}
        ax.plot(x, rows[:, :1], label=name, **look)
        ax.plot(x, rows[:, 1:], **look)
    style.log_axes(ax, y=True)
    ax.axhline(1, color="grey", lw=0.8)
    ax.set_xticks(inverse, [*(f"1/{d}" for d in dataset.d.values), "0"])
    ax.set_yticks([1, 1.2, 1.5], ["1", "1.2", "1.5"])
    ax.set(xlabel="1 / d", ylabel="simulation / closed form", title="finite d, every judged place")
    ax.invert_xaxis()
    ax.legend()


def plot_judged(ax, dataset):
    style.log_axes(ax, x=True, ticks=(1, 2, 5))
    judged_panel.rows(ax, *evidence(claims, dataset), (0.8, 8))
    ax.axvline(1, color="grey", lw=0.8)
    ax.set(xlabel="ratio of risks", title="what is judged")


def caption(dataset) -> str:
    config, (_, values) = results.config_of(dataset), evidence(claims, dataset)
    peak, few, many = (
        float(np.exp(np.log(values[id]).mean())) for id in ("peak", "memorised", "learned")
    )
    return (
        f"A layer needs more than d² prompts and more than d tasks: near N = d² its risk on new "
        f"tasks is {peak:.2g} times that beside it, and {few:.2g} times that on its own if these "
        f"are {config.kappas[0]:g} d ({config.kappas[-1]:g} d: {many:.2g}). Lines: "
        "closed form for d to infinity (Lu et al. 2405.11751); "
        f"points: mean of {config.runs} fits at d = {config.sizes[-1]}, exact risks, {level()} "
        "intervals. b, dotted: prompts without end and n = 1000 d. c: geometric means over runs, "
        f"prolonged to 1/d = 0. Noise variance {config.noise_var:g}."
    )
