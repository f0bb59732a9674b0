"""How unequal many demonstrations are with depth, beside the Bayes rule."""

import numpy as np

from experiments.flow.many_shot_flow import claims
from experiments.flow.many_shot_flow.config import NAMES
from lsa_lab.harness.draw import marks, style
from lsa_lab.store import parts, results

TRAINED = dict(zip(NAMES, ("linear", "softmax", "softmax, norm, MLP"), strict=True))


def plot(dataset):
    null = parts.part(dataset, "null")
    figure, axes = style.figure(6.75, 2.7, (1, 2))
    disparity = null.trained_disparity
    names = [name for name in NAMES if name in null.trained]
    ends = disparity.isel(trained_place=-1)
    over = (disparity / ends).isel(trained_place=slice(-1))
    for ax, values in zip(axes, (over, null.trained_agreement), strict=True):
        rows = {name: values.sel(trained=name).transpose("trained_run", ...) for name in names}
        layers = np.arange(values.shape[-1]) + 1
        for i, (name, row) in enumerate(rows.items()):
            look = dict(capsize=2, elinewidth=0.8, lw=0.8) | style.METHOD[TRAINED[name]]
            style.median_points(ax, layers + 0.05 * (i - 1), row, **look)
        heights = {name: float(row[:, -1].median()) for name, row in rows.items()}
        marks.end_labels(ax, heights, [style.METHOD[TRAINED[name]]["color"] for name in names])
        ax.set(xlabel="layers", xticks=layers)
        ax.axhline(1, color="grey", lw=0.8)
    axes[0].axhspan(1 / claims.GROWTH, claims.GROWTH, color="grey", alpha=0.2, lw=0)
    axes[0].set(title="Models end like Bayes", ylabel="|log ratio| / Bayes rule's")
    axes[1].set(title="Only linear flows agree", ylabel="correlation of log flows")
    return figure


def caption(dataset) -> str:
    null = parts.part(dataset, "null")
    names = [name for name in NAMES if name in null.trained]
    values = null.trained_disparity.sel(trained=names).median("trained_run")
    ends = values.isel(trained_place=-2) / values.isel(trained_place=-1)
    last = null.trained_agreement.sel(trained=names).median("trained_run")[:, -1]
    config, runs = results.config_of(dataset), null.sizes["trained_run"]
    tasks = [spec.task for name, spec in config.null.trained if name in names]
    (d,), (n,) = {task.d for task in tasks}, {max(task.lengths) for task in tasks}
    return (
        "On prompts of the training's length the gradients of trained models end with "
        f"{float(ends.min()):.2f} to {float(ends.max()):.2f} times the disparity of the Bayes "
        "rule's. The last layer's log "
        f"gradients correlate with the Bayes rule's by {float(last.min()):.2f} at least and by "
        f"{float(last.max()):.2f} at most. The grey band is 10 %. Each kind has {runs} runs, "
        f"d = {d}, n = {n}. Descent and stacks untrained or briefly trained are judged and not "
        f"drawn: {config.runs} runs, d = {config.d}, n = {config.n}."
    )
