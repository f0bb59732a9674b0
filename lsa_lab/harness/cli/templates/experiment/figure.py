"""The figure and its caption, from the file alone; no jax in this door.

The figure shows its message, in two panels at most. The caption's first sentence answers the
question; the runs, d and n follow by themselves.
"""

from lsa_lab.harness.draw import style
from lsa_lab.judging.claims import evidence, judge
from lsa_lab.store import results

from . import claims


def plot(dataset):
    return style.panels(dataset, 2.4, training, runs)


def training(ax, dataset):
    config = results.config_of(dataset)
    loss = dataset.loss.coarsen(step=max(1, config.steps // 20), boundary="trim").mean()
    style.band(ax, loss.step, loss, "layers", marker=None)
    ax.axhline(float(dataset.step_risk), color=style.BLACK, label="one step of descent")
    ax.set(title="Risk in training", xlabel="steps of training", ylabel="risk")
    ax.legend()


def runs(ax, dataset):
    """Every run, and the bound that their interval is to keep."""
    (judged,), samples = evidence(claims, dataset)
    ratios = samples[judged.id]
    ax.plot(range(1, len(ratios) + 1), ratios, "o", color=style.COLOURS[0])
    ax.set_xticks(range(1, len(ratios) + 1))
    ax.axhline(judged.at_most, color="grey", ls="--", label="bound")
    ax.set(xlabel="run", ylabel="risk of layer / step's")
    ax.set_title(f"{(ratios <= judged.at_most).sum()} of {len(ratios)} runs keep the bound")
    ax.legend()


def caption(dataset):
    (judged,) = judge(*evidence(claims, dataset))
    return (
        f"One trained layer has {judged.value:.3g} times the risk of the best step of descent. "
        "The line in a is the median of the runs, and the band is the middle 80 % of them."
    )
