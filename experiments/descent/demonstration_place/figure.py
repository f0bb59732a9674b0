"""The error by the place of the relevant demonstration, and what is judged."""

import numpy as np

from experiments.descent.demonstration_place.claims import samples, shares
from experiments.descent.demonstration_place.config import (
    CONTROL,
    DESCENT,
    TRAINED,
    UNTRAINED,
    statements,
)
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.harness.marks import direct_label

SHAPES = {
    "beginning": "middle less first place",
    "end": "middle less last place",
    "u_shape": "middle half less the worse end",
    "untrained": "middle less ends, untrained",
}
LOOKS = {
    TRAINED: style.METHOD["softmax, causal"],
    CONTROL: style.METHOD["softmax"],
    DESCENT: style.METHOD["descent, causal"],
    UNTRAINED: style.METHOD["softmax, causal"] | {"mfc": "white", "ls": ":"},
}


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.6, 1.3), ((1, 1), (1,)))
    by_place(axes[0], dataset.error.sel(kind=[TRAINED, CONTROL]))
    axes[0].set(ylabel="error", title="trained models")
    axes[0].set_ylim(bottom=0)
    by_place(axes[1], shares(dataset).sel(kind=[TRAINED, DESCENT, UNTRAINED]))
    axes[1].set(ylabel="error / its mean over places", title="the shape")
    judged_panel.rows(
        axes[2], statements(results.config_of(dataset)), samples(dataset), SHAPES, (-1, 1)
    )
    axes[2].axvline(0, color="grey", lw=0.8)
    axes[2].set(xlabel="difference, as a share of the mean over places", title="what is judged")
    return figure


def by_place(ax, values):
    """A curve for each kind of model, with the intervals of its runs."""
    place = values.place.values
    for kind in values.kind.values:
        runs, look = values.sel(kind=kind).transpose("run", "place"), dict(LOOKS[kind])
        ls = look.pop("ls", "-")
        style.mean_points(ax, place, runs, ls=ls, lw=0.8, capsize=0, **look)
        end = float(runs.mean("run")[-1])
        direct_label(ax, place[-1], end, kind, look["color"], (6, 0))
    ax.set(xlabel="place of the relevant demonstration", xlim=(0.5, 1.6 * place[-1]))
    ax.set_xticks(np.unique([1, *place[len(place) // 4 - 1 :: max(1, len(place) // 4)]]))


def caption(dataset) -> str:
    config, judged = results.config_of(dataset), samples(dataset)
    mean = {id: float(np.mean(values)) for id, values in judged.items()}
    ratio = {id: float(np.exp(np.log(judged[id]).mean())) for id in ("it_helps", "near_ridge")}
    spread = dataset.error.sel(kind=CONTROL)
    rounding = float(((spread.max("place") - spread.min("place")) / spread.mean("place")).max())
    return (
        f"In causal models the error with the relevant demonstration in the middle is higher by "
        f"{100 * mean['beginning']:+.0f} % than with it in the first place, and by "
        f"{100 * mean['end']:+.0f} % than in the last. "
        f"It shows the query and its answer; the other {len(dataset.place) - 1} demonstrations "
        f"are as in training. It multiplies the error of trained causal models by "
        f"{ratio['it_helps']:.2f}; their risk without it is {ratio['near_ridge']:.2f} times that "
        f"of ridge regression. Without the mask no place differs, a theorem (docs/theory, "
        f'"The order of demonstrations"); measured, {rounding:.0e}. Means of '
        f"{dataset.sizes['run']} runs with 95 % intervals, each with {config.prompts} prompts of "
        f"its own; d = {config.causal.task.d}. c: {judged_panel.KEY}."
    )
