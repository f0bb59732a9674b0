"""The error by the place of the relevant demonstration, influence by place, and what is judged."""

import numpy as np

from experiments.descent.demonstration_place import claims
from experiments.descent.demonstration_place.config import (
    CAUSAL,
    CONTROL,
    DESCENT,
    TRAINED,
    UNTRAINED,
)
from experiments.descent.demonstration_place.places import shares
from experiments.descent.specs import spec_of
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

ROWS = (
    *("beginning", "end", "u_shape"),
    *("noisy_beginning", "noisy_end", "noisy_u_shape", "untrained"),
    *("influence_beginning", "influence_end", "influence_u_shape", "influence_untrained"),
)
NOISY = "trained, noisy label"
SHAPED = (TRAINED, DESCENT, UNTRAINED)
LOOKS = {
    TRAINED: style.METHOD["softmax, causal"],
    NOISY: style.METHOD["softmax, causal"] | {"marker": None, "ls": "--"},
    CONTROL: style.METHOD["softmax"],
    DESCENT: style.METHOD["descent, causal"],
    UNTRAINED: style.METHOD["softmax, causal"] | {"mfc": "white", "ls": ":"},
}


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.3, 2.3), ((1, 1), (1, 1)))
    place_curves(axes[0], dataset.error.sel(kind=[TRAINED, CONTROL]), {TRAINED: 1, CONTROL: -1})
    axes[0].set(ylabel="error", title="the relevant demonstration moved")
    axes[0].set_ylim(bottom=0)
    noisy = dataset.noisy.sel(kind=[TRAINED]).assign_coords(kind=[NOISY])
    place_curves(axes[1], shares(noisy), {NOISY: -1})
    place_curves(axes[1], shares(dataset.error.sel(kind=list(SHAPED))), {UNTRAINED: 1})
    axes[1].set(ylabel="error / its mean over places", title="the shape")
    place_curves(axes[2], shares(dataset.influence.sel(kind=list(SHAPED))), {})
    axes[2].set(ylabel="influence / its mean", title="demonstrations as in training")
    axes[2].set(xlabel="place of a demonstration")
    judged_panel.rows(axes[3], *evidence(claims, dataset), (-1, 1), ROWS)
    axes[3].axvline(0, color="grey", lw=0.8)
    axes[3].set(xlabel="gain over the middle half, as a share", title="what is judged")
    return figure


def place_curves(ax, values, raised):
    """A curve for each kind of model, with the intervals of its runs; ``raised``, the names that
    stand above their curve or below it."""
    place = values.place.values
    for kind in values.kind.values:
        runs, look = values.sel(kind=kind).transpose("run", "place"), dict(LOOKS[kind])
        ls = look.pop("ls", "-")
        style.mean_points(ax, place, runs, ls=ls, lw=0.8, capsize=0, **look)
        end = float(runs.mean("run")[-1])
        direct_label(ax, place[-1], end, kind, look["color"], (6, raised.get(kind, 0)))
    ax.set(xlabel="place of the relevant demonstration", xlim=(0.5, 1.6 * place[-1]))
    ax.set_xticks(np.unique([1, *place[len(place) // 4 - 1 :: max(1, len(place) // 4)]]))


def caption(dataset) -> str:
    config, places = results.config_of(dataset), claims.numbers(dataset)
    error, noisy, influence = (
        [100 * float(np.mean(places.end(reading, place))) for place in claims.PLACES]
        for reading in ("error", "noisy", "influence")
    )
    helps, risk = (
        float(np.exp(np.log(ratios).mean()))
        for ratios in (places.worst_help, places.over_least_squares)
    )
    spread = dataset.error.sel(kind=CONTROL)
    rounding = float(((spread.max("place") - spread.min("place")) / spread.mean("place")).max())
    return (
        "Moved from the middle half of the prompt to the first place, the relevant demonstration "
        f"changes the error of trained causal models by {-error[0]:+.0f} %, moved to the "
        f"last by {-error[1]:+.0f} %. "
        f"With a label as noisy as the others' by {-noisy[0]:+.0f} % and "
        f"{-noisy[1]:+.0f} %. "
        f"It shows the query and its answer; the other {len(dataset.place) - 1} demonstrations "
        "are as in training; percentages are of the mean over places. In its worst place it "
        f"multiplies the error of trained causal models by {helps:.2f}; their risk without it is "
        f"{risk:.2f} times that of least squares. Without the mask no place differs, a theorem "
        f'(docs/theory, "The order of demonstrations"); measured, {rounding:.0e}. c: the other '
        "reading, the root mean square of ∂ŷ/∂y_i; the first place has "
        f"{influence[0]:+.0f} %, the last {influence[1]:+.0f} %. Means of "
        f"{dataset.sizes['run']} runs with {level()} intervals, each with {config.prompts} prompts "
        f"of its own; d = {spec_of(config, CAUSAL).task.d}. d: {judged_panel.KEY}."
    )
