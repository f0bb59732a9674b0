"""The figure and its caption, from the file alone; no jax in this door.

The figure shows what is judged. The caption's first sentence answers the question.
"""

from lsa_lab import results
from lsa_lab.harness import judged_panel, style

from .claims import samples
from .config import statements


def plot(dataset):
    config = results.config_of(dataset)
    figure, (training, judged) = style.figure(5.5, 2.4, (1, 2))
    loss = dataset.loss.coarsen(step=max(1, config.steps // 20), boundary="trim").mean()
    style.mean_band(training, loss.step, loss, "layers", style.COLOURS[0])
    training.axhline(float(dataset.step_risk), color=style.BLACK, label="one step of descent")
    training.set(title="training", xlabel="steps of training", ylabel="risk")
    training.legend()
    labels = {"as_good": "risk of layer\nover step's"}
    judged_panel.rows(judged, statements(config), samples(dataset), labels, (0.98, 1.08))
    judged.set(title="what is judged", xlabel="ratio")
    return figure


def caption(dataset):
    config, ratios = results.config_of(dataset), samples(dataset)["as_good"]
    return (
        f"One trained layer has {ratios.mean():.3g} times the risk of the best step of descent. "
        f"a: mean of {config.runs} runs with its 95 % interval. b: {judged_panel.KEY}. "
        f"n = {config.n}, d = {config.d}."
    )
