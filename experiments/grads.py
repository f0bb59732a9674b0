"""Does selecting demonstrations by their flow (GradS) beat other selection?"""

import jax
import numpy as np

from experiments import style
from experiments.configs.grads import TIERS, Config
from experiments.parts.selecting import PROMPTS, RIVALS, RULES, join, oracle, seen, study
from experiments.parts.selection_cases import SETTINGS, draw
from lsa_lab import results
from lsa_lab.claims import about_the_mean, mean_interval
from lsa_lab.tasks import tables

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    table, runs, found, best_of = tables.load_diabetes(float), config.runs, [], []
    for i, setting in enumerate(SETTINGS):
        cases = draw(config, setting, table)
        key = jax.random.fold_in(jax.random.key(config.seed), i)
        keys = jax.random.split(key, (runs + config.validation, config.queries))
        found.append({m: seen(study, config, cases, keys, m) for m in config.pools})
        few = jax.tree.map(lambda leaf: leaf[:runs, : config.few], (cases, keys))
        best_of.append(seen(oracle, config, *few, config.pool))
        if setting == "duplicates":
            joined = seen(join, config, *few, config.pool)["joined"]

    def all_shots(values):  # more shots than the pool has are NaN
        missing = len(config.shots) - values.shape[-1]
        return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)], constant_values=np.nan)

    error = np.array([[all_shots(of[m]["error"]) for m in config.pools] for of in found])
    layer = np.array([of[config.pool]["layer"] for of in found])
    end = np.array([[of[m]["end"] for m in config.pools] for of in found])
    best = np.array([of[config.small]["best"] for of in found])
    of_rule, of_layer = ("rule", "shots"), ("prompt", "layer", "shots")
    return xr.Dataset(
        {
            "error": (("setting", "pool", "run", *of_rule), error[:, :, :runs]),
            "validation": (("setting", "pool", "other", *of_rule), error[:, :, runs:]),
            "layer_error": (("setting", "run", *of_layer), layer[:, :runs]),
            "layer_validation": (("setting", "other", *of_layer), layer[:, runs:]),
            "end": (("setting", "pool", "run", "prompting"), end[:, :, :runs]),
            "best": (("setting", "run"), best[:, :runs]),
            "oracle": (("setting", "run", "shots"), np.array([of["oracle"] for of in best_of])),
            "zero_shot": (("setting", "run"), np.array([of["zero_shot"] for of in best_of])),
            "joined": (("run", "flow"), joined),
        },
        {
            "setting": list(SETTINGS),
            "pool": list(config.pools),
            "rule": list(RULES),
            "shots": list(config.shots),
            "prompt": list(PROMPTS),
            "layer": np.arange(1, config.depth + 1),
            "prompting": ["zero-shot", "whole pool"],
            "flow": ["static", "recomputed"],
        },
    )


def gain(over, of):  # [R] -> [R]
    """The relative gain of one error over another, run by run."""
    return 1 - of.values / over.values


def against_rivals(dataset, setting, shots):  # -> name, gains [R]
    """GradS over the rival that is strongest on other queries, those of the validation."""
    at = {"setting": setting, "pool": results.settings(dataset).pool, "shots": shots}
    known = dataset.validation.sel(**at, rule=list(RIVALS)).mean("other")
    name = RIVALS[int(known.argmin("rule"))]
    errors = dataset.error.sel(**at)
    return name, gain(errors.sel(rule=name), errors.sel(rule="GradS"))


def last_layer(dataset, prompt):  # -> layer, gains [R]
    """The last layer's flow over that of the earlier layer which is best on other queries."""
    at = {"setting": "prior", "prompt": prompt, "shots": results.settings(dataset).judged}
    known = dataset.layer_validation.sel(**at).mean("other")
    layer = int(known[:-1].argmin("layer"))
    errors = dataset.layer_error.sel(**at)
    return layer + 1, gain(errors.isel(layer=layer), errors.isel(layer=-1))


LOOKS = {  # rule: colour, marker
    "random": ("grey", "P"),
    "relevance × determinantal": (style.COLOURS[5], "v"),
    "similarity": (style.COLOURS[3], "D"),
    "residual": (style.COLOURS[4], "^"),
    "relevance": (style.COLOURS[2], "s"),
    "flow × input": (style.COLOURS[0], "o"),
    "contribution, recomputed": (style.COLOURS[0], "*"),
    "GradS": (style.COLOURS[1], "o"),
}
TITLES = ("weights know half", "with duplicates", "a real table")


def draw_rules(ax, x, share):
    """Of every rule, side by side; how many numbers are not finite."""
    lost = 0
    for i, (rule, (color, marker)) in enumerate(LOOKS.items()):
        values, beside = share.sel(rule=rule), x * 1.025 ** (i - len(LOOKS) / 2)
        lost += style.band(ax, beside, values, rule, color, marker)
        ax.plot(beside, np.median(values, axis=0), color=color, lw=0.8)
    ax.set(ylabel="error / error without")
    return lost


def plot(dataset):
    from matplotlib.ticker import PercentFormatter

    settings = results.settings(dataset)
    drawn, axes = style.figure(9.0, 6.8, (2, 3))
    shots, pools, layers = (dataset[name].values for name in ("shots", "pool", "layer"))
    k, looks = settings.judged, list(zip(SETTINGS, style.COLOURS, style.MARKERS, strict=False))
    share = dataset.error / dataset.end.sel(prompting="zero-shot")
    here, lost = share.sel(pool=settings.pool), 0
    for i, (ax, setting) in enumerate(zip(axes, SETTINGS, strict=False)):
        lost += draw_rules(ax, shots, here.sel(setting=setting).transpose(..., "run", "shots"))
        style.log_axes(ax, x=True, y=i == 0, ticks=shots)
        ax.set(xlabel=f"demonstrations of a pool of {settings.pool}")
        ax.set_title(TITLES[i])
    larger = share.sel(setting="prior", shots=k).transpose(..., "run", "pool")
    lost += draw_rules(axes[3], pools, larger)
    ratio = dataset.best / dataset.end.sel(pool=settings.small, prompting="zero-shot")
    best = float(ratio.sel(setting="prior").median())
    axes[3].plot(settings.small, best, "x", color=style.BLACK)
    axes[3].annotate("best subset", (settings.small, best), (-5, -11), textcoords="offset points")
    style.log_axes(axes[3], x=True, y=True, ticks=pools)
    axes[3].set(xlabel="pool")
    axes[3].set_title(f"{k} shots from larger pools")
    for setting, color, marker in looks:
        for prompt, face in zip(PROMPTS, (color, "none"), strict=True):
            at = dataset.layer_error.sel(setting=setting, prompt=prompt, shots=k)
            values = (at / at.sel(layer=1)).median("run")
            label = f"{setting}, {prompt}"
            axes[4].plot(layers, values, f"{marker}-", color=color, mfc=face, lw=0.8, label=label)
        gains = [against_rivals(dataset, setting, some)[1] for some in settings.shots]
        middle, ends = np.mean(gains, 1), np.array([mean_interval(some) for some in gains]).T
        bars = {"yerr": np.abs(ends - middle), "capsize": 2, "lw": 0.8}
        axes[5].errorbar(shots, middle, fmt=f"{marker}-", color=color, label=setting, **bars)
    axes[4].set(xlabel="layer of the flow", ylabel="error / that by layer 1", xticks=layers)
    axes[4].set_title(f"GradS from each layer, {k} shots")
    axes[5].axhline(0, color="grey", lw=0.8)
    for bound, name, dash in ((settings.headline, "A1", "--"), (settings.later, "A1, later", ":")):
        axes[5].axhline(bound, color=style.BLACK, lw=0.8, ls=dash, label=f"{name}: {bound:.1%}")
    style.log_axes(axes[5], x=True, ticks=shots)
    axes[5].set(xlabel="demonstrations", ylabel="gain over the strongest rival")
    axes[5].yaxis.set_major_formatter(PercentFormatter(1))
    axes[5].set_title("GradS against the rest")
    for ax in axes[4:]:
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + 0.3 * (high - low))
        ax.legend(ncols=2, loc="upper center", columnspacing=1)
    drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    style.caption(drawn, message(dataset, lost))
    return drawn


def message(dataset, lost):
    settings = results.settings(dataset)
    found = {name: against_rivals(dataset, name, settings.judged) for name in SETTINGS}
    gains = [f"{gains.mean():+.0%} ({name}: {rival})" for name, (rival, gains) in found.items()]
    seeing = (dataset.oracle.sel(shots=settings.judged) / dataset.zero_shot).median("run")
    whole = dataset.end.sel(pool=settings.pool)
    whole = (whole.sel(prompting="whole pool") / whole.sel(prompting="zero-shot")).median("run")
    return (
        f"At {settings.judged} shots GradS (the norm of Eq. 2) gains {', '.join(gains)} in squared "
        f"error over the rival that is strongest on other queries; A1's {settings.headline:.1%} "
        f"and {settings.later:.1%} are of scores on language tasks. The contribution, recomputed "
        "after each pick, asks what the chosen ones left open. Not drawn twice: the slot's flow is "
        "GradS, the label's the relevance, and the contribution flow × input. An oracle that sees "
        f"the answer leaves {pair(seeing)} of the error, the whole pool {pair(whole)} (a / b / c). "
        f"Median of {settings.runs} runs and the middle 80 % of them (f: mean and its 95 % "
        f"interval), {settings.queries} queries each; {lost} left out as not finite. Learner: "
        f"{settings.depth} steps of 1/λ_max."
    )


def pair(values):
    return " / ".join(f"{float(value):.1%}" for value in values)


def claims(dataset):
    settings = results.settings(dataset)
    k, m, own = settings.judged, settings.pool, "derived here"
    paper = "A1 (2508.00385)"
    carried, ablation = f"{paper}, carried over", f"{paper}, its ablation of layers"
    prior, duplicates, table = (dataset.error.sel(pool=m, shots=k, setting=s) for s in SETTINGS)
    none = dataset.end.sel(setting="table", pool=m, prompting="zero-shot")
    best, once = "that is best on other queries", "the same, computed once"
    rivals = {setting: against_rivals(dataset, setting, k) for setting in SETTINGS}
    rivals = {setting: (f"the rival {best}, {name}", g) for setting, (name, g) in rivals.items()}
    layers = [last_layer(dataset, prompt) for prompt in PROMPTS]
    alone, pooled = ((f"the earlier layer {best}, {number}", g) for number, g in layers)
    joined = once, gain(*dataset.joined.transpose("flow", "run"))
    taught = once, gain(*(duplicates.sel(rule=f"contribution{s}") for s in ("", ", recomputed")))

    def over(rule, by="GradS", errors=prior):
        return rule, gain(errors.sel(rule=rule), errors.sel(rule=by))

    nothing, product = ("none", gain(none, table.sel(rule="GradS"))), over("GradS", "flow × input")
    beats, chance = "GradS beats its strongest rival", "GradS beats a random choice"
    last = "The last layer's flow is the best to select by"
    again = "With duplicates in the pool it helps to recompute, after each pick,"
    bounds = {"headline": settings.headline, "later": settings.later}
    rows = {
        "prior": (paper, f"{beats} where weights know half", rivals["prior"]),
        "headline": (
            f"{paper}, version 1",
            f"{beats} by {bounds['headline']:.1%}",
            rivals["prior"],
        ),
        "later": (f"{paper}, on OpenReview", f"{beats} by {bounds['later']:.1%}", rivals["prior"]),
        "duplicates": (carried, f"{beats} with duplicates", rivals["duplicates"]),
        "table": (carried, f"{beats} on the diabetes table", rivals["table"]),
        "random": (paper, f"{chance} where weights know half", over("random")),
        "table_random": (carried, f"{chance} on the table", over("random", errors=table)),
        "table_none": (own, "On the table GradS is better than no demonstrations", nothing),
        "times_input": (own, "Flow × input selects better than the norm of the flow", product),
        "last_layer": (ablation, f"{last}, every demonstration alone", alone),
        "last_layer_pool": (ablation, f"{last}, all of the pool in the prompt", pooled),
        "recomputed_flow": (own, f"{again} the last layer's flow", joined),
        "recomputed_contribution": (own, f"{again} the contribution", taught),
    }
    return [
        about_the_mean(
            f"grads.{name}",
            source,
            statement,
            f"mean over runs of the relative gain in squared error, {k} shots of {m}, over {rival}"
            f" >= {bounds.get(name, settings.gain):g}",
            gains,
            at_least=bounds.get(name, settings.gain),
        )
        for name, (source, statement, (rival, gains)) in rows.items()
    ]
