"""In-context accuracy of the family by demonstrations, and as it emerges in training."""

from experiments.language.data_sets import called
from experiments.language.lm_family import claims
from lsa_lab.harness.draw import style
from lsa_lab.store import results

WHO = {
    "all": "Deeper decoders that copy learn",
    "some": "Some decoders learn",
    "none": "None of the decoders learns",
}
CHANCE, ENDS = dict(color=style.BLACK, lw=0.8, ls="--", zorder=0), (0.4, 1.02)
ELSE = {  # what else is learned, and its title
    "copying": "Copying fresh words",
    "counting": "Counting fresh words",
    "sentiment": "Sentiment of fresh reviews",
    "text": "Loss on fresh text",
}


def plot(dataset):
    figure = style.panels(dataset, 3.0, plot_shots, plot_steps)
    names = figure.axes[0].get_legend_handles_labels()
    figure.legend(*names, ncols=3, loc="outside upper center")
    return figure


def of_sizes(dataset):
    for size, color in zip(dataset.size.values, style.COLOURS, strict=False):
        yield size, dataset.sel(size=size).transpose("run", "step", ...), color


def plot_shots(ax, dataset):
    other, places = called(results.config_of(dataset).model_name), range(len(dataset.shots))
    for size, own, color in of_sizes(dataset.isel(step=[-1])):
        label = f"{size}, {float(own.weights) / 1000:.0f} 000 weights"
        style.mean_band(ax, places, own.mapping[:, 0], label, color)
        style.mean_band(ax, places, own.shuffled[:, 0], None, color, marker=None, style=":")
    ax.plot(places, dataset.other_mapping, "s--", color="grey", ms=4, label=other)
    ax.set_xticks(places, dataset.shots.values)
    ax.axhline(0.5, **CHANCE)
    ax.set(title=WHO[_who_learned(dataset)], xlabel="demonstrations", ylabel="right labels of two")
    ax.set_ylim(ENDS)


def plot_steps(ax, dataset):
    for _, own, color in of_sizes(dataset.sel(shots=dataset.shots.max())):
        ax.plot(dataset.step, own.mapping.T, color=color, lw=0.6, alpha=0.6)
        ax.plot(dataset.step, own.mapping.mean("run"), color=color)
    ax.axhline(claims.LEARNED, color="grey", lw=0.8, ls=":", zorder=0)
    ax.axhline(0.5, **CHANCE)
    ax.set(title="Run by run, in training", xlabel="steps", ylim=ENDS)


def appendix(dataset):
    """What else is learned."""
    figure, axes = style.figure(6.75, 4.2, (2, 2), first="c")
    for ax, (name, title) in zip(axes, ELSE.items(), strict=True):
        for size, own, color in of_sizes(dataset):
            style.mean_band(ax, dataset.step, own[name], size, color, marker=None)
        words = dict(ylabel="nats a word") if name == "text" else dict(ylim=(0, 1))
        ax.set(**dict(title=title, ylabel="right answers") | words)
    for ax in axes[2:]:
        ax.set_xlabel("steps")
    axes[1].legend(loc="upper left")
    return (figure,)


def _who_learned(dataset) -> str:
    """Which sizes meet the criterion on average: "all" if they are those of two layers or more with
    copying, "none", or "some" others."""
    sizes = results.config_of(dataset).sizes
    learned = [size for size in sizes if claims.numbers(dataset).learns(size.name)]
    able = [size for size in sizes if size.copying and size.depth > 1]
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
