"""Is there an order of the demonstrations that helps causal models?"""

import jax
import numpy as np

from experiments import style
from experiments.configs.demonstration_order import TIERS, Config
from experiments.parts.ordering import RULES, built, draw, models, predictions
from lsa_lab import results
from lsa_lab.claims import about_the_mean, about_the_median

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]


def changes(config, error):  # [R, B, 6 + O] -> [R, 2, 6], [R, 6], [R]
    """Change of the error against random orders, as a share of theirs: by rule on each half of the
    prompts, and by rule on all; and the standard deviation over random orders, on all.

    Left out are the prompts with the largest error in any order, the same for all rules.
    """
    halves = np.array_split(np.arange(config.test_prompts), 2)

    def share(rows):  # [R, B', 6 + O] -> [R, 6], [R]
        kept = rows.shape[1] - int(config.left_out * rows.shape[1])
        mild = np.argsort(rows.max(-1), axis=1)[:, :kept, None]
        rows = np.take_along_axis(rows, mild, axis=1)
        random = rows[:, :, len(RULES) :]
        level = random.mean((1, 2))
        ruled = rows[:, :, : len(RULES)].mean(1) / level[:, None] - 1
        return ruled, random.min(2).mean(1) / level - 1

    by_half = np.stack([share(error[:, half])[0] for half in halves], axis=1)
    return by_half, *share(error)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    found, status = built(config, progress)
    names = models(config)
    key = jax.random.fold_in(jax.random.key(config.seed), 0)
    batch, sorted_ = draw(config, key)
    answers = np.asarray(batch.y_query)[:, :, None]
    few = jax.tree.map(lambda leaf: leaf[:, : max(4, config.test_prompts // 20)], batch)
    measured, effect, level = [], [], []
    for name in names:
        forward, params = found[name]
        predicted = np.asarray(predictions(forward["causal"], params, batch, sorted_))
        measured.append(changes(config, (predicted - answers) ** 2))
        level.append(np.median((predicted[:, :, len(RULES) :] - answers) ** 2, axis=(1, 2)))
        free = np.asarray(
            predictions(forward["demonstrations"], params, few, sorted_[:, : len(few.y_query[0])])
        )
        size = np.sqrt((free**2).mean((1, 2)))
        effect.append(np.abs(free - free[:, :, :1]).max((1, 2)) / size)
    half, whole, luck = (np.stack(part) for part in zip(*measured, strict=True))
    return xr.Dataset(
        {
            "half": (("model", "run", "half", "rule"), half),
            "change": (("model", "run", "rule"), whole),
            "luck": (("model", "run"), luck),
            "level": (("model", "run"), np.stack(level)),
            "control": (("model", "run"), np.stack(effect)),
            "status": (("trained", "run"), np.array(list(status.values()))),
        },
        {"model": names, "rule": list(RULES), "trained": list(status)},
    )


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(9.0, 4.0, (1, 2))
    lost, places, names = 0, np.arange(len(RULES)), list(dataset.model.values)
    useful = names[names.index("descent") :]
    for i, model in enumerate(names):
        runs = 100 * dataset.change.sel(model=model).transpose("run", "rule").values
        ax = axes[0] if model.startswith("random") else axes[1]
        spot = places + 0.2 * (i - (0.5 if ax is axes[0] else 3))
        lost += style.band(ax, spot, runs, model, style.COLOURS[i], style.MARKERS[i])
    for ax, title in zip(axes, ("random weights", "constructed and trained"), strict=True):
        ax.axhline(0, color="grey", lw=0.8)
        ax.axhline(-100 * settings.gain, color="grey", lw=0.8, ls="--")
        ax.set_xticks(places, RULES, rotation=35, ha="right", rotation_mode="anchor")
        ax.set_title(title)
        ax.legend()
    axes[0].set_ylabel("change of the error against random orders, %")
    best = {m: int(dataset.change.sel(model=m).median("run").argmin("rule")) for m in names}
    gain = (100 * dataset.change.median("run")).min("rule")
    said = "; ".join(f"{m}: {RULES[best[m]]}, {float(gain.sel(model=m)):.2g} %" for m in useful)
    luck = 100 * dataset.luck.median("run")
    finished = int((dataset.status != "diverged").sum())
    style.caption(
        drawn,
        f"Causal stacks of {settings.depth} layers, {settings.n} demonstrations, trained on "
        f"random orders. The rule that helps most: {said}. The luckiest of "
        f"{settings.random_orders} random orders of each prompt, known in hindsight, would give "
        + ", ".join(f"{float(luck.sel(model=m)):.0f} %" for m in useful)
        + ". Dashes: what counts as help. Without the causal mask every change is 0. Median of "
        f"{settings.runs} runs and the middle 80 % of them; {lost} left out as not finite; "
        f"{finished} of {dataset.status.size} trainings finished; of each run's prompts the "
        f"{100 * settings.left_out:.0f} % with the largest errors are left out. d = {settings.d}.",
    )
    return drawn


def chosen(half):  # [R, 2, 6] -> [R]
    """The change that a rule brings on one half of the prompts, chosen on the other: both ways."""
    half, runs = half.values, np.arange(half.sizes["run"])
    ways = [half[runs, 1 - i, half[:, i].argmin(-1)] for i in (0, 1)]
    return np.mean(ways, axis=0)


def claims(dataset):
    settings = results.settings(dataset)
    question = "A3, open question on order"
    share = (
        "change of the error against random orders, without the "
        f"{settings.left_out:.0%} of prompts with the largest errors in any order"
    )
    worst = max(dataset.control.transpose("model", "run").values, key=np.mean)
    found = [
        about_the_mean(
            "demonstration_order.control",
            "derived here",
            "Where all tokens read all demonstrations no order helps or harms",
            "mean over runs, at the worst model, of the largest change over the root mean square "
            f"prediction <= {settings.none:g} (statistic changed after a first run: it was over "
            "the median prediction, and the rounding of exploded ones is larger)",
            worst,
            at_most=settings.none,
        )
    ]
    for model in (m for m in dataset.model.values if not m.startswith("random")):
        name = model.replace(" ", "_")
        half = dataset.half.sel(model=model).transpose("run", "half", "rule")
        easy, large = (
            dataset.change.sel(model=model, rule=rule).values
            for rule in ("easy to hard", "large to small step")
        )
        found += [
            about_the_median(
                f"demonstration_order.{name}_best",
                question,
                f"Some rule of ordering helps {model} attention",
                f"median over runs of the {share}, by the rule chosen on other prompts, <= "
                f"-{settings.gain:g}",
                chosen(half),
                at_most=-settings.gain,
            ),
            about_the_median(
                f"demonstration_order.{name}_easy_to_hard",
                question,
                f"Easy demonstrations first and hard ones last help {model} attention",
                f"median over runs of the {share} <= 0",
                easy,
                at_most=0.0,
            ),
            about_the_median(
                f"demonstration_order.{name}_large_steps_first",
                question,
                f"Demonstrations with large gradient steps first help {model} attention",
                f"median over runs of the {share} <= 0 (claim added after a first run)",
                large,
                at_most=0.0,
            ),
        ]
    return found
