"""What each rule of ordering changes of the error, for random and for useful weights."""

import numpy as np

from experiments.matching.demonstration_order.claims import samples
from experiments.matching.demonstration_order.config import RULES, models, statements, useful
from lsa_lab import results
from lsa_lab.harness import judged_panel, style


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(6.75, 6.0, (2, 2))
    places = np.arange(len(RULES))
    for i, model in enumerate(models(config)):
        runs = 100 * dataset.change.sel(model=model).transpose("run", "rule")
        ax, middle = (axes[1], 3) if model in useful(config) else (axes[0], 0.5)
        x = places + 0.2 * (i - middle)
        style.band(ax, x, runs, model, style.COLOURS[i], style.MARKERS[i])
    for ax, title in zip(axes[:2], ("random weights", "constructed and trained"), strict=True):
        ax.axhline(0, color="grey", lw=0.8)
        ax.axhline(-100 * config.gain, color="grey", lw=0.8, ls="--")
        ax.set_xticks(places, RULES, rotation=35, ha="right", rotation_mode="anchor")
        ax.set_title(title)
        ax.legend()
    axes[0].set_ylabel("change against random orders, %")
    judged_rows(axes[2], dataset)
    lucky(axes[3], dataset)
    return figure


def lucky(ax, dataset):
    """The best of the random orders, known in hindsight."""
    names = models(results.config_of(dataset))
    runs = 100 * dataset.luck.sel(model=names).transpose("run", "model")
    style.band(ax, np.arange(len(names)), runs)
    ax.axhline(0, color="grey", lw=0.8)
    ax.set_xticks(np.arange(len(names)), names, rotation=35, ha="right", rotation_mode="anchor")
    ax.set(ylabel="change against random orders, %")
    ax.set_title("luckiest order, in hindsight")


def judged_rows(ax, dataset):
    rules = {
        "best": "chosen rule",
        "easy_to_hard": "easy first",
        "large_steps_first": "large steps",
    }
    config = results.config_of(dataset)
    names = {
        f"{model.replace(' ', '_')}_{rule}": f"{model}, {name}"
        for model in useful(config)
        for rule, name in rules.items()
    }
    judged_panel.rows(ax, statements(config), samples(dataset), names, (-0.4, 0.4))
    ax.axvline(0, color="grey", lw=0.8)
    ax.set(xlabel="judged change, as a share")
    ax.set_title("what is judged")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    change = 100 * dataset.change.median("run")
    steps = change.sel(rule="large to small step")
    by_model = ", ".join(f"{float(steps.sel(model=m)):+.2g} % ({m})" for m in useful(config))
    best = "; ".join(
        f"{m}: {RULES[int(change.sel(model=m).argmin('rule'))]}, "
        f"{float(change.sel(model=m).min()):.2g} %"
        for m in useful(config)
    )
    luck = 100 * dataset.luck.sel(model=useful(config)).median("run").values
    far = (dataset.level / dataset.bayes).sel(model=useful(config)).median("run").values
    finished = int((dataset.status != "diverged").sum())
    return (
        f"Which order helps depends on the model: large gradient steps first change the error by "
        f"{by_model}. "
        f"Causal stacks of {config.depth} layers, {config.n} demonstrations, trained on random "
        f"orders. The rule that helps most: {best}. The luckiest of {config.random_orders} random "
        "orders of each prompt, known in hindsight, would give "
        + ", ".join(f"{change:.0f} %" for change in luck)
        + ". Dashes: what counts as help. Without the causal mask no order changes anything, a "
        'theorem (docs/theory, "The order of demonstrations"). The median error in random orders '
        "is "
        + ", ".join(f"{ratio:.2g}" for ratio in far)
        + f" times the Bayes rule's. c: {judged_panel.KEY}. a, b, d: median of "
        f"{config.runs} runs and the middle 80 % of them; {style.missing(dataset.change)} left out "
        f"as not finite; {finished} of {dataset.status.size} trainings finished; of each run's "
        f"prompts the {100 * config.left_out:.0f} % with the largest errors are left out. "
        f"d = {config.d}."
    )
