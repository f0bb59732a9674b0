"""The figure of `grads`, drawn from its result alone."""

import numpy as np

from experiments.flow.grads.claims import against_rivals
from experiments.flow.grads.selecting import PROMPTS
from experiments.flow.grads.selection_cases import SETTINGS
from lsa_lab import results
from lsa_lab.harness import style
from lsa_lab.statistics import mean_interval

LOOKS = {  # rule: colour, marker
    "random": ("grey", "P"),
    "relevance × determinantal": (style.COLOURS[5], "v"),
    "similarity": (style.COLOURS[3], "D"),
    "residual": (style.COLOURS[4], "^"),
    "relevance": (style.COLOURS[2], "s"),
    "flow × input": (style.COLOURS[0], "o"),
    "contribution, recomputed": (style.COLOURS[0], "*"),
    "GradS": (style.COLOURS[1], "o"),
}


TITLES = ("weights know half", "with duplicates", "a real table")


def draw_rules(ax, x, share):
    """Of every rule, side by side; how many numbers are not finite."""
    lost = 0
    for i, (rule, (color, marker)) in enumerate(LOOKS.items()):
        values, beside = share.sel(rule=rule), x * 1.025 ** (i - len(LOOKS) / 2)
        lost += style.band(ax, beside, values, rule, color, marker)
        ax.plot(beside, np.median(values, axis=0), color=color, lw=0.8)
    ax.set(ylabel="error / error without")
    return lost


def plot(dataset):
    from matplotlib.ticker import PercentFormatter

    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.0, 6.8, (2, 3))
    shots, pools, layers = (dataset[name].values for name in ("shots", "pool", "layer"))
    k, looks = settings.judged, list(zip(SETTINGS, style.COLOURS, style.MARKERS, strict=False))
    share = dataset.error / dataset.end.sel(prompting="zero-shot")
    here, lost = share.sel(pool=settings.pool), 0
    for i, (ax, setting) in enumerate(zip(axes, SETTINGS, strict=False)):
        lost += draw_rules(ax, shots, here.sel(setting=setting).transpose(..., "run", "shots"))
        style.log_axes(ax, x=True, y=i == 0, ticks=shots)
        ax.set(xlabel=f"demonstrations of a pool of {settings.pool}")
        ax.set_title(TITLES[i])
    larger = share.sel(setting="prior", shots=k).transpose(..., "run", "pool")
    lost += draw_rules(axes[3], pools, larger)
    ratio = dataset.best / dataset.end.sel(pool=settings.small, prompting="zero-shot")
    best = float(ratio.sel(setting="prior").median())
    axes[3].plot(settings.small, best, "x", color=style.BLACK)
    axes[3].annotate("best subset", (settings.small, best), (-5, -11), textcoords="offset points")
    style.log_axes(axes[3], x=True, y=True, ticks=pools)
    axes[3].set(xlabel="pool")
    axes[3].set_title(f"{k} shots from larger pools")
    for setting, color, marker in looks:
        for prompt, face in zip(PROMPTS, (color, "none"), strict=True):
            at = dataset.layer_error.sel(setting=setting, prompt=prompt, shots=k)
            values = (at / at.sel(layer=1)).median("run")
            label = f"{setting}, {prompt}"
            axes[4].plot(layers, values, f"{marker}-", color=color, mfc=face, lw=0.8, label=label)
        gains = [against_rivals(dataset, setting, some)[1] for some in settings.shots]
        middle, ends = np.mean(gains, 1), np.array([mean_interval(some) for some in gains]).T
        bars = {"yerr": np.abs(ends - middle), "capsize": 2, "lw": 0.8}
        axes[5].errorbar(shots, middle, fmt=f"{marker}-", color=color, label=setting, **bars)
    axes[4].set(xlabel="layer of the flow", ylabel="error / that by layer 1", xticks=layers)
    axes[4].set_title(f"GradS from each layer, {k} shots")
    axes[5].axhline(0, color="grey", lw=0.8)
    for bound, name, dash in ((settings.headline, "A1", "--"), (settings.later, "A1, later", ":")):
        axes[5].axhline(bound, color=style.BLACK, lw=0.8, ls=dash, label=f"{name}: {bound:.1%}")
    style.log_axes(axes[5], x=True, ticks=shots)
    axes[5].set(xlabel="demonstrations", ylabel="gain over the strongest rival")
    axes[5].yaxis.set_major_formatter(PercentFormatter(1))
    axes[5].set_title("GradS against the rest")
    for ax in axes[4:]:
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + 0.3 * (high - low))
        ax.legend(ncols=2, loc="upper center", columnspacing=1)
    drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    style.caption(drawn, message(dataset, lost))
    return drawn


def message(dataset, lost):
    settings = results.config_of(dataset)
    found = {name: against_rivals(dataset, name, settings.judged) for name in SETTINGS}
    gains = [f"{gains.mean():+.0%} ({name}: {rival})" for name, (rival, gains) in found.items()]
    seeing = (dataset.oracle.sel(shots=settings.judged) / dataset.zero_shot).median("run")
    whole = dataset.end.sel(pool=settings.pool)
    whole = (whole.sel(prompting="whole pool") / whole.sel(prompting="zero-shot")).median("run")
    return (
        f"At {settings.judged} shots GradS (the norm of Eq. 2) gains {', '.join(gains)} in squared "
        f"error over the rival that is strongest on other queries; A1's {settings.headline:.1%} "
        f"and {settings.later:.1%} are of scores on language tasks. The contribution, recomputed "
        "after each pick, asks what the chosen ones left open. Not drawn twice: the slot's flow is "
        "GradS, the label's the relevance, and the contribution flow × input. An oracle that sees "
        f"the answer leaves {pair(seeing)} of the error, the whole pool {pair(whole)} (a / b / c). "
        f"Median of {settings.runs} runs and the middle 80 % of them (f: mean and its 95 % "
        f"interval), {settings.queries} queries each; {lost} left out as not finite. Learner: "
        f"{settings.depth} steps of 1/λ_max."
    )


def pair(values):
    return " / ".join(f"{float(value):.1%}" for value in values)
