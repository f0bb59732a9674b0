"""Errors of trained models against shots and against training steps, beside known rules."""

from experiments.descent.shots_and_steps.claims import left_over, over_bayes
from experiments.descent.shots_and_steps.config import MODELS
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    figure, axes = style.figure(9.0, 3.4, (1, 3))
    against_shots(axes[0], dataset.isel(noise=0), ["least squares"])
    zero = results.config_of(dataset).zero * results.config_of(dataset).d
    axes[0].axhline(zero, color="grey", lw=0.8, ls="--")
    against_shots(axes[1], dataset.isel(noise=1), ["least squares", "Bayes rule"])
    against_steps(axes[2], dataset.isel(noise=1))
    for ax, place in zip(axes, ("upper left", "lower left", "upper right"), strict=True):
        ax.legend(loc=place)
    return figure


def against_shots(ax, dataset, rules):
    config, shots = results.config_of(dataset), dataset.shots.values
    for name, color, marker in zip(MODELS, style.COLOURS, style.MARKERS, strict=False):
        runs = dataset.error.sel(model=name).transpose("run", "shots")
        style.band(ax, shots, runs, name, color, marker)
    for rule, label, dash in zip(rules, ("least squares", "Bayes rule: ridge"), "-:", strict=False):
        style.line(ax, shots, dataset.known.sel(rule=rule).median("run"), label, style=dash)
    ax.axvline(config.n, color="grey", lw=0.8, ls="--")
    style.log_axes(ax, x=True, y=True, ticks=shots)
    ax.set(xlabel="shots", ylabel="excess risk", ylim=(config.zero * config.d / 5, top(config)))
    ax.set_title(f"noise {dataset.noise.item():g}")


def against_steps(ax, dataset):
    config = results.config_of(dataset)
    for name, color, marker in zip(MODELS, style.COLOURS, style.MARKERS, strict=False):
        runs = dataset.learning.sel(model=name).transpose("run", "look")
        style.band(ax, dataset.steps.sel(model=name).values, runs, name, color, marker)
    bayes = dataset.known.sel(rule="Bayes rule", shots=config.n).median().item()
    ax.axhline(bayes, color=style.BLACK, ls=":", lw=1.2, label="Bayes rule: ridge")
    style.log_axes(ax, y=True)
    ax.set(xlabel="training steps", ylabel=f"excess risk at {config.n} shots")
    ax.set_title(f"training, noise {dataset.noise.item():g}")


def top(config) -> float:
    """Where the axes end: at few shots linear attention is far above any other."""
    return 40 * config.d


def caption(dataset) -> str:
    config = results.config_of(dataset)
    left = [100 * left_over(dataset, name, 2 * config.d).median().item() for name in MODELS]
    ratios = [over_bayes(dataset, name).median().item() for name in MODELS]
    missing = style.missing(dataset.error) + style.missing(dataset.learning.isel(noise=1))
    above = int((dataset.error.median("run") > top(config)).sum())
    return (
        f"At {2 * config.d} = 2d shots {left[0]:.2g} % ({MODELS[0]}) and {left[1]:.2g} % "
        f"({MODELS[1]}) of the error is left; with noise training ends at {ratios[0]:.2g} and "
        f"{ratios[1]:.2g} times the Bayes rule's error. Left is what {config.depth} layers keep of "
        f"the error without shots, without noise; least squares then needs d shots. Median of "
        f"{config.runs} runs and the middle 80 % of them; {missing} numbers left out as not "
        f"finite, {above} medians lie above the axes. Dashes: the {config.n} shots of training, "
        f"and what counts as zero."
    )
