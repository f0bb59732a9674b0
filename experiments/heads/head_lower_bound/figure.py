"""What it costs to have fewer heads than covariates."""

import numpy as np

from experiments.heads.head_lower_bound.claims import over_all_heads, samples
from lsa_lab import results
from lsa_lab.harness import style
from lsa_lab.theory.wishart import rotation_invariant_bound

LABELS = {"alone": "features alone", "beside raw": "beside raw covariates"}


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(6.75, 2.6, (1, 2))
    plot_risk(axes[0], dataset, config)
    plot_ratio(axes[1], dataset, config)
    return figure


def plot_risk(ax, dataset, config):
    """Descent on the features of H heads, and the least risk of rules that ignore directions."""
    used = dataset.used.values
    for i, (features, label) in enumerate(LABELS.items()):
        risk = dataset.risk.sel(features=features).values
        look = dict(color=style.COLOURS[i], fmt=f"-{style.MARKERS[i]}", capsize=2)
        style.median_points(ax, used * 1.03**i, risk, label, **look)
    ridge = rotation_invariant_bound(config.n, config.d, config.noise_std**2)
    ax.axhline(ridge, color=style.BLACK, lw=1.2, label="best rotation-invariant rule")
    style.log_axes(ax, x=True, ticks=used)
    ax.set(xlabel="heads H of the first layer", ylabel="excess risk of descent", ylim=(0, None))
    ax.legend(loc="lower left")


def plot_ratio(ax, dataset, config):
    """The risk over that with d heads, as it is judged where it is least."""
    ratio = over_all_heads(dataset)
    used = ratio.used.values
    for i, features in enumerate(LABELS):
        look = dict(color=style.COLOURS[i], fmt=style.MARKERS[i], capsize=2)
        style.median_points(ax, used * 1.05**i, ratio.sel(features=features).values, **look)
    ax.axhline(1, color="grey", lw=0.8)
    top = ax.get_ylim()[1]
    ax.axhspan(config.dearer, max(top, config.dearer), color="grey", alpha=0.2, lw=0)
    style.log_axes(ax, x=True, ticks=used)
    ax.set(xlabel=f"heads H < d = {config.d}", ylabel=f"risk over that with {config.d} heads")
    ax.set_ylim(top=top)


def caption(dataset) -> str:
    config = results.config_of(dataset)
    judged = samples(dataset)
    alone, beside = (np.median(judged[name]) for name in ("cost", "cost_beside_raw"))
    return (
        f"Descent on features of fewer than d = {config.d} heads has at least {alone:.2g} times "
        f"the risk of d heads, {beside:.2g} times beside raw covariates. (That H < d heads of one "
        'layer miss d - H of the covariates is a theorem: docs/theory, "The head lower bound".) '
        f"a: the excess risk; {config.sparsity} of w's coordinates not 0, n = {config.n}, noise "
        f"{config.noise_std:g}; neighbouring coordinates share a head; step size, number of steps "
        "and the raw covariates' share chosen on other prompts. b: the same over that with "
        f"{config.d} heads; grey: where a row would hold. Medians of {config.runs} runs and their "
        "95 % intervals."
    )
