"""The shape of the noise by layer and by shots, its size, and the risks of descent with it."""

import numpy as np

from experiments.descent.noisy_descent import claims
from experiments.descent.noisy_descent.claims import ALIKE, SAME_SHAPE
from experiments.descent.noisy_descent.config import PATHS
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

LINEAR, SOFTMAX, GREY = (style.METHOD[name]["color"] for name in ("linear", "softmax", "random"))
SHAPES = (
    *("gaussian_linear", "gaussian_whole", "gaussian_softmax", "training_helps"),
    *("passes_linear", "passes_softmax", "less_with_training"),
)
RATIOS = (
    *("tests_alike", "typically_alike", "one_draw_alike", "sgd_alike", "learns_like_sgd"),
    *("shape_matters", "size_matters", "less_with_shots"),
)


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.3, 2.3, 2.2), ((1, 1), (1, 1.2), (1, 1)))
    layer_points(axes[0], dataset)
    shots_curves(axes[1], dataset)
    size(axes[2], dataset)
    ends(axes[3], dataset)
    statements, samples = evidence(claims, dataset)
    judged_panel.rows(axes[4], statements, samples, (-1, 3), SHAPES)
    axes[4].set(title="judged: shape and size")
    axes[5].set_xscale("log")
    judged_panel.rows(axes[5], statements, samples, (0.2, 20), RATIOS)
    axes[5].set_xticks((0.2, 1, 5, 20), ("0.2", "1", "5", "20"))
    axes[5].set(title="judged: ratios of risks")
    return figure


def layer_points(ax, dataset):
    """Excess kurtosis at the length of training: linear and softmax, trained and not."""
    linear = dataset.excess.sel(shots=claims.numbers(dataset).n, reading="query")
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
    ax.axhspan(-SAME_SHAPE, SAME_SHAPE, color="grey", alpha=0.2, lw=0)
    ax.set(xlabel="layer", ylabel="excess kurtosis", xticks=np.arange(1, len(linear.layer) + 1))
    ax.set(title="shape: 0 is Gaussian", xlim=(0.7, len(linear.layer) + 0.3))
    ax.set_yscale("symlog", linthresh=0.1)
    end_labels(ax, ends, [LINEAR, SOFTMAX, LINEAR, SOFTMAX])


def shots_curves(ax, dataset):
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
    noise = claims.numbers(dataset)
    for row, path in enumerate(PATHS[1:]):
        runs = noise.ratio(path)
        color = SOFTMAX if path == "Eq. 4" else LINEAR
        ax.plot(runs, np.full(len(runs), row), "o", color=color, mfc="none", ms=3, mew=0.7)
        ax.plot(np.exp(np.log(runs).mean()), row, "|", color=color, ms=12, mew=1.5)
    ax.axvspan(1 / (1 + ALIKE), 1 + ALIKE, color="grey", alpha=0.2, lw=0)
    style.log_axes(ax, x=True)
    ax.set(yticks=range(len(PATHS) - 1), yticklabels=PATHS[1:], ylim=(len(PATHS) - 1.4, -0.6))
    ax.set(xlabel="risk / the model's", title="where descent ends")


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    kurtosis = [float(np.mean(samples[id])) for id in ("gaussian_linear", "gaussian_softmax")]
    fresh = float(np.exp(np.log(samples["tests_alike"]).mean()))
    lost = sum(len(set(dataset[name].values)) - 1 for name in ("taken", "softmax_taken"))
    return (
        f"Trained updates are not Gaussian: their noise has an excess kurtosis of "
        f"{kurtosis[0]:.2g} in linear stacks and of {kurtosis[1]:.2g} in softmax transformers. "
        f"Descent with fresh Gaussian noise has {fresh:.3g} times the model's risk. Panels a and b "
        f"show what an update adds to the answer to one query, over {config.prompts} prompts of "
        f"one task; lines are the first layer's closed form. The grey band is the margin. "
        f"Descent in d takes the linear stack's steps. {lost} trainings diverged."
    )
