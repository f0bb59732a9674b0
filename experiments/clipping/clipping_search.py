"""Does a searched clipping rate improve trained models on other prompts (A2, Algorithm 1)?

Algorithm 1 clips one part of the deepest of the layers with the largest condition numbers, at the
rate that does best on validation prompts; here validation also chooses the part, or no edit. The
null is the same search among random edits of the same matrices with the same Frobenius norm. The
models are tested as trained and on four other distributions, where they are better than predicting
0. Two ablations: a search of W_K alone in all layers, and pruning by magnitude to as many
parameters as a truncation keeps.
"""

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
import xarray as xr

from experiments.clipping import clipped
from experiments.clipping.clipped import PARTS, SHIFTS
from experiments.models import tasks
from experiments.models.named import NamedModels
from lsa_lab.analyses import clipping
from lsa_lab.analyses.clipping import DROP, Edit
from lsa_lab.lab import Claim, geometric_mean, main, plotting

TASKS = tuple(clipped.MODELS)
ALGORITHM, RANDOM, KEYS = SEARCHES = ("Algorithm 1", "random edits", "W_K alone")
TRAINED = SHIFTS[0]


@dataclass(frozen=True)
class Config(NamedModels):
    names: tuple[str, ...] = tuple(clipped.MODELS.values())  # trained models
    runs: int = 36  # trainings of each model at most
    # Those of A2 that keep different ranks of 16: else one truncation has several random edits.
    rates: tuple[float, ...] = (0.1, 0.5, 0.75, 0.9)
    top_k: int = 2  # layers with the largest condition numbers; A2 leaves it open
    few: int = 5  # demonstrations of a prompt with fewer shots
    small_inputs: float = 0.5  # scale of the smaller covariates
    large_inputs: float = 1.5  # and of the larger ones
    validation: int = 200  # prompts of each training to search with
    test: int = 2000  # others, for the one test
    worst: float = 1.0  # risk over that of predicting 0; models above it are left out
    seed: int = 5401


TIERS = {
    "smoke": Config(small=True, runs=2, rates=(0.5, 0.75), few=2, validation=8, test=8, worst=1e9,
                    seed=1),
    "quick": Config(runs=9, rates=(0.1, 0.5, 0.9), validation=100, test=200, seed=2),
    "full": Config(),
}  # fmt: skip


def list_edits(depth, rates, parts):  # -> [L M Q]
    return [Edit(layer, part, rate) for layer in range(depth) for part in parts for rate in rates]


def build_candidates(key, config, params, truncated):  # -> {search: leaves [R, E, ...]}
    """Return the candidates of each search among truncations of all parts, layers and rates."""
    num_rates = len(config.rates)
    layers = [clipped.choose_layers(params, part, config.top_k) for part in PARTS.values()]
    starts = (np.stack(layers, axis=1) * len(PARTS) + np.arange(len(PARTS))) * num_rates  # [R, M]
    places = (starts[..., None] + np.arange(num_rates)).reshape(len(starts), -1)
    chosen = clipped.take_edits(truncated, places)
    keys = list_edits(params.w_k.shape[1], config.rates, ("w_k",))
    disturbed = clipped.disturb_all(key, params, chosen)
    return {ALGORITHM: chosen, RANDOM: disturbed, KEYS: clipped.edit_all(params, keys)}


def search_shift(spec, models, sizes, validation, test):
    """Choose the best candidate of each search, of ``sizes``, on validation, and test it once."""
    tried = clipped.compute_risks(clipped.predict_all(spec, models, validation), validation)
    chosen, start = [np.zeros(len(tried), int)], 1  # the first is no edit
    for size in sizes:
        best = start + tried[:, start : start + size].argmin(1)
        better = tried[np.arange(len(tried)), best] < tried[:, 0]
        chosen, start = [*chosen, np.where(better, best, 0)], start + size
    chosen = np.stack(chosen, axis=1)
    answers = clipped.predict_all(spec, clipped.take_edits(models, chosen), test)
    risks = clipped.compute_risks(answers, test)
    return {
        "validation": np.take_along_axis(tried, chosen[:, 1:], 1) / tried[:, :1],
        "tested": risks[:, 1:] / risks[:, :1],
        "unedited": risks[:, 0],
        "zero": (np.asarray(test.y_query, float) ** 2).mean(1),
    }


def compare_edits(spec, params, truncated, config, batch):
    """Return the mean factors of truncation and of pruning [R], and of dropping a layer [R, L]."""
    depth, parts = spec.architecture.depth, tuple(PARTS.values())
    edits = list_edits(depth, config.rates, parts)
    dropped = [Edit(layer, parts, DROP) for layer in range(depth)]
    pruned = clipped.edit_all(params, edits, clipping.sorted_magnitudes)
    models = clipped.join_edits(params, truncated, pruned, clipped.edit_all(params, dropped))
    risks = clipped.compute_risks(clipped.predict_all(spec, models, batch), batch)
    logs = np.log(risks[:, 1:] / risks[:, :1])
    first, pruned, drops = np.split(logs, [len(edits), 2 * len(edits)], axis=1)
    means = {"truncated": first.mean(1), "pruned": pruned.mean(1), "dropped": drops}
    return {name: np.exp(values) for name, values in means.items()}


def measure_model(config, runs):  # -> Dataset (shift, run, search)
    spec, params = runs.spec, clipped.load_params(runs, config.runs)
    count, depth = params.w_k.shape[:2]
    key = jax.random.fold_in(jax.random.key(config.seed), TASKS.index(clipped.find_task(spec)))
    key_edits, *keys = jax.random.split(key, 1 + len(SHIFTS))
    prompts, ends = [], (slice(config.validation), slice(config.validation, None))
    for key, shift in zip(keys, SHIFTS, strict=True):
        law = clipped.shift_task(spec.task, shift, config.small_inputs, config.large_inputs)
        batch = tasks.draw_runs(key, law, count, config.validation + config.test)
        batch = clipped.shorten(batch, config.few) if shift == "fewer shots" else batch
        prompts.append([jax.tree.map(lambda leaf, end=end: leaf[:, end], batch) for end in ends])
    edits = list_edits(depth, config.rates, PARTS.values())
    truncated = clipped.edit_all(params, edits)
    candidates = build_candidates(key_edits, config, params, truncated)
    models = clipped.join_edits(params, *candidates.values())
    sizes = [group.w_k.shape[1] for group in candidates.values()]
    rows = [search_shift(spec, models, sizes, *pair) for pair in prompts]
    axes = ("shift", "run", "search")
    tables = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    data = {name: (axes[: table.ndim], table) for name, table in tables.items()}
    data["able"] = axes[:2], tables["unedited"] < config.worst * tables["zero"]
    factors = compare_edits(spec, params, truncated, config, prompts[0][0])
    data |= {name: (("run", "layer")[: table.ndim], table) for name, table in factors.items()}
    return xr.Dataset(data, {"shift": list(SHIFTS), "search": list(SEARCHES)})


def compute(config, models):
    groups = {clipped.find_task(r.spec): measure_model(config, r) for r in models.values()}
    return xr.DataTree.from_dict(groups)


FEWEST = 9  # the least number of runs for an interval of a ratio


def select_able(result, task, shift=TRAINED):  # -> Dataset (run, search), or None
    """Return the runs that are better than predicting 0; None if they are too few."""
    if task not in result.children:
        return None
    data = result[task].to_dataset().sel(shift=shift)
    data = data.isel(run=np.flatnonzero(data["able"]))
    few = min(FEWEST, result[task].sizes["run"])
    return data if data.sizes["run"] >= few else None


def factor_on_test(result, task, shift, search=ALGORITHM):  # -> [R], or None
    data = select_able(result, task, shift)
    return None if data is None else data["tested"].sel(search=search).values


def over_random(result, task, shift):  # -> [R], or None
    factor = factor_on_test(result, task, shift)
    return None if factor is None else factor / factor_on_test(result, task, shift, RANDOM)


def keys_alone(result, task):  # -> [R], or None
    return factor_on_test(result, task, TRAINED, KEYS)


def optimism(result, task):  # -> [R], or None
    """Return the test factor over the validation factor, a geometric mean over distributions."""
    if task not in result.children:
        return None
    data = result[task].to_dataset().sel(search=ALGORITHM)
    data = data.isel(run=np.flatnonzero(data["able"].sel(shift=TRAINED)))
    logs = np.log(data["tested"] / data["validation"]).where(data["able"])
    return np.exp(logs.mean("shift")).values


def over_pruning(result, task):  # -> [R], or None
    data = select_able(result, task)
    return None if data is None else (data["truncated"] / data["pruned"]).values


PAIRED = "none: the ratio is paired, and 1 without a difference"
ratio = partial(Claim, statistic="ratio")
SHIFTED = {"task": TASKS, "shift": SHIFTS}
CLAIMS = (
    ratio("algorithm", "A2, Figure 4", "Algorithm 1 lowers the risk in {task}, {shift}, by 1 % or "
          "more", "the risk on test prompts after the edit that validation chose over that "
          "unedited", factor_on_test, at_most=0.99, over=SHIFTED, null="over_random",
          note="no edit is one of the choices, and has the ratio 1"),
    ratio("over_random", "derived here", "Algorithm 1 leaves a lower risk in {task}, {shift}, "
          "than the same search among random edits with the same norm",
          "the risk on test prompts after Algorithm 1 over that after the other search",
          over_random, at_most=1.0, over=SHIFTED, null=PAIRED),
    ratio("optimism", "derived here", "In {task} a part of the gain on validation prompts is due "
          "to selection", "the factor of the risk on test prompts over that on validation prompts, "
          "a geometric mean over distributions", optimism, at_least=1.0, over={"task": TASKS},
          null="none: the ratio is paired, and 1 without selection"),
    ratio("keys_alone", "A2, Appendix B.3", "In {task} truncating W_K alone, in the layer and at "
          "the rate that validation chose, gains less than 1 % of the risk",
          "the risk on test prompts after this edit over that unedited", keys_alone, at_least=0.99,
          over={"task": TASKS}, null="none: the ratio is paired, and 1 without an effect"),
    ratio("over_pruning", "A2, Remarks 4 and 6", "In {task} truncation raises the risk less than "
          "pruning by magnitude to as many parameters",
          "the risk after truncation over that after pruning, a geometric mean over layers, parts "
          "and rates", over_pruning, at_most=1.0, over={"task": TASKS}, null=PAIRED),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    tasks = [task for task in TASKS if task in result.children]
    picture, axes = plotting.figure(6.75, 2.7, (1, len(tasks)), sharey=True)
    looks = plotting.looks(SEARCHES, "so^", (plotting.VERMILION, plotting.GREY, plotting.BLUE))
    sentences = []
    for ax, task in zip(axes, tasks, strict=True):
        chosen = [shift for shift in SHIFTS if select_able(result, task, shift) is not None]
        for place, shift in enumerate(chosen):
            factors = {s: factor_on_test(result, task, shift, s)[:, None] for s in SEARCHES}
            look = dict(ls="none", capsize=2) | ({} if place == 0 else {"label": None})
            plotting.series(ax, [place], factors, looks, "ratio", 0.2, **look)
        ax.axhline(1, color="grey", lw=0.8, ls=":")
        ax.set_xticks(range(len(chosen)), [shift.replace(" ", "\n") for shift in chosen])
        ax.set_title(task.capitalize())
        sentences.append(describe(result, task, chosen))
    axes[0].set_ylabel("risk edited / unedited")
    axes[-1].legend()
    return picture, (
        f"{' '.join(sentences)} Points are geometric means of trainings on {config.test} test "
        f"prompts each; edits are chosen on {config.validation} others."
    )


def describe(result, task, shifts) -> str:
    factors = {shift: geometric_mean(factor_on_test(result, task, shift)) for shift in shifts}
    best = min(factors, key=factors.get)
    random = geometric_mean(factor_on_test(result, task, best, RANDOM))
    dropped = np.exp(np.log(select_able(result, task)["dropped"]).mean("run"))
    left_out = [shift for shift in SHIFTS if shift not in shifts]
    missing = f" ({', '.join(left_out)}: left out, worse than predicting 0)" if left_out else ""
    return (
        f"In {task} Algorithm 1 multiplies the risk by {factors[best]:.3f} at best, {best}, where "
        f"the same search among random edits multiplies it by {random:.3f}{missing}; dropping a "
        f"whole layer multiplies the risk as trained by {float(dropped.min()):.3g} to "
        f"{float(dropped.max()):.3g}."
    )


if __name__ == "__main__":
    main(__file__)
