"""Does clipping change more than the scale of a model's answers?

Algorithm 1 of A2 clips the attention or the MLP of one layer, at the rate that is best on
validation prompts. Its gain on other prompts is compared with that of a map of the answers with one
number or two, fitted on the same validation prompts: a factor, an affine map, a threshold. Models
are small softmax transformers, trained on regression or on two classes; some tasks differ from
that of training. Of every edit the affine share is measured: the share of the mean squared change
of the answers that the best affine map accounts for. Random edits have the same norm. A model that
is worse than the answer 0 on a task is left out there.
"""

import itertools
from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
import xarray as xr

from experiments.clipping import clipped
from experiments.clipping.clipped import MODELS, PARTS, SHIFTS
from experiments.models import tasks
from experiments.models.named import choose_models
from lsa_lab.analyses import clipping
from lsa_lab.lab import Claim, compute_each, main, plotting
from lsa_lab.lm import readings

REGRESSION, CLASSES = MODELS
EDITS = ("clipping", "random edit")
RULES = ("unedited", "Algorithm 1", "one number", "affine map", "random search, affine map")
RULES += ("Algorithm 1, affine map",)
READINGS = ("risk", "accuracy", "AUC")


@dataclass(frozen=True)
class Config:
    names: tuple[str, ...] = tuple(MODELS)  # kinds of trained models
    small: bool = False  # tiny models, for tests
    rates: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 0.9)  # of clipping
    top_k: int = 2  # Algorithm 1 clips the deepest of so many layers by condition number
    shifts: tuple[str, ...] = SHIFTS  # tasks
    few: int = 5  # demonstrations where there are fewer
    small_scale: float = 0.5  # of the smaller covariates
    large_scale: float = 2.0  # of the larger covariates
    validation: int = 200  # prompts of a task, to search and to fit with
    test: int = 2000  # other prompts of a task
    worst: float = 1.0  # a model enters below this multiple of the risk of the answer 0
    most: int | None = None  # trainings of each kind
    seed: int = 1431

    @property
    def models(self):
        return choose_models([MODELS[name] for name in self.names], small=self.small)


TIERS = {
    "smoke": Config(small=True, rates=(0.5,), few=2, validation=16, test=16, worst=1e9, seed=1,
                    shifts=SHIFTS[:2]),
    "quick": Config(rates=(0.25, 0.5, 0.75), test=1000, shifts=SHIFTS[:2], most=9, seed=2),
    "full": Config(),
}  # fmt: skip


class Edited:
    """Trained models and all edits of one part of one layer, [R, E] each; the first is none."""

    def __init__(self, spec, params, config, key):
        depth = spec.architecture.depth
        grid = [*itertools.product(PARTS.values(), range(depth), config.rates)]
        edits = [clipping.Edit(0, tuple(PARTS.values()), 0.0)]
        edits += [clipping.Edit(layer, part, rate) for part, layer, rate in grid]
        self.spec, self.shape = spec, (len(PARTS), depth, len(config.rates))
        cut = clipped.edit_all(params, edits)
        self.params = dict(zip(EDITS, (cut, clipped.disturb_all(key, params, cut)), strict=True))
        layers = [clipped.choose_layers(params, part, config.top_k) for part in PARTS.values()]
        chosen = np.stack(layers, axis=1)[..., None] == np.arange(depth)  # [R, parts, L]
        # The places of Algorithm 1's edits, as many for every run.
        self.places = [1 + np.flatnonzero(np.repeat(row, self.shape[-1])) for row in chosen]

    def predict(self, edit, places, batch):  # [R, K], Prompt [R, B] -> [R, K, B]
        params = clipped.take_edits(self.params[edit], np.asarray(places))
        return np.asarray(clipped.predict_all(self.spec, params, batch), float)


def search(edited, kind, edit, validation, test):  # -> answers [R, B] on validation and on test
    """Return the answers after the edit that is best on validation, of none if none gains."""
    places = np.pad(edited.places, ((0, 0), (1, 0)))  # the first is no edit
    answers = edited.predict(edit, places, validation)
    if kind == CLASSES:
        best = clipped.compute_accuracies(answers, validation).argmax(1)
    else:
        best = clipped.compute_risks(answers, validation).argmin(1)
    rows = np.arange(len(best))
    return answers[rows, best], edited.predict(edit, places[rows, best][:, None], test)[:, 0]


def fit_map(kind, affine, pair, targets):  # [B] each -> [B]
    """Return answers on test after the map with one number, or two, that is best on validation."""
    before, after = pair
    if kind == CLASSES and not affine:
        return after + readings.best_threshold_shift(to_scores(before), (targets > 0).astype(int))
    columns = [np.stack([x, np.ones_like(x)][: 1 + affine], axis=1) for x in (before, after)]
    return columns[1] @ np.linalg.lstsq(columns[0], targets, rcond=None)[0]


def to_scores(answers):  # [B] -> [B, 2]
    return np.stack([np.zeros_like(answers), answers], axis=1)


def measure_task(config, kind, edited, batch):  # -> [R, rules, readings], able [R]
    """Return what Algorithm 1 and the maps of answers reach on the test prompts of a task."""
    parts = slice(config.validation), slice(config.validation, None)
    validation, test = (jax.tree.map(lambda leaf, p=p: leaf[:, p], batch) for p in parts)
    whole = np.zeros((len(edited.places), 1), int)
    plain = [edited.predict(EDITS[0], whole, part)[:, 0] for part in (validation, test)]
    found, random = (search(edited, kind, edit, validation, test) for edit in EDITS)
    able = clipped.find_able(clipped.compute_risks(plain[1], test), test, config.worst)

    def read(run, answers):
        target = np.asarray(test.y_query[run], float)
        labels = (target > 0).astype(int)
        most = 2 * np.abs(np.asarray(test.y[run])).max(-1)
        risk = ((np.clip(answers, -most, most) - target) ** 2).mean()
        return risk, ((answers > 0) == labels).mean(), readings.auc(to_scores(answers), labels)

    rows = []
    for run, targets in enumerate(np.asarray(validation.y_query, float)):
        pairs = [[part[run] for part in pair] for pair in (plain, found, random)]
        mapped = [(False, pairs[0]), (True, pairs[0]), (True, pairs[2]), (True, pairs[1])]
        answers = [pairs[0][1], pairs[1][1]]
        answers += [fit_map(kind, affine, pair, targets) for affine, pair in mapped]
        rows.append([read(run, each) for each in answers])
    return np.array(rows), able


def measure(config, kind, runs):  # -> {name: [...]}
    spec, params = runs.spec, clipped.load_params(runs, config.most)
    key, key_edits = jax.random.split(jax.random.key(config.seed + [*MODELS].index(kind)))
    edited, n = Edited(spec, params, config, key_edits), max(spec.task.lengths)
    size, rows, shares = config.validation + config.test, [], None
    keys = jax.random.split(key, len(config.shifts))
    for shift, key_prompts in zip(config.shifts, keys, strict=True):
        task = clipped.shift_task(spec.task, shift, config.small_scale, config.large_scale)
        batch = tasks.draw_runs(key_prompts, task, len(edited.places), size)
        batch = clipped.shorten(batch, config.few if shift == "fewer shots" else n)
        rows.append(measure_task(config, kind, edited, batch))
        if shares is None:  # on the first task
            first = jax.tree.map(lambda leaf: leaf[:, : config.validation], batch)
            places = np.tile(np.arange(1 + np.prod(edited.shape)), (len(edited.places), 1))
            answers = [edited.predict(edit, places, first) for edit in EDITS]
            shares = [[[readings.affine_share(row[0], after) for after in row[1:]]
                       for row in rows] for rows in answers]  # fmt: skip
            shares = np.reshape(shares, (len(EDITS), len(places), *edited.shape)).swapaxes(0, 1)
    scores, able = (np.stack(each) for each in zip(*rows, strict=True))
    return {"score": scores, "able": able, "share": shares}


def compute(config, models):
    def run(kind):
        return measure(config, kind, models[MODELS[kind]])

    rows = compute_each("models", config.names, run)
    axes = {"score": ("shift", "run", "rule", "reading"), "able": ("shift", "run")}
    axes["share"] = ("run", "edit", "part", "layer", "rate")
    names = {"shift": list(config.shifts), "rule": list(RULES), "reading": list(READINGS)}
    names |= {"edit": list(EDITS), "part": list(PARTS), "rate": list(config.rates)}
    groups = [xr.Dataset({name: (axes[name], row[name]) for name in axes}, names) for row in rows]
    return xr.DataTree.from_dict(dict(zip(config.names, groups, strict=True)))


def select(result, kind, shift, reading, rule):  # -> [R]
    """Return the reading of the models that are better than the answer 0 on a task."""
    part = result[kind].to_dataset().sel(shift=shift)
    able = np.flatnonzero(part["able"].values)
    return part["score"].sel(rule=rule, reading=reading).transpose("run").values[able]


def risk_ratio(result, shift, rule, other):  # -> [R], or None
    """Return the risk of regression by one rule over that by another."""
    if (
        shift not in result[REGRESSION]["shift"]
        or not result[REGRESSION]["able"].sel(shift=shift).any()
    ):
        return None
    rows = [select(result, REGRESSION, shift, "risk", each) for each in (rule, other)]
    return rows[0] / rows[1]


def difference(result, reading, rule, other):  # -> [R]
    """Return a reading of two classes by one rule less by another, averaged over tasks."""
    part = result[CLASSES]["score"].sel(reading=reading).where(result[CLASSES]["able"])
    change = (part.sel(rule=rule) - part.sel(rule=other)).mean("shift")
    return change.values[np.isfinite(change.values)]


def affine_share(result, kind, less_random=False):  # -> [R]
    """Return the affine share, averaged over parts, layers and rates."""
    part = result[kind].to_dataset()
    able = np.flatnonzero(part["able"].isel(shift=0).values)  # where the share is measured
    shares = part["share"].mean(("part", "layer", "rate")).isel(run=able)
    share, random = (shares.sel(edit=edit).values for edit in EDITS)
    return share - random if less_random else share


FULL = TIERS["full"]
PAIRED = "none: the ratio is paired, and 1 without an effect"
LESS = "none: the difference is paired, and 0 without an effect"
regression = partial(Claim, source="A2, Figure 4", statistic="ratio", at_most=1.0,
                     over={"shift": SHIFTS})  # fmt: skip
classes = partial(Claim, source="A2, Figure 4")
shares = partial(Claim, source="derived here", over={"kind": tuple(MODELS)})
CLAIMS = (
    regression("over_number", statement="Algorithm 1 lowers the risk of regression more than a "
               "factor of the answers does ({shift})",
               quantity="the risk after Algorithm 1 over that with the answers multiplied by the "
               "number that is best on the same validation prompts",
               sample=partial(risk_ratio, rule="Algorithm 1", other="one number"), null=PAIRED),
    regression("beyond", statement="Algorithm 1 lowers the risk of regression beyond an affine map "
               "of the answers ({shift})", quantity="the risk after Algorithm 1 and an affine map "
               "over that after an affine map alone, each fitted on the same validation prompts",
               sample=partial(risk_ratio, rule="Algorithm 1, affine map", other="affine map"),
               null="beyond_random"),
    regression("beyond_random", statement="Beyond an affine map Algorithm 1 lowers the risk of "
               "regression more than a search among random edits of the same norm ({shift})",
               quantity="the risk after Algorithm 1 over that after the search among random "
               "edits, each followed by an affine map",
               sample=partial(risk_ratio, rule="Algorithm 1, affine map",
                              other="random search, affine map"), null=PAIRED),
    classes("over_threshold", statement="Algorithm 1 raises the accuracy of two-class models more "
            "than one searched threshold", quantity="the accuracy after Algorithm 1 less that with "
            "the threshold that is best on the same validation prompts, averaged over tasks",
            sample=partial(difference, reading="accuracy", rule="Algorithm 1", other="one number"),
            at_least=0.0, null=LESS),
    classes("auc", statement="Algorithm 1 changes the AUC of two-class models, which no monotone "
            "map of the answers changes, by at most .01",
            quantity="the AUC after Algorithm 1 less that without, averaged over tasks",
            sample=partial(difference, reading="AUC", rule="Algorithm 1", other="unedited"),
            at_least=-0.01, at_most=0.01, null=LESS),
    shares("share", statement="Most of what clipping changes in the answers of models of {kind} is "
           "an affine map of them", quantity="the affine share of the change, averaged over parts, "
           "layers and rates", sample=affine_share, at_least=0.5, null="share_less_random"),
    shares("share_less_random", statement="Of what clipping changes in the answers of models of "
           "{kind} an affine map accounts for more than of what random edits of the same norm "
           "change", quantity="the affine share of clipping less that of random edits",
           sample=partial(affine_share, less_random=True), at_least=0.0, null=LESS),
)  # fmt: skip


LOOKS = plotting.looks(MODELS)


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.8, (1, 2))
    samples, looks = {}, {}
    for kind, edit in itertools.product(result.children, EDITS):
        part, name = result[kind].to_dataset(), f"{kind}, {edit}"
        able = np.flatnonzero(part["able"].isel(shift=0).values)
        samples[name] = part["share"].sel(edit=edit).mean(("part", "rate")).isel(run=able)
        looks[name] = LOOKS[kind] | ({} if edit == EDITS[0] else dict(ls="--", mfc="white"))
    layers = np.arange(samples[name].sizes["layer"]) + 1
    plotting.series(left, layers, samples, looks, shift=0.06, capsize=2, lw=0.8)
    left.set(xlabel="layer that is edited", xticks=layers, ylim=(0, 1))
    left.set(ylabel="affine share of the change", title="Changes of the answers")
    left.legend()
    plot_gains(right, result, config)
    texts = []
    for kind in config.names:
        share, lead = (affine_share(result, kind, flag).mean() for flag in (False, True))
        texts.append(
            f"{share:.0%} of what clipping changes in the answers of models of {kind}, and "
            f"{share - lead:.0%} of what random edits of the same norm change"
        )
    change, threshold = (
        difference(result, "accuracy", rule, "unedited").mean() for rule in RULES[1:3]
    )
    return figure, (
        f"An affine map accounts for {'; '.join(texts)}. Of two classes Algorithm 1 changes the "
        f"accuracy by {change:+.4f}, and one searched threshold by {threshold:+.4f}. Below 1 in b, "
        "Algorithm 1 lowers the risk of regression more than the map or the search it is compared "
        "with; an affine map follows it in the last two comparisons. Bars are 95 % intervals over "
        "trainings; models that are worse than the answer 0 on a task are left out there."
    )


def plot_gains(ax, result, config):
    shifts = [s for s in config.shifts if risk_ratio(result, s, RULES[0], RULES[0]) is not None]
    rules = {
        "over one factor": ("Algorithm 1", "one number"),
        "over affine map": ("Algorithm 1, affine map", "affine map"),
        "over random edits": (RULES[5], RULES[4]),
    }
    looks = plotting.looks(rules, "osD", plotting.COLOURS[1:])
    for place, shift in enumerate(shifts):
        runs = {name: risk_ratio(result, shift, *pair)[:, None] for name, pair in rules.items()}
        look = dict(ls="none", capsize=2) | ({} if place == 0 else {"label": None})
        plotting.series(ax, [place], runs, looks, "ratio", 0.2, **look)
    ax.axhline(1, color="grey", lw=0.8, ls=":")
    ax.set_xticks(range(len(shifts)), [shift.replace(" ", "\n") for shift in shifts])
    ax.set(ylabel="risk after Algorithm 1, relative", title="Regression")
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.2 * (high - low))
    ax.legend(loc="upper left")


if __name__ == "__main__":
    main(__file__)
