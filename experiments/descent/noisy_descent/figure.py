"""The shape of the noise by layer and by shots, its size, and the risks of descent with it."""

import numpy as np

from experiments.descent.noisy_descent.claims import length, risks, samples
from experiments.descent.noisy_descent.config import PATHS, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.harness.marks import end_labels

LINEAR, SOFTMAX, GREY = (style.METHOD[name]["color"] for name in ("linear", "softmax", "random"))
SHAPES = {
    "gaussian_linear": "linear: excess kurtosis",
    "gaussian_whole": "linear, random directions",
    "gaussian_softmax": "softmax: excess kurtosis",
    "training_helps": "linear, after − before",
    "passes_linear": "linear: pass the test",
    "passes_softmax": "softmax: pass the test",
    "less_with_training": "noise, after − before",
}
RISKS = {
    "tests_alike": "Eq. 4 / model",
    "typically_alike": "Eq. 4 / model, medians",
    "one_draw_alike": "one Gaussian draw / model",
    "sgd_alike": "Eq. 4 / fresh demonstrations",
    "learns_like_sgd": "fresh demonstrations / model",
    "shape_matters": "another shape / Eq. 4",
    "size_matters": "half the noise / Eq. 4",
    "less_with_shots": "noise at 2n / at n",
}


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.3, 2.3, 2.2), ((1, 1), (1, 1.2), (1, 1)))
    by_layer(axes[0], dataset)
    by_shots(axes[1], dataset)
    size(axes[2], dataset)
    ends(axes[3], dataset)
    rows, judged = statements(results.config_of(dataset)), samples(dataset)
    judged_panel.rows(axes[4], rows, judged, SHAPES, (-1, 3))
    axes[4].set(title="judged: shape and size")
    axes[5].set_xscale("log")
    judged_panel.rows(axes[5], rows, judged, RISKS, (0.2, 20))
    axes[5].set_xticks((0.2, 1, 5, 20), ("0.2", "1", "5", "20"))
    axes[5].set(title="judged: ratios of risks")
    return figure


def by_layer(ax, dataset):
    """Excess kurtosis at the length of training: linear and softmax, trained and not."""
    linear = dataset.excess.sel(shots=length(dataset), reading="query")
    ends = {}
    for state, face, aside in (("trained", None, -0.08), ("untrained", "white", 0.08)):
        for name, values, color, marker in (
            ("linear", linear, LINEAR, "o"),
            ("softmax", dataset.softmax_excess, SOFTMAX, "s"),
        ):
            rows = values.sel(state=state).transpose(..., values.dims[-1])
            x = np.arange(rows.shape[1]) + 1 + aside
            look = dict(color=color, marker=marker, mfc=face or color, lw=0.8, capsize=2)
            style.mean_points(ax, x, rows.values, **look)
            ends[f"{name}, {state}"] = rows.values.mean(0)[-1]
    margin(ax, dataset)
    ax.set(xlabel="layer", ylabel="excess kurtosis", xticks=np.arange(1, len(linear.layer) + 1))
    ax.set(title="shape: 0 is Gaussian", xlim=(0.7, len(linear.layer) + 0.3))
    ax.set_yscale("symlog", linthresh=0.1)
    end_labels(ax, ends, [LINEAR, SOFTMAX, LINEAR, SOFTMAX])


def margin(ax, dataset):
    bound = results.config_of(dataset).same_shape
    ax.axhspan(-bound, bound, color="grey", alpha=0.2, lw=0)


def by_shots(ax, dataset):
    """The first layer beside its closed form, and the last one."""
    shots, trained, ends, colors = dataset.shots.values, dataset.sel(state="trained"), {}, []
    for reading, color in (("query", LINEAR), ("whole", style.METHOD["GD++"]["color"])):
        own = trained.sel(reading=reading)
        style.line(ax, shots, own.closed.mean("run"), color=color)
        for layer, look in ((0, dict(marker="o", ls="")), (-1, dict(marker="s", ls=":"))):
            rows = own.excess.isel(layer=layer).transpose("run", "shots").values
            style.mean_points(ax, shots, rows, color=color, lw=0.8, capsize=2, **look)
            ends[f"{reading}, layer {dataset.layer.values[layer]}"] = rows.mean(0)[-1]
            colors.append(color)
    style.log_axes(ax, x=True, y=True, ticks=shots)
    ax.set(xlabel="shots", ylabel="excess kurtosis", title="it falls with the shots")
    end_labels(ax, ends, colors)


def size(ax, dataset):
    """The share of noise in the updates."""
    shots, ends = dataset.shots.values, {}
    share = dataset["share"].mean("layer")
    for state, face in (("trained", None), ("untrained", "white")):
        rows = share.sel(state=state).transpose("run", "shots").values
        look = style.METHOD["linear"] | dict(mfc=face or LINEAR)
        style.mean_points(ax, shots, rows, lw=0.8, capsize=2, **look)
        ends[state] = rows.mean(0)[-1]
    style.log_axes(ax, x=True, y=True, ticks=shots)
    ax.set(xlabel="shots", ylabel="E|G − E G|² / E|G|²", title="size of the noise")
    ax.set_yticks((0.1, 0.2, 0.4), ("0.1", "0.2", "0.4"))
    end_labels(ax, ends, [LINEAR, LINEAR])


def ends(ax, dataset):
    """The risk of every path over the model's, at the length of training."""
    risk = risks(dataset, "risk")
    for row, path in enumerate(PATHS[1:]):
        runs = risk[path] / risk["model"]
        color = SOFTMAX if path == "Eq. 4" else LINEAR
        ax.plot(runs, np.full(len(runs), row), "o", color=color, mfc="none", ms=3, mew=0.7)
        ax.plot(np.exp(np.log(runs).mean()), row, "|", color=color, ms=12, mew=1.5)
    bound = results.config_of(dataset).alike
    ax.axvspan(1 / (1 + bound), 1 + bound, color="grey", alpha=0.2, lw=0)
    style.log_axes(ax, x=True)
    ax.set(yticks=range(len(PATHS) - 1), yticklabels=PATHS[1:], ylim=(len(PATHS) - 1.4, -0.6))
    ax.set(xlabel="risk / the model's", title="where descent ends")


def caption(dataset) -> str:
    config, judged = results.config_of(dataset), samples(dataset)
    mean = {name: float(np.mean(values)) for name, values in judged.items()}
    ratio = {name: float(np.exp(np.log(judged[name]).mean())) for name in RISKS}
    lost = sum(len(set(dataset[name].values)) - 1 for name in ("taken", "softmax_taken"))
    return (
        f"The noise of trained updates has an excess kurtosis of {mean['gaussian_linear']:.2g} "
        f"(linear) and {mean['gaussian_softmax']:.2g} (softmax), where Gaussian noise has 0; "
        f"descent with fresh Gaussian noise has {ratio['tests_alike']:.3g} times the model's risk. "
        f"a, b: what an update adds to the answer to one query, over {config.prompts} prompts of "
        f"one task; b: beside the whole update in random directions; lines: closed form of the "
        f'first layer (docs/theory, "The noise of an update is not Gaussian"). a to c: means of '
        f"runs with 95 % intervals, grey in a: within the margin. d: descent by the weights of the "
        f"linear stack, runs and geometric means. e, f: {judged_panel.KEY}. {dataset.sizes['run']} "
        f"linear stacks and {dataset.sizes['softmax_run']} softmax transformers; trainings that "
        f"diverged, at different steps, and are left out: {lost}. n = {length(dataset)} in "
        f"training, d = {config.linear.task.d}, noise {config.linear.task.noise_std:g}."
    )
