"""The peak over prompts, the change over tasks, how fast d is large, and what is judged."""

import numpy as np

from experiments.one_layer.finite_pretraining.claims import (
    deviations,
    extrapolated,
    judged_taus,
    samples,
)
from experiments.one_layer.finite_pretraining.config import statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

COLOURS = style.COLOURS[3:]  # of numbers of tasks and of risks: no method has them with a ring


def plot(dataset):
    figure, axes = style.figure(6.75, 5.0, (2, 2))
    over_prompts(axes[0], dataset)
    over_tasks(axes[1], dataset)
    over_sizes(axes[2], dataset)
    judged(axes[3], dataset)
    return figure


def over_prompts(ax, dataset):
    first = dataset.isel(alpha=0, d=-1).sel(risk="new tasks")
    for kappa, color, marker in zip(dataset.kappa.values[[0, -1]], COLOURS, "os", strict=False):
        own = first.sel(kappa=kappa)
        style.line(ax, own.line, own.over_tau, f"{kappa:g} d tasks", color)
        look = {"fmt": marker, "color": color, "mfc": "white", "capsize": 2}
        style.mean_points(ax, own.tau, own.measured.transpose("run", "tau"), **look)
    style.log_axes(ax, x=True, y=True, ticks=(0.1, 0.25, 0.5, 1, 2, 4, 10))
    ax.set(xlabel="prompts N / d²", ylabel="risk on new tasks", ylim=(None, 30))
    ax.set_title(f"n = {float(dataset.alpha[0]):g} d")
    ax.legend()


def over_tasks(ax, dataset):
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


def over_sizes(ax, dataset):
    """Each judged place's mean deviation at 1/d, and where the line through two sizes ends."""
    away = judged_taus(dataset)
    each = deviations(dataset).isel(tau=away).mean("run")
    end = extrapolated(dataset).isel(tau=away).mean("run")
    inverse = np.append(1 / dataset.d.values, 0)
    for name, color, marker in zip(dataset.risk.values, COLOURS, "os", strict=False):
        at_sizes = each.sel(risk=name).transpose("d", ...).values.reshape(len(dataset.d), -1)
        rows = np.vstack([at_sizes, end.sel(risk=name).values.reshape(1, -1)])
        ax.plot(inverse, 100 * rows, "-", color=color, lw=0.5, alpha=0.6)
        look = {"color": color, "mfc": "white", "ls": "none", "marker": marker}
        ax.plot(inverse, 100 * rows[:, :1], label=name, **look)
        ax.plot(inverse, 100 * rows[:, 1:], **look)
    ax.axhline(0, color="grey", lw=0.8)
    ax.set_xticks(inverse, [*(f"1/{d}" for d in dataset.d.values), "0"])
    ax.set(xlabel="1 / d", ylabel="simulation over closed form, %", title="every judged place")
    ax.legend()


def judged(ax, dataset):
    labels = {
        "closed_form_new": "new tasks:\ndeviation",
        "closed_form_pretraining": "own tasks:\ndeviation",
    }
    rows = statements(results.config_of(dataset))
    judged_panel.rows(ax, rows, samples(dataset), labels, (-0.25, 0.25))
    ax.axvline(0, color="grey", lw=0.8)
    ax.set(xlabel="share of the closed form", title="what is judged, d to infinity")


def caption(dataset) -> str:
    config, values = results.config_of(dataset), samples(dataset)
    peak, few, many = (
        float(np.exp(np.log(values[id]).mean())) for id in ("peak", "memorised", "learned")
    )
    return (
        f"A layer needs more than d² prompts and more than d tasks: its risk on new tasks is "
        f"{peak:.2g} times higher near N = d² than on both sides, and {few:.2g} times that on its "
        f"own tasks with {config.kappas[0]:g} d of them, {many:.2g} times with "
        f"{config.kappas[-1]:g} d. Lines: closed form for d to infinity (Lu et al. 2405.11751); "
        f"points: mean of {config.runs} fits at d = {config.sizes[-1]}, exact risks, 95 % "
        f"intervals. b, dotted: prompts without end and n = 1000 d. c: means over runs at every "
        f"judged place. d: {judged_panel.KEY}. Noise variance {config.noise_var:g}."
    )
