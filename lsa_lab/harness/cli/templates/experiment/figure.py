"""The figure and its caption, from the file alone; no jax in this door.

The figure shows its message, in two panels at most. The caption's first sentence answers the
question; the runs, d and n follow by themselves.
"""

from lsa_lab.harness.draw import style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

from . import claims


def plot(dataset):
    return style.panels(dataset, 2.4, training, runs)


def training(ax, dataset):
    config = results.config_of(dataset)
    loss = dataset.loss.coarsen(step=max(1, config.steps // 20), boundary="trim").mean()
    style.mean_band(ax, loss.step, loss, "layers", style.COLOURS[0])
    ax.axhline(float(dataset.step_risk), color=style.BLACK, label="one step of descent")
    ax.set(title="Layers learn a step", xlabel="steps of training", ylabel="risk")
    ax.legend()


def runs(ax, dataset):
    """Every run, and the bound that their interval is to keep."""
    (judged,), samples = evidence(claims, dataset)
    ratios = samples[judged.id]
    ax.plot(ratios, "o", color=style.COLOURS[0])
    ax.axhline(judged.at_most, color="grey", ls="--", label="bound")
    ax.set(xlabel="run", ylabel="risk of layer / step's")
    ax.set_title(f"{(ratios <= judged.at_most).sum()} of {len(ratios)} runs keep the bound")
    ax.legend()


def caption(dataset):
    ratio = evidence(claims, dataset)[1]["as_good"].mean()
    return (
        f"One trained layer has {ratio:.3g} times the risk of the best step of descent. "
        f"a: mean of the runs with its {level()} interval."
    )
