"""The figure of `covariate_shift`, drawn from its result alone."""

import numpy as np

from experiments.one_layer.covariate_shift.config import LEARNERS, SHIFTS
from lsa_lab import results
from lsa_lab.harness import style
from lsa_lab.statistics import mean_interval


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.0, 3.5, (1, 3))
    blue, red, green = style.COLOURS[:3]
    first, length = len(settings.scales), np.asarray(settings.lengths)
    ax = axes[0]
    style.line(ax, dataset.c, dataset.scale_theory, f"theory, m = n = {settings.n}")
    style.line(ax, dataset.c, dataset.scale_floor, "theory, m = ∞", style="--")
    lost = style.band(ax, settings.scales, dataset.risk[:, :first], "trained layer")
    lost += style.band(ax, settings.scales, dataset.descent, "descent", red, "s")
    ax.set(xlabel="scale c of the covariates", ylabel="risk / tr Λ'")
    style.log_axes(ax, x=True, y=True, ticks=settings.scales)
    ax.set_ylim(bottom=float(dataset.descent.min()) / 2)  # the floor has a zero
    ax = axes[1]
    for i, (c, color) in enumerate(zip(SHIFTS, (blue, green), strict=True)):
        start = first + i * len(length)
        style.line(ax, dataset.m, dataset.length_theory[i], None, color)
        ax.axhline(float(dataset.length_floor[i]), color=color, ls="--", lw=0.8)
        values = dataset.risk[:, start : start + len(length)]
        lost += style.band(ax, length, values, f"trained layer, c = {c:g}", color)
    ax.set(xlabel="demonstrations m at the test", ylabel="risk / tr Λ'")
    style.log_axes(ax, x=True, y=True, ticks=length)
    ax = axes[2]
    for name, color, marker in zip(LEARNERS, (blue, red, green), style.MARKERS, strict=False):
        there = dataset.table_error.sel(learner=name)
        ends = np.array([mean_interval(row) for row in there.values]).T
        middle = there.mean("prompt").values
        bars = {"yerr": np.abs(ends - middle), "capsize": 2}
        ax.errorbar(there.table_length, middle, fmt=f"{marker}-", color=color, label=name, **bars)
    ax.set(xlabel="demonstrations m at the test", ylabel="squared error / variance")
    style.log_axes(ax, x=True, ticks=dataset.table_length.values)
    for ax, title in zip(
        axes, ("another scale", "more demonstrations", "a real table"), strict=True
    ):
        ax.axhline(1.0, color="grey", lw=0.8, ls=":", label="predicting zero")
        ax.set_title(title)
        ax.legend()
    worst, table = float(dataset.length_floor[-1]), dataset.table_error.mean("prompt")
    trained, descent = (float(table.sel(learner=m, table_length=settings.n)) for m in LEARNERS[:2])
    style.caption(
        drawn,
        f"One layer trained on N(0, I) covariates with n = {settings.n}. a, b: d = {settings.d}; "
        f"lines are theory, dashes its floor with unlimited demonstrations ({worst:.2g} at "
        f"c = {SHIFTS[-1]:g}); points the median of {settings.runs} runs and the middle 80 % of "
        f"them; {lost} left out as not finite. c: diabetes table, means with 95 % intervals over "
        f"prompts; at m = n the layer's error is {trained:.3g}, that of descent {descent:.3g}. "
        f"Descent: {settings.descent_steps} steps of each prompt's own 1/λ_max.",
    )
    return drawn
