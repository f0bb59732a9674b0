"""What each rule of ordering changes of the error, for useful and for random weights."""

import numpy as np

from experiments.matching import rows
from experiments.matching.demonstration_order import claims
from experiments.matching.demonstration_order.config import RULES, stack_names, useful_stacks
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

HEADLINE = "large to small step"
ORDER = (HEADLINE, *(rule for rule in RULES[::-1] if rule != HEADLINE))
CHANGE = "change against random orders, %"


def plot(dataset):
    config = results.config_of(dataset)
    random = [name for name in stack_names(config) if name not in useful_stacks(config)]
    figure, axes = style.stacked(6.75, (2.8, 2.3), ((1, 1), (1, 1)))
    changes(axes[0], dataset, useful_stacks(config), (-60.0, 80.0))
    name_points(axes[0], dataset, useful_stacks(config), HEADLINE)
    axes[0].set_title("constructed and trained")
    judged(axes[1], dataset)
    changes(axes[2], dataset, random, (-110.0, 160.0))
    name_points(axes[2], dataset, random, "small to large step")
    axes[2].set_title("random weights")
    lucky(axes[3], dataset)
    return figure


def look_of(model: str) -> dict:
    """The method's own; hollow with random weights."""
    look = style.METHOD[f"{model.split()[-1]}, causal"]
    return look | {"mfc": "white"} if model.startswith("random") else look


def changes(ax, dataset, names, span):
    """A row for each rule, in it a point for each model."""
    places = np.arange(len(ORDER))
    for i, model in enumerate(names):
        runs = 100 * dataset.change.sel(model=model, rule=list(ORDER)).transpose("run", "rule")
        rows.medians(ax, places + offset(names, i), runs.values, span, **look_of(model))
    ax.axvspan(span[0], -100 * claims.HELPS, color="grey", alpha=0.15, lw=0)
    ax.axvline(0, color="grey", lw=0.8)
    ax.set_yticks(places, ORDER)
    ax.set(xlim=span, ylim=(len(ORDER) - 0.5, -0.5), xlabel=CHANGE)


def name_points(ax, dataset, names, rule):
    """The models beside their points in one row, at the left where the error falls."""
    for i, model in enumerate(names):
        runs = 100 * dataset.change.sel(model=model, rule=rule).values
        left = np.median(runs) < 0
        end = np.clip(np.quantile(runs, style.QUANTILES[not left]), *ax.get_xlim())
        y, color = ORDER.index(rule) + offset(names, i), look_of(model)["color"]
        direct_label(ax, end, y, model.split()[-1], color, (-4 if left else 4, 0))


def offset(names, i: int) -> float:
    """Where in a row the points of one of the models are."""
    return 0.3 * (i - (len(names) - 1) / 2)


def judged(ax, dataset):
    judged_panel.rows(ax, *evidence(claims, dataset), (-0.4, 0.4))
    ax.axvline(0, color="grey", lw=0.8)
    ax.set(xlabel="change, as a share", title="what is judged")


def lucky(ax, dataset):
    """The best of the random orders, known in hindsight."""
    names = stack_names(results.config_of(dataset))
    for i, model in enumerate(names):
        runs = 100 * dataset.luck.sel(model=[model]).transpose("run", "model").values
        rows.medians(ax, [i], runs, (-100.0, 5.0), **look_of(model))
    ax.axvline(0, color="grey", lw=0.8)
    ax.set_yticks(range(len(names)), names)
    ax.set(xlim=(-100, 5), ylim=(len(names) - 0.5, -0.5), xlabel=CHANGE)
    ax.set_title("luckiest order")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    change = 100 * dataset.change.median("run")
    steps = change.sel(rule="large to small step")
    by_model = ", ".join(f"{float(steps.sel(model=m)):+.2g} % ({m})" for m in useful_stacks(config))
    best = "; ".join(
        f"{m}: {RULES[int(change.sel(model=m).argmin('rule'))]}, "
        f"{float(change.sel(model=m).min()):.2g} %"
        for m in useful_stacks(config)
    )
    luck = 100 * dataset.luck.sel(model=useful_stacks(config)).median("run").values
    far = (dataset.level / dataset.bayes).sel(model=useful_stacks(config)).median("run").values
    finished = int((dataset.status != "diverged").sum())
    return (
        f"Which order helps depends on the model: large gradient steps first change the error by "
        f"{by_model}. "
        "a: change of the error by each rule; grey: helps. Most helps: "
        f"{best}. b: {judged_panel.KEY}. c: random weights. d: in hindsight the luckiest of "
        f"{config.random_orders} random orders of each prompt would give "
        + ", ".join(f"{change:.0f} %" for change in luck)
        + f" (useful models). Median of {config.runs} runs and the middle 80 % of them; "
        f"{style.missing(dataset.change)} left out as not finite, and of each run's prompts the "
        f"{100 * config.left_out:.0f} % with the largest errors. Causal stacks of {config.depth} "
        f"layers, {config.n} demonstrations, trained on random orders; {finished} of "
        f"{dataset.status.size} trainings finished; errors in random orders "
        + ", ".join(f"{ratio:.2g}" for ratio in far)
        + " times the Bayes rule's. Without the causal mask no order changes anything, a theorem "
        f'(docs/theory, "The order of demonstrations"). d = {config.d}.'
    )
