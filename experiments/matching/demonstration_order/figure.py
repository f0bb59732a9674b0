"""The figure of `demonstration_order`, drawn from its result alone."""

import numpy as np

from experiments.matching.demonstration_order.ordering import (
    RULES,
)
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.0, 4.0, (1, 2))
    lost, places, names = 0, np.arange(len(RULES)), list(dataset.model.values)
    useful = names[names.index("descent") :]
    for i, model in enumerate(names):
        runs = 100 * dataset.change.sel(model=model).transpose("run", "rule").values
        ax = axes[0] if model.startswith("random") else axes[1]
        spot = places + 0.2 * (i - (0.5 if ax is axes[0] else 3))
        lost += style.band(ax, spot, runs, model, style.COLOURS[i], style.MARKERS[i])
    for ax, title in zip(axes, ("random weights", "constructed and trained"), strict=True):
        ax.axhline(0, color="grey", lw=0.8)
        ax.axhline(-100 * settings.gain, color="grey", lw=0.8, ls="--")
        ax.set_xticks(places, RULES, rotation=35, ha="right", rotation_mode="anchor")
        ax.set_title(title)
        ax.legend()
    axes[0].set_ylabel("change of the error against random orders, %")
    best = {m: int(dataset.change.sel(model=m).median("run").argmin("rule")) for m in names}
    gain = (100 * dataset.change.median("run")).min("rule")
    said = "; ".join(f"{m}: {RULES[best[m]]}, {float(gain.sel(model=m)):.2g} %" for m in useful)
    luck = 100 * dataset.luck.median("run")
    finished = int((dataset.status != "diverged").sum())
    style.caption(
        drawn,
        f"Causal stacks of {settings.depth} layers, {settings.n} demonstrations, trained on "
        f"random orders. The rule that helps most: {said}. The luckiest of "
        f"{settings.random_orders} random orders of each prompt, known in hindsight, would give "
        + ", ".join(f"{float(luck.sel(model=m)):.0f} %" for m in useful)
        + ". Dashes: what counts as help. Without the causal mask every change is 0. Median of "
        f"{settings.runs} runs and the middle 80 % of them; {lost} left out as not finite; "
        f"{finished} of {dataset.status.size} trainings finished; of each run's prompts the "
        f"{100 * settings.left_out:.0f} % with the largest errors are left out. d = {settings.d}.",
    )
    return drawn
