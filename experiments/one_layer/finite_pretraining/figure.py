"""The peak over prompts, and the change over tasks."""

import numpy as np

from experiments.one_layer.finite_pretraining import claims
from lsa_lab.harness.draw import style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

COLOURS = style.COLOURS[3:]  # of risks: no method has them with a ring
KAPPAS = ("0.6", style.BLACK)  # of few tasks and of many


def plot(dataset):
    return style.panels(dataset, 2.8, plot_prompts, plot_tasks)


def plot_prompts(ax, dataset):
    first = dataset.isel(alpha=-1, d=-1).sel(risk="new tasks")
    for kappa, color, marker in zip(dataset.kappa.values[[0, -1]], KAPPAS, "^D", strict=False):
        own = first.sel(kappa=kappa)
        style.line(ax, own.line, own.over_tau, f"{kappa:g} d tasks", color)
        look = {"fmt": marker, "color": color, "mfc": "white", "capsize": 2}
        style.mean_points(ax, own.tau, own.measured.transpose("run", "tau"), **look)
    style.log_axes(ax, x=True, y=True, ticks=(0.1, 0.25, 0.5, 1, 2, 4, 10))
    ax.set(xlabel="prompts N / d²", ylabel="risk on new tasks", ylim=(None, 30))
    ax.set_title("The risk peaks at N = d² prompts")
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
    ax.set(xlabel="tasks k / d", ylabel="risk", title="Few tasks are memorised")
    ax.legend()


def caption(dataset) -> str:
    config, (_, values) = results.config_of(dataset), evidence(claims, dataset)
    peak, few, many = (
        float(np.exp(np.log(values[id]).mean())) for id in ("peak", "memorised", "learned")
    )
    return (
        f"Just above N = d² prompts a layer's risk on new tasks is at least {peak:.2g} times that "
        f"at {config.taus[1]:g} d² or {config.taus[-2]:g} d². With {config.kappas[0]:g} d tasks "
        f"it memorises them: new ones have {few:.2g} times their risk. With {config.kappas[-1]:g} "
        f"d tasks the ratio is {many:.2g}. Lines are the closed form (2405.11751). In b solid "
        f"ones have {config.taus[-1]:g} d² prompts, and dotted ones no end of them. Points are "
        f"means at d = {config.sizes[-1]} with {level()} intervals."
    )
