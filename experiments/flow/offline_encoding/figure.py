"""What encoded flows cost, and how well they select, beside flows made online."""

import numpy as np

from experiments.flow.offline_encoding import claims
from experiments.flow.offline_encoding.config import spec_of
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.6,), ((0.8, 0.8, 1.2),))
    _draw_costs(axes[0], dataset)
    _draw_risks(axes[1], dataset)
    judged_panel.rows(axes[2], *evidence(claims, dataset), (0.0, 1.6))
    axes[2].set(xlabel="ratio or rank correlation", title="what is judged")
    return figure


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    times = [np.exp(np.log(samples[id]).mean()) for id in ("time", "time_all")]
    return (
        f"A1's formula on an encoded pool takes {samples['operations']:.0%} of the operations of "
        f"the last layer's flows made online, and {times[0]:.0%} of the time. All layers encoded "
        f"take {samples['operations_all']:.0%} of the operations and {times[1]:.0%} of the time. "
        "a: operations of one query by the compiler; crosses are counts by hand. b: excess risk "
        f"of {config.shots} of {config.pool} demonstrations, means over runs, {level()} intervals. "
        f"Costs are those of {config.large} demonstrations; d = "
        f"{spec_of(config).task.d}; {config.runs} runs of {config.pools} pools."
    )


def _draw_costs(ax, dataset):
    x = np.arange(dataset.sizes["way"])
    ax.bar(x, dataset.operations, 0.6, color=style.COLOURS[0])
    ax.plot(x, dataset.by_hand, "x", color=style.BLACK, ms=6)
    ax.set_xticks(
        x, dataset.way.values, rotation=40, ha="right", rotation_mode="anchor", fontsize=7
    )
    ax.set(yscale="log", ylabel="operations of a query", title="cost")


def _draw_risks(ax, dataset):
    x = np.arange(dataset.sizes["rule"])
    errors = dataset.error.transpose("run", "rule").values
    style.mean_points(ax, x, errors, ls="none", marker="o", color=style.COLOURS[0], capsize=2)
    ax.set_xticks(
        x, dataset.rule.values, rotation=40, ha="right", rotation_mode="anchor", fontsize=7
    )
    ax.set(ylabel="excess risk", ylim=(0, None), title="selected")
