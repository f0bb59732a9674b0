"""What it costs to have fewer heads than covariates."""

import numpy as np

from experiments.heads.head_lower_bound import claims
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results
from lsa_lab.theory.wishart import rotation_invariant_bound

PREPROCESSED, RIDGE = style.METHOD["preprocessed descent"], style.METHOD["ridge"]
LOOKS = {  # features: fill, line, words
    "alone": (PREPROCESSED["color"], "-", "features alone"),
    "beside raw": ("white", "--", "beside raw covariates"),
}


def plot(dataset):
    return style.panels(dataset, 2.5, plot_ratio, plot_risk)


def plot_ratio(ax, dataset):
    """The risk over that with d heads, as it is judged where it is least."""
    config = results.config_of(dataset)
    curves(ax, claims.numbers(dataset))
    ax.axhline(1, color="grey", lw=0.8)
    ax.set_ylim(0, None)
    top, dearer = ax.get_ylim()[1], claims.statements(config)[0].bounds[0]
    ax.axhspan(dearer, max(top, dearer), color="grey", alpha=0.2, lw=0)
    ax.set(xlabel=f"heads H < d = {config.d}", ylabel=f"excess risk / that with {config.d} heads")
    ax.set(title="Fewer heads cost risk", ylim=(0, top))


def plot_risk(ax, dataset):
    """Descent on the features of H heads, and the least risk of rules that ignore directions."""
    config = results.config_of(dataset)
    curves(ax, dataset.risk)
    ridge = rotation_invariant_bound(config.n, config.d, config.noise_std**2)
    ax.axhline(ridge, color=RIDGE["color"], lw=1.2)
    direct_label(ax, dataset.used.values[-1], ridge, "ridge", RIDGE["color"], (-2, 3))
    ax.set(xlabel="heads H of the first layer", ylabel="excess risk of descent", ylim=(0, None))
    ax.set_title("With all heads descent beats ridge")


def curves(ax, values):  # [features, run, used]
    """Medians by the number of heads, named above their first."""
    used = values.used.values
    for features, (fill, dashes, words) in LOOKS.items():
        runs = values.sel(features=features).transpose("run", "used").values
        style.median_points(ax, used, runs, **PREPROCESSED, mfc=fill, ls=dashes, ms=5, capsize=2)
        direct_label(ax, used[0], np.median(runs[:, 0]), words, PREPROCESSED["color"], (8, 5))
    style.log_axes(ax, x=True, ticks=used)


def caption(dataset) -> str:
    config = results.config_of(dataset)
    _, samples = evidence(claims, dataset)
    alone, beside = (np.median(samples[name]) for name in ("cost", "cost_beside_raw"))
    return (
        "Fewer heads than covariates cost risk: descent on their features has at least "
        f"{alone:.2g} times the risk of d = {config.d} heads, and {beside:.2g} times beside raw "
        "covariates. That H < d heads of one layer miss d - H covariates is a theorem. Other "
        "weights are chosen on other prompts. Grey is what the criterion asks. Ridge is the best "
        f"rule that ignores directions. Bars are {level()} intervals."
    )
