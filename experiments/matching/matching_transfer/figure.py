"""Errors after chosen subsets over those after random ones, and One layer ranks poorly."""

import numpy as np

from experiments.matching import rows
from experiments.matching.configs import trained_length
from experiments.matching.matching_transfer import claims
from experiments.matching.matching_transfer.config import BAYES, RULES, SMALL, STACK, TUNED
from lsa_lab.harness.draw import style
from lsa_lab.store import results

LOOKS = {
    "prefix": style.METHOD["matching, prefix"],
    "stack prefix": style.METHOD["matching, prefix"] | {"mfc": "white"},
    "linear proxy": style.METHOD["matching"],
    "determinantal": style.METHOD["determinantal"],
    "mismatched": style.METHOD["mismatching"],
}
SPAN = (0.02, 100.0)  # of the errors that lie in the panel


def plot(dataset):
    return style.panels(dataset, 3.4, plot_errors, plot_ranks)


def caption(dataset) -> str:
    config, transfer = results.config_of(dataset), claims.numbers(dataset)
    last = dataset.model.values[-1]
    medians = transfer.ratios.sel(target=transfer.larger).median("run")
    far = transfer.bayes_ratios().sel(target=last)
    own, bayes = (np.median(transfer.rank_of_tuned(each, last)) for each in (TUNED[1], BAYES))
    return (
        "Subsets that match gradients of a one-layer prefix leave larger models at most "
        f"{float(medians.sel(rule='prefix').max()):.2g} of a random subset's error. Errors after "
        f"fine-tuning the {last} on a random subset correlate by {own:.2g} with its errors in "
        f"context, and the Bayes rule's correlate by {bayes:.2g}. Subsets are "
        f"{trained_length(config)} of {config.m} demonstrations, after which the {last} has "
        f"{float(far):.2g} times the Bayes rule's error. Points are medians and middle 80 % of "
        f"{config.runs} runs."
    )


def plot_errors(ax, dataset):
    """A row for each model that is taught, in it a point for each way to choose; determinantal
    subsets before trained models alone, for constructed descents explode on them."""
    ratio, trained = claims.numbers(dataset).ratios, dataset.target.isin(dataset.model).values
    places = np.arange(ratio.sizes["target"])
    for i, (rule, look) in enumerate(LOOKS.items()):
        y, runs = places + 0.15 * (i - (len(RULES) - 1) / 2), ratio.sel(rule=rule).values
        among = trained if rule == "determinantal" else np.full(len(y), True)
        rows.medians(ax, y[among], runs[:, among], SPAN, label=rule, **look)
    ax.axvline(1, color="grey", lw=0.8)
    style.log_axes(ax, x=True, ticks=(0.1, 1, 10, 100))
    ax.set_yticks(places, dataset.target.values)
    ax.set(xlim=SPAN, ylim=(len(places) - 0.5, -0.5), xlabel="error relative to a random subset")
    ax.set_title("Chosen subsets transfer")
    ax.legend(loc="upper center", bbox_to_anchor=(0.4, -0.17), ncols=2)


def plot_ranks(ax, dataset):
    """How each small learner ranks random subsets, beside each trained model's own ranks."""
    transfer, models = claims.numbers(dataset), list(dataset.model.values)
    kinds = {
        "one layer in context": lambda model: transfer.rank(SMALL, model),
        "linear stack in context": lambda model: transfer.rank(STACK, model),
        "linear model, fine-tuned": lambda model: transfer.rank_of_tuned(TUNED[0], model),
        "its own prefix, fine-tuned": lambda model: transfer.rank_of_tuned(TUNED[1], model),
        "the Bayes rule": lambda model: transfer.rank_of_tuned(BAYES, model),
    }
    places = np.arange(len(kinds))
    for i, model in enumerate(models):
        runs = np.stack([rank(model) for rank in kinds.values()], axis=1)
        look = {"color": style.COLOURS[i], "marker": style.MARKERS[i], "label": model}
        rows.medians(ax, places + 0.2 * (i - 1), runs, (-0.3, 1.0), **look)
    ax.axvline(0, color="grey", lw=0.8)
    ax.set_yticks(places, kinds)
    ax.set(xlim=(-0.3, 1.03), ylim=(len(places) - 0.5, -0.5), xlabel="rank correlation of errors")
    ax.set_title("One layer ranks poorly")
    ax.legend(loc="upper center", bbox_to_anchor=(0.3, -0.17), ncols=1)
