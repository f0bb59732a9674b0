"""What a demonstration is worth beside others, by relevance and novelty; and what tells it."""

import numpy as np

from experiments.flow.relevance_and_novelty import claims
from experiments.flow.relevance_and_novelty.claims import names, risk_ratios
from experiments.flow.relevance_and_novelty.config import BAYES, READINGS, UNTRAINED
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statements import cells_of
from lsa_lab.store import results

THEOREM = 'docs/theory, "What a demonstration is worth to the Bayes rule"'


def plot(dataset):
    figure, axes = style.figure(6.75, 2.7, (1, 2))
    _draw_map(axes[0], dataset, BAYES, "flow")
    _draw_map(axes[1], dataset, names(dataset)[-1], "similarity")
    return figure


def appendix(dataset):
    """What tells the gain, and what is judged of each learner."""
    judged, learners = evidence(claims, dataset), names(dataset)
    figure, axes = style.stacked(6.75, (2.6, 2.4, 2.4), ((1,), (1, 1), (1, 1)), "c")
    _draw_shares(axes[0], dataset)
    for ax, learner in zip(axes[1:], learners, strict=False):
        ids = [cell.id for cell in cells_of(judged[0]) if cell.case.get("learner") == learner]
        judged_panel.rows(ax, *judged, (-0.25, 1.05), ids)
        ax.set(title=learner)
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    ahead = dataset.r2.sel(reading="flow", scale="squares").mean("run")
    product, total = (float(ahead.sel(form=form).sel(learner=BAYES)) for form in ("product", "sum"))
    return (
        "Beside the others of its prompt a demonstration helps by flow times surprise: a product "
        f"has R² {product:.2f} to the Bayes rule, a sum {total:.2f}. "
        f"a, b: mean expected gain over the error without it ({THEOREM}). c: share of the variance "
        f"of gains between {config.classes**2} classes. Trained models have at most "
        f"{max(risk_ratios(dataset).values()):.2f} times the Bayes rule's excess risk; "
        f"{config.runs} runs of {config.prompts} prompts."
    )


def _draw_map(ax, dataset, learner, reading):
    grid = dataset["map"].sel(learner=learner, reading=reading).mean("run").values
    first, second = READINGS[reading]
    ax.imshow(grid.T, origin="lower", cmap="YlGnBu", aspect="auto", vmin=0)
    for (i, j), value in np.ndenumerate(grid):
        dark = value > 0.6 * grid.max()
        ax.text(i, j, f"{value:.1%}", ha="center", va="center", color="w" if dark else "k", size=7)
    ax.set(xlabel=first, ylabel=second, title=learner, xticks=[], yticks=[])


def _draw_shares(ax, dataset):
    predictors = dataset.predictor.values.tolist()
    x = np.arange(len(predictors))
    for i, learner in enumerate(dataset.learner.values.tolist()):
        share = dataset.between.sel(learner=learner).transpose("run", "predictor").values
        look = {"color": style.COLOURS[i], "marker": style.MARKERS[i]}
        if learner == UNTRAINED:
            look |= {"color": "grey"}
        beside = 0.14 * (i - 2)
        style.mean_points(ax, x + beside, share, ls="none", ms=3.5, elinewidth=0.8, **look)
        direct_label(ax, 3.5, 0.95 - 0.09 * i, learner, look["color"], (0, 0))
    labels = ["similarity,\nsurprise", "flow,\nsurprise", "no label"]
    labels += [name.removeprefix("single: ") for name in predictors[3:]]
    ax.set_xticks(x, labels, rotation=90, fontsize=7)
    ax.set(ylabel="share between classes", ylim=(0, 1), title="what tells the gain")
