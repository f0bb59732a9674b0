"""The figure of `bound_and_gap`, drawn from its result alone."""

import numpy as np

from experiments.descent.bound_and_gap.claims import ranks_agree
from experiments.descent.bound_and_gap.config import PLACE
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.0, 5.2, (2, 3))
    middle = {name: dataset[name].values[len(dataset[name]) // 2] for name in PLACE}
    words = {"depth": "layers", "shots": "n", "noise": "noise", "update_noise": "c, chosen freely"}
    series = ["bound, g = 0", "bound, g the mean", "gap, updates with noise", "gap"]
    lost, b = 0, settings.largest_loss
    for ax, (along, word) in zip(axes, words.items(), strict=False):
        fixed = {name: at for name, at in middle.items() if name != along}
        there, x = dataset.sel(fixed), dataset[along].values
        shown = [there.bound, there.centred_bound, there.noisy_gap, there.gap]
        if along == "update_noise":
            shown = [there.other_bound]
            style.line(ax, x, np.full(len(x), there.gap.median()), None, style.COLOURS[3])
            ax.axvline(settings.update_noise, color="grey", lw=0.8, ls=":")
        for i, (values, text) in enumerate(zip(shown, series, strict=False)):
            values = values.transpose("group", along).values
            values = np.where(values > 0, values, np.nan)  # no place on a logarithmic axis
            beside = x + 0.02 * (i - 1.5) * x[-1] if len(shown) > 1 else x
            lost += style.band(ax, beside, values, text, style.COLOURS[i], style.MARKERS[i])
        ax.axhline(b, color="grey", lw=0.8, ls="--", label="largest loss")
        ax.set_xticks(x)
        style.log_axes(ax, x=along == "update_noise", y=True)
        ax.set(xlabel=word, ylabel="bound, gap")
        ax.set_title(", ".join(f"{words[name]} {at:g}" for name, at in fixed.items()))
    ax = axes[4]
    for i, n in enumerate(dataset.shots.values):
        for j in range(dataset.sizes["noise"]):
            here = dataset.sel(shots=n).isel(noise=j).median("group")
            looks = {"color": style.COLOURS[i % 6], "label": None if j else f"n = {n:g}"}
            ax.plot(here.gap, here.bound, style.MARKERS[j % 6], **looks)
    style.log_axes(ax, x=True)
    ax.set(xlabel="gap, median of the tasks", ylabel="bound, g = 0")
    ax.set_title("all settings")
    ax.legend()
    axes[5].legend(*axes[0].get_legend_handles_labels(), loc="center left")
    axes[5].set_title("", loc="left")
    axes[5].set_axis_off()
    overall, equal_n, count = (found.mean() for found in ranks_agree(dataset))
    margins = (dataset.other_bound - np.abs(dataset.gap)).mean("group").min(PLACE)
    broken = [f"{c:g}" for c in dataset.update_noise.values[margins < 0]]
    style.caption(
        drawn,
        f"A2's bound with C = cI, c = {settings.update_noise:g} (d: dotted), beside the gap of "
        f"squared errors clipped at {b:g}. In some setting the bound is below the gap at c = "
        f"{', '.join(broken) or 'none'} of d. Rank correlation with it: bound {overall:.2f}, at "
        f"equal n {equal_n:.2f}, 1/√n alone {count:.2f}. Caveats: descent is deterministic given "
        f"the prompt, so the noise C is added for the proof, c is free, and without it the bound "
        f"is infinite; weights come from pretraining, and 1/n with small n makes it loose. Median "
        f"of {settings.groups} tasks of {settings.prompts} prompts and the middle 80 % of them; "
        f"{lost} left out as not positive. e: circles, squares, ... are growing label noise.",
    )
    return drawn
