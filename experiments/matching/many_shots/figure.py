"""Errors against the number of demonstrations, divided by it and not, and what is judged."""

from experiments.matching.many_shots.claims import growth, over_bayes, samples, softmax_growth
from experiments.matching.many_shots.config import LINEAR, statements
from experiments.matching.many_shots.panels import fixed, name_fixed, name_normalised, normalised
from lsa_lab import results
from lsa_lab.harness import judged_panel, style


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.stacked(6.75, (2.7, 2.6), ((1, 1), (3, 3, 4)))
    normalised(axes[0], dataset, config.noise_std)
    axes[0].set_title("divided by their number (1/n)")
    name_normalised(axes[0], dataset.sel(noise=config.noise_std), config)
    fixed(axes[1], dataset, config.noise_std)
    axes[1].set_title(f"divided by {config.n} always (fixed)")
    name_fixed(axes[1], dataset.sel(noise=config.noise_std), config)
    others = other_noises(config)
    for ax, noise in zip(axes[2:4], others, strict=False):
        normalised(ax, dataset, noise)
        ax.set_title(f"1/n, noise {noise:g}")
    for ax in axes[2 + len(others) : 4]:
        ax.set_visible(False)
    judged(axes[4], dataset)
    return figure


def appendix(dataset):
    """The fixed divisor at the noises that the figure leaves out."""
    config = results.config_of(dataset)
    others = other_noises(config)
    figure, axes = style.figure(6.75, 2.7, (1, len(others)), first="f")
    for ax, noise in zip(axes, others, strict=True):
        fixed(ax, dataset, noise)
        name_fixed(ax, dataset.sel(noise=noise), config)
        ax.set_title(f"fixed, noise {noise:g}")
    return figure


def other_noises(config) -> list[float]:
    return [noise for noise in config.noises if noise != config.noise_std]


def judged(ax, dataset):
    labels = {
        f"{model}_{row}": f"{model}, {name}"
        for model in LINEAR
        for row, name in (("normalised", "1/n"), ("fixed", "fixed"), ("bayes", "1/n, over Bayes"))
    }
    labels |= {"softmax": "softmax", "threshold": "unsafe number / predicted"}
    style.log_axes(ax, x=True)
    rows = statements(results.config_of(dataset))
    judged_panel.rows(ax, rows, samples(dataset), labels, (1e-3, 1e5))
    ax.axvline(1, color="grey", lw=0.8)
    ax.set(xlabel="ratio of errors, or of numbers", title="what is judged")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    by_n = growth(dataset).sel(scaling="by n").median("run")
    left = [float(by_n.sel(model=model)) for model in LINEAR]
    left.append(float(softmax_growth(dataset).median("run")))
    finished = int((dataset.status != "diverged").sum())
    missing = style.missing(dataset.error) + style.missing(dataset.softmax)
    far = [f"{ratio:.2g}" for ratio in over_bayes(dataset)]
    return (
        f"They leave {min(left):.2g} to {max(left):.2g} of the "
        "error if attention divides by their number; with a fixed divisor linear attention "
        f"overshoots. a: demonstrations beyond the {config.n} of training, noise "
        f"{config.noise_std:g}; b: the same weights divide by {config.n} always; dots: the error "
        "of predicting 0. c, d: as a; trained stacks gain until their bias is left; without noise "
        "the Bayes rule does not err. "
        f"e: {judged_panel.KEY}. Median of {config.runs} runs and the middle 80 % of them. "
        f"{config.depth} layers, trained briefly: at {config.n} descent, linear and softmax have "
        f"{', '.join(far)} times the Bayes rule's error. Softmax only up to "
        f"{config.softmax_most}: its cost is quadratic. {finished} of {dataset.status.size} "
        f"trainings finished; {missing} errors left out as not finite. d = {config.d}. Appendix: "
        "f, g: b at the other noises."
    )
