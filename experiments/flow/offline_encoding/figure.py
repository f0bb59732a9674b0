"""What encoded flows cost, and how well they select, beside flows made online."""

import numpy as np

from experiments.flow.offline_encoding import claims
from experiments.flow.offline_encoding.config import spec_of
from lsa_lab.harness.draw import style
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results


def plot(dataset):
    figure, (ax,) = style.figure(5.5, 2.4)
    errors = dataset.error.transpose("run", "rule").values
    look = dict(ls="none", marker="o", color=style.COLOURS[0], capsize=2)
    style.mean_points(ax, np.arange(dataset.sizes["rule"]), errors, **look)
    names = [name.replace("alone", "all layers, alone") for name in dataset.rule.values]
    ax.set_xticks(np.arange(len(names)), [n.replace(", ", ",\n") for n in names], fontsize=7)
    ax.set(ylabel="excess risk", ylim=(0, None), title="Encoding ahead selects worse than online")
    return figure


def caption(dataset) -> str:
    config, (_, samples) = results.config_of(dataset), evidence(claims, dataset)
    encoded, online = (dataset.error.sel(rule=rule).mean("run") for rule in ("Eq. 2", "together"))
    worse = float(encoded / online)
    return (
        "A pool encoded by A1's formula of one layer costs a query "
        f"{samples['operations']:.0%} of the operations of gradients made online, and what it "
        f"selects has {worse:.2f} times the excess risk. All layers encoded cost "
        f"{samples['operations_all']:.0%}, counted in a pool of {config.large}. Points are excess "
        f"risks of {config.shots} of {config.pool} demonstrations, means with {level()} intervals. "
        "'Together' is the last layer's gradient with the pool in the prompt, Eq. 2 that formula. "
        f"{config.runs} runs of {config.pools} pools, d = {spec_of(config).task.d}."
    )
