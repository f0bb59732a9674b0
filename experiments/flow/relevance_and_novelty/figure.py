"""What a demonstration is worth beside others, by relevance and novelty."""

import numpy as np

from experiments.flow.relevance_and_novelty.claims import names, risk_ratios
from experiments.flow.relevance_and_novelty.config import BAYES, READINGS, UNTRAINED
from lsa_lab.harness.draw import style
from lsa_lab.store import results

THEOREM = 'docs/theory, "What a demonstration is worth to the Bayes rule"'


def plot(dataset):
    figure, axes = style.figure(6.75, 2.7, (1, 2))
    last = names(dataset)[-1]
    _draw_map(axes[0], dataset, BAYES)
    axes[0].set(ylabel=READINGS["flow"][1], title=f"The {BAYES} gains if both are large")
    _draw_map(axes[1], dataset, last)
    axes[1].set_title(f"The {last} gains most there, too")
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    ahead = dataset.r2.sel(reading="flow").mean("run")  # of squares, and of roots
    trained = [name for name in names(dataset) if name != BAYES]
    before = float(ahead.sel(form="product", learner=UNTRAINED).min())
    product, total = (ahead.sel(form=form, learner=trained) for form in ("product", "sum"))
    return (
        "On average over classes a demonstration beside others helps a trained model by a product "
        f"of its gradient and its surprise: R² {float(product.min()):.2f} or more, of a sum "
        f"{float(total.max()):.2f} at most. Before training a product has {before:.2f}; for the "
        f"Bayes rule it is a theorem ({THEOREM}). Numbers are expected gains over the error, in "
        f"{config.classes**2} classes. Trained models have at most "
        f"{max(risk_ratios(dataset).values()):.2f} times the Bayes rule's excess risk. "
        f"{config.runs} runs."
    )


def _draw_map(ax, dataset, learner):
    """Gains in classes of both factors, from the least fourth of each to the largest."""
    grid = dataset["map"].sel(learner=learner, reading="flow").mean("run").values
    ends = ["least", *[""] * (len(grid) - 2), "most"]
    ax.imshow(grid.T, origin="lower", cmap="YlGnBu", aspect="auto", vmin=0)
    for (i, j), value in np.ndenumerate(grid):
        dark = value > 0.6 * grid.max()
        ax.text(i, j, f"{value:.1%}", ha="center", va="center", color="w" if dark else "k", size=7)
    ax.set_xticks(range(len(grid)), ends)
    ax.set_yticks(range(len(grid)), ends)
    ax.set_xlabel(READINGS["flow"][0])
