"""Errors by what the rules select, by the layer of the flow, and GradS against its rivals."""

import numpy as np

from experiments.flow.grads.claims import against_rivals, last_layer
from experiments.flow.grads.config import PROMPTS, TASKS
from lsa_lab import results
from lsa_lab.claims import verdict_of
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
OUTCOMES = {"holds": "wins", "fails": "loses", "undecided": "is undecided"}


def shares(dataset):
    """Errors over those without demonstrations."""
    return (dataset.error / dataset.end.sel(prompting="zero-shot")).transpose(..., "run", "shots")


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(9.0, 6.2, (2, 3))
    share, shots = shares(dataset).sel(rule=list(LOOKS)), dataset.shots.values
    for i, (ax, task) in enumerate(zip(axes, TASKS, strict=False)):
        _draw_rules(ax, shots, share.sel(pool=config.pool, setting=task))
        style.log_axes(ax, x=True, y=i == 0, ticks=shots)
        ax.set(xlabel=f"demonstrations of a pool of {config.pool}")
        ax.set_title(TITLES[i])
    _draw_pools(axes[3], dataset, share, config)
    _draw_layers(axes[4], dataset, config)
    _draw_gains(axes[5], dataset, config)
    for ax in axes[4:]:
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + 0.3 * (high - low))
        ax.legend(ncols=2, loc="upper center", columnspacing=1)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    rivals = {task: against_rivals(dataset, task, config.judged) for task in TASKS}
    prior, duplicates, table = (_outcome(gains, config.gain) for _, gains in rivals.values())
    names = " / ".join(name for name, _ in rivals.values())
    layers = " and ".join(str(last_layer(dataset, prompt)[0]) for prompt in PROMPTS)
    oracle = (dataset.oracle.sel(shots=config.judged) / dataset.zero_shot).median("run")
    end = dataset.end.sel(pool=config.pool)
    whole = (end.sel(prompting="whole pool") / end.sel(prompting="zero-shot")).median("run")
    share = shares(dataset).sel(rule=list(LOOKS))
    of_pools = share.sel(setting="prior", shots=config.judged)
    lost = style.missing(share.sel(pool=config.pool)) + style.missing(of_pools)
    return (
        f"Against its strongest rival GradS {prior[0]} where weights know half the task "
        f"({prior[1]}), {duplicates[0]} with duplicates ({duplicates[1]}) and "
        f"{table[0]} on a real table ({table[1]}). "
        f"Gains in squared error at {config.judged} shots, GradS being the norm of Eq. 2, over the "
        f"rival that is strongest on other queries ({names}); A1's {config.headline:.1%} "
        f"and {config.later:.1%} are of scores on language tasks. The contribution, recomputed "
        "after each pick, asks what the chosen ones left open. Not drawn twice: the slot's flow is "
        "GradS, the label's the relevance, and the contribution flow × input. The earlier layers "
        f"that are best on other queries, alone and in the pool: {layers}. An oracle that sees "
        f"the answer leaves {_triple(oracle)} of the error, the whole pool {_triple(whole)} "
        f"(a / b / c). Median of {config.runs} runs and the middle 80 % of them (f: mean and its "
        f"95 % interval), {config.queries} queries each; {lost} left out as not finite. Learner: "
        f"{config.depth} steps of 1/λ_max."
    )


def _outcome(gains, bound):
    """As ("wins", "+22%")."""
    verdict = verdict_of(mean_interval(gains), at_least=bound)
    return OUTCOMES[verdict], f"{gains.mean():+.0%}".replace("-", "\u2212")


def _triple(values):
    return " / ".join(f"{float(value):.1%}" for value in values)


def _draw_rules(ax, x, share):  # [rules, R, len(x)]
    """All rules side by side."""
    for i, (rule, (color, marker)) in enumerate(LOOKS.items()):
        values, beside = share.sel(rule=rule), x * 1.025 ** (i - len(LOOKS) / 2)
        style.band(ax, beside, values, rule, color, marker)
        ax.plot(beside, np.median(values, axis=0), color=color, lw=0.8)
    ax.set(ylabel="error / error without")


def _draw_pools(ax, dataset, share, config):
    pools = dataset.pool.values
    larger = share.sel(setting="prior", shots=config.judged).transpose("rule", "run", "pool")
    _draw_rules(ax, pools, larger)
    ratio = dataset.best / dataset.end.sel(pool=config.small, prompting="zero-shot")
    best = float(ratio.sel(setting="prior").median())
    ax.plot(config.small, best, "x", color=style.BLACK)
    ax.annotate("best subset", (config.small, best), (-5, -11), textcoords="offset points")
    style.log_axes(ax, x=True, y=True, ticks=pools)
    ax.set(xlabel="pool")
    ax.set_title(f"{config.judged} shots from larger pools")


def _draw_layers(ax, dataset, config):
    layers = dataset.layer.values
    for task, color, marker in zip(TASKS, style.COLOURS, style.MARKERS, strict=False):
        for prompt, face in zip(PROMPTS, (color, "none"), strict=True):
            errors = dataset.layer_error.sel(setting=task, prompt=prompt, shots=config.judged)
            values = (errors / errors.sel(layer=1)).median("run")
            label = f"{task}, {prompt}"
            ax.plot(layers, values, f"{marker}-", color=color, mfc=face, lw=0.8, label=label)
    ax.set(xlabel="layer of the flow", ylabel="error / that by layer 1", xticks=layers)
    ax.set_title(f"GradS from each layer, {config.judged} shots")


def _draw_gains(ax, dataset, config):
    from matplotlib.ticker import PercentFormatter

    for task, color, marker in zip(TASKS, style.COLOURS, style.MARKERS, strict=False):
        gains = [against_rivals(dataset, task, shots)[1] for shots in config.shots]
        look = {"fmt": f"{marker}-", "color": color, "capsize": 2, "lw": 0.8}
        style.mean_points(ax, config.shots, np.transpose(gains), task, **look)
    ax.axhline(config.gain, color="grey", lw=0.8)
    for bound, name, dash in ((config.headline, "A1", "--"), (config.later, "A1, later", ":")):
        ax.axhline(bound, color=style.BLACK, lw=0.8, ls=dash, label=f"{name}: {bound:.1%}")
    style.log_axes(ax, x=True, ticks=config.shots)
    ax.set(xlabel="demonstrations", ylabel="gain over the strongest rival")
    ax.yaxis.set_major_formatter(PercentFormatter(1))
    ax.set_title("GradS against the rest")
