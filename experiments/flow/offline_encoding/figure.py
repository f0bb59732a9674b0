"""What encoded flows cost, and how well they select, beside flows made online."""

import numpy as np

from experiments.flow.offline_encoding import claims
from experiments.flow.offline_encoding.config import spec_of
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results


def plot(dataset):
    figure, axes = style.figure(6.75, 2.7, (1, 2))
    errors = dataset.error.transpose("run", "rule").values
    look = dict(ls="none", marker="o", color=style.COLOURS[0], capsize=2)
    style.mean_points(axes[0], np.arange(dataset.sizes["rule"]), errors, **look)
    names = [name.replace("alone", "all layers, alone") for name in dataset.rule.values]
    axes[0].set_xticks(np.arange(len(names)), [n.replace(", ", ",\n") for n in names], fontsize=7)
    axes[0].set(ylabel="excess risk", ylim=(0, None), title="Cheap, and worse than online")
    judged_panel.rows(axes[1], *evidence(claims, dataset), (0.0, 1.6))
    axes[1].set(xlabel="ratio or rank correlation", title="what is judged")
    return figure


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    return (
        f"A1's formula on an encoded pool takes {samples['operations']:.0%} of the operations of "
        "the last layer's flows made online. All layers encoded take "
        f"{samples['operations_all']:.0%}. a: excess risk of {config.shots} of {config.pool} "
        f'demonstrations, means over runs with {level()} intervals. "Together" is the flow of '
        f"the last layer with the whole pool in the prompt. Operations are those of "
        f"{config.large} demonstrations. {config.runs} runs of {config.pools} pools, "
        f"d = {spec_of(config).task.d}."
    )
