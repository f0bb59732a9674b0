"""The means, and zero."""

from lsa_lab.harness.draw import style


def plot(dataset):
    figure, (ax,) = style.figure(3.5, 2.5)
    style.band(ax, dataset.x, dataset["mean"], label="runs")
    style.line(ax, dataset.x, 0 * dataset.x, label="theory")
    ax.legend()
    return figure


def caption(dataset):
    return f"It does | nearly. The mean of n numbers; {style.missing(dataset['mean'])} left out."
