"""The shape of the noise by layer, and the risks of descent with it."""

import numpy as np

from experiments.descent.noisy_descent import claims
from experiments.descent.noisy_descent.claims import ALIKE, SAME_SHAPE
from experiments.descent.noisy_descent.config import PATHS
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import end_labels
from lsa_lab.judging.claims import evidence

LINEAR, SOFTMAX = (style.METHOD[name]["color"] for name in ("linear", "softmax"))


def plot(dataset):
    return style.panels(dataset, 2.6, layer_points, ends)


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
    ax.set(title="Noise can end in tails", xlim=(0.7, len(linear.layer) + 0.3))
    ax.set_yscale("symlog", linthresh=0.1)
    end_labels(ax, ends, [LINEAR, SOFTMAX, LINEAR, SOFTMAX])


def ends(ax, dataset):
    """The risk of every path over the model's, at the length of training."""
    noise = claims.numbers(dataset)
    for row, path in enumerate(PATHS[1:]):
        runs = noise.ratio(path)
        color = style.BLACK if path == "Eq. 4" else LINEAR
        ax.plot(runs, np.full(len(runs), row), "o", color=color, mfc="none", ms=3, mew=0.7)
        ax.plot(np.exp(np.log(runs).mean()), row, "|", color=color, ms=12, mew=1.5)
    ax.axvspan(1 / (1 + ALIKE), 1 + ALIKE, color="grey", alpha=0.2, lw=0)
    style.log_axes(ax, x=True)
    ax.set(yticks=range(len(PATHS) - 1), yticklabels=PATHS[1:], ylim=(len(PATHS) - 1.4, -0.6))
    ax.set(xlabel="risk / the model's", title="Noise harms descent")


def caption(dataset) -> str:
    _, samples = evidence(claims, dataset)
    noise = claims.numbers(dataset)
    linear = noise.layer_excess("linear", noise.linear.layer.values[-1]).mean()
    softmax = noise.softmax.softmax_excess.mean("softmax_run")
    alike = int((abs(softmax) <= SAME_SHAPE).sum())
    noisy, fresh = (
        float(np.exp(np.log(samples[id]).mean())) for id in ("tests_alike", "learns_like_sgd")
    )
    lost = sum(len(set(dataset[name].values)) - 1 for name in ("taken", "softmax_taken"))
    return (
        f"In the last layer the noise of trained updates has an excess kurtosis of {linear:.2g} "
        f"in linear stacks and {float(softmax[-1]):.2g} in softmax transformers, where Gaussian "
        f"noise has 0. {alike or 'None'} of {softmax.size} softmax layers "
        f"count{'s' * (alike == 1)} as Gaussian. Descent by the linear stack has "
        f"{noisy:.3g} times the model's risk with fresh Gaussian noise (A2's Eq. 4), and "
        f"{fresh:.3g} times with fresh demonstrations; 'same' draws once. Panel a shows what an "
        f"update adds to one answer. Grey bands are margins. {lost} trainings diverged."
    )
