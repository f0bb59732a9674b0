"""In-context accuracy of the family by demonstrations, and as it emerges in training."""

import numpy as np

from experiments.language.data_sets import called
from experiments.language.lm_family import claims
from lsa_lab.harness.draw import style
from lsa_lab.store import results

TITLES = {
    "all": ("Two layers that copy learn", "Learning comes late, and at once"),
    "some": ("Some decoders learn from demonstrations", "Learning, run by run"),
    "none": ("Demonstrations do not help", "Training has not changed that"),
}
WHO = {
    "all": "Decoders of two layers or more that are shown copying learn",
    "some": "Some decoders learn",
    "none": "None of the decoders learns",
}


def plot(dataset):
    figure = style.panels(dataset, 3.0, plot_shots, plot_steps)
    names = figure.axes[0].get_legend_handles_labels()
    figure.legend(*names, ncols=3, loc="outside upper center")
    return figure


def plot_shots(ax, dataset):
    config = results.config_of(dataset)
    places = np.arange(len(dataset.shots))
    for size, color in zip(dataset.size.values, style.COLOURS, strict=False):
        own = dataset.isel(step=-1).sel(size=size)
        label = f"{size}, {float(own.weights) / 1000:.0f} 000 weights"
        style.mean_band(ax, places, own.mapping.values, label, color)
        style.mean_band(ax, places, own.shuffled.values, None, color, marker=None, style=":")
    ax.plot(
        places, dataset.other_mapping, "s--", color="grey", ms=4, label=called(config.model_name)
    )
    ax.axhline(0.5, color=style.BLACK, lw=0.8, ls="--", zorder=0)
    ax.set_xticks(places, dataset.shots.values)
    ax.set(title=TITLES[_who_learned(dataset)][0], xlabel="demonstrations", ylim=(0.4, 1.02))
    ax.set_ylabel("right labels of two")


def plot_steps(ax, dataset):
    for size, color in zip(dataset.size.values, style.COLOURS, strict=False):
        own = dataset.mapping.sel(size=size, shots=dataset.shots.max()).transpose("run", "step")
        ax.plot(dataset.step, own.T, color=color, lw=0.6, alpha=0.6)
        ax.plot(dataset.step, own.mean("run"), color=color)
    ax.axhline(claims.LEARNED, color="grey", lw=0.8, ls=":", zorder=0)
    ax.axhline(0.5, color=style.BLACK, lw=0.8, ls="--", zorder=0)
    ax.set(title=TITLES[_who_learned(dataset)][1], xlabel="steps", ylim=(0.4, 1.02))


def appendix(dataset):
    """What else is learned."""
    names = {
        "copying": "Only small copies fresh words",
        "counting": "Counting fails more often than not",
        "sentiment": "Sentiment stays near a guess",
        "text": "The uncopied predicts text best",
    }
    figure, axes = style.figure(6.75, 4.2, (2, 2), first="c")
    for ax, (name, title) in zip(axes, names.items(), strict=True):
        for size, color in zip(dataset.size.values, style.COLOURS, strict=False):
            own = dataset[name].sel(size=size).transpose("run", "step")
            style.mean_band(ax, dataset.step, own.values, size, color, marker=None)
        ax.set(title=title, ylabel="nats a word" if name == "text" else "right answers")
        if name != "text":
            ax.set_ylim(0, 1)
    for ax in axes[2:]:
        ax.set_xlabel("steps")
    axes[1].legend(loc="upper left")
    return (figure,)


def _who_learned(dataset) -> str:
    """Which sizes meet the criterion on average: "all" if they are those of two layers or more with
    copying, "none", or "some" others."""
    sizes = results.config_of(dataset).sizes
    able = {size.name for size in sizes if size.copying and size.depth > 1}
    shares = dataset.mapping.isel(step=-1).sel(shots=dataset.shots.max()).mean("run")
    learned = {*dataset.size.values[(shares >= claims.LEARNED).values].tolist()}
    return "none" if not learned else "all" if learned == able else "some"


def caption(dataset) -> str:
    config, numbers = results.config_of(dataset), claims.numbers(dataset)
    shares = {size: float(numbers.share("mapping", size).mean()) for size in dataset.size.values}
    best = max(shares, key=shares.get)
    listed = ", ".join(f"{share:.2f} ({size})" for size, share in shares.items())
    copied = dataset.copying.isel(step=-1).mean("run")
    other, _ = numbers.other("mapping")
    return (
        f"{WHO[_who_learned(dataset)]} label words in context in {config.steps} steps with "
        f"{config.mixture.vocabulary} words. After {numbers.most} demonstrations the shares of "
        f"right labels are {listed}. The uncopied decoder saw mapping in place of copying. With "
        f"labels drawn anew (dotted) {best} gives "
        f"{float(numbers.share('shuffled', best).mean()):.2f}. Of fresh words "
        f"{copied.idxmax('size').item()} copies {copied.max():.2f}. {called(config.model_name)} "
        f"gives {other:.2f}. Bands are intervals over {config.runs} runs, thin lines single runs. "
        "The dotted line in b counts as learned."
    )
