"""The figure and its caption, from the file alone; no jax in this door.

The figure shows what is judged. The caption's first sentence answers the question; what the marks
of the judged panel say, the runs, d and n follow by themselves.
"""

from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

from . import claims


def plot(dataset):
    config = results.config_of(dataset)
    figure, (training, judged) = style.figure(5.5, 2.4, (1, 2))
    loss = dataset.loss.coarsen(step=max(1, config.steps // 20), boundary="trim").mean()
    style.mean_band(training, loss.step, loss, "layers", style.COLOURS[0])
    training.axhline(float(dataset.step_risk), color=style.BLACK, label="one step of descent")
    training.set(title="training", xlabel="steps of training", ylabel="risk")
    training.legend()
    judged_panel.rows(judged, *evidence(claims, dataset), (0.98, 1.08))
    judged.set(title="what is judged", xlabel="ratio")
    return figure


def caption(dataset):
    ratio = evidence(claims, dataset)[1]["as_good"].mean()
    return (
        f"One trained layer has {ratio:.3g} times the risk of the best step of descent. "
        f"a: mean of the runs with its {level()} interval."
    )
