"""The nearest known rule of a model, by its predictions on prompts where known rules differ."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from lsa_lab.arguments import check_at_least
from lsa_lab.card import batches
from lsa_lab.card.batches import PromptDistribution
from lsa_lab.card.evaluation import Interval
from lsa_lab.card.model_checks import Forward, prepare_model
from lsa_lab.card.model_under_test import ModelUnderTest, take_prefix
from lsa_lab.card.rules import Family, PromptTable, make_families
from lsa_lab.card.tasks import half_life_gate
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask

SAME, LIKE = 0.01, 0.1  # largest distances of "ridge" and "ridge-like"; else "none of these"
NONE = "none of these"
PROMPT_SETS = "sets of prompts"  # the units of an interval for one set of params
NUM_PROMPT_SETS = 8
_MANY, _ORDER, _NUM_SETS = 1, 7, 11  # places of two sets of prompts in the list, and its length
_MARGIN = 0.05  # nats a prediction between tied rules: errors 1.1 times as large
_LEAST_VAR = 1e-4  # least variance of the error of a rule, over the mean square of predictions
_ROUNDING = 1e-8  # the same while the numbers of a rule are fitted
_SEARCH_WIDTHS = 1.0, 0.4, 0.15, 0.05  # of the searches for numbers, in steps of the grid
_NUM_STARTS = 4  # the best points, around which a search draws the next ones
_MAX_PREDICTION = 1e6  # larger predictions of a model or a rule are clipped


@dataclass(frozen=True)
class NearestRule:
    """The rule nearest to the predictions of a model, after one layer or at the end."""

    name: str  # a family, at any distance
    point: str  # the numbers of the rule in the median run
    distance: float
    interval: Interval  # over runs
    agreeing: int  # number of runs in which this rule, or a tied one, has the largest score
    random: float  # the distance of the median rule of the whole list
    distances: dict[str, float]  # of all families, the nearest first
    scores: dict[str, float]  # log likelihood of a prediction, less that of the best family
    tied: tuple[str, ...]  # the other families whose score is as large
    own: dict[str, Any] | None  # name and distance of the rule that the layer has by design
    by_prompts: dict[str, float]  # the distance on each set of prompts
    samples: tuple[float, ...]  # the distance in each run
    runs: str  # the unit of the samples

    @property
    def title(self) -> str:
        """Return the name, "-like" after it above the distance SAME, and NONE above LIKE.

        "undecided: " precedes the name if the interval of the distance ends above LIKE, or if
        another family has a larger score in half of the runs or more.
        """
        if not self.distance <= LIKE:
            return NONE
        suffix = "" if self.distance <= SAME else "-like"
        decided = self.interval[1] <= LIKE and 2 * self.agreeing > len(self.samples)
        return f"{'' if decided else 'undecided: '}{self.name}{suffix}"

    @property
    def agreement(self) -> str:
        """Return a text such as "3 of 3 runs"."""
        return f"{self.agreeing} of {len(self.samples)} {self.runs}"


def identify(
    forward: Forward, params: Any, task: LinearTask, *, causal: bool = True, num_prompts: int = 256
) -> list[NearestRule]:
    """Return the nearest known rule after each layer of a Trace, or at the end of any other model.

    docs/card.md defines the prompts, the score by which a rule gets the name, and the distance
    2E(f - r)²/(Ef² + Er²): 0 for equal predictions and 2 for unrelated ones. Intervals are over
    eight parts of the prompts.

    ``task`` gives n, d, the noise and weight_std s in training. Prompts have x ~ N(0, I) and
    w ~ N(0, s² I). Rules read labels in units of s√d, in which E |w|² = 1, and σ in a penalty has
    that unit (docs/card.md).

    Raises ValueError for a task with another distribution of x, w or labels.
    """
    check_at_least(num_prompts, "num_prompts", 2 * NUM_PROMPT_SETS)
    used = {"n", "d", "noise_std", "weight_std", "dtype"}
    others = {f.name: f.default for f in fields(task) if f.name not in used}
    unsupported = [name for name in others if str(getattr(task, name)) != str(others[name])]
    if unsupported:
        raise ValueError(
            f"the task sets {', '.join(unsupported)}: identify draws x ~ N(0, I), w ~ N(0, s² I) "
            "and real labels; leave these settings out to use that distribution"
        )
    unit = float(task.weight_std) * task.d**0.5
    if not 0 < unit < np.inf:
        raise ValueError(f"weight_std = {task.weight_std}: it is positive and finite")
    model = prepare_model(forward, params, task.d, task.n, causal)
    distribution = PromptDistribution(task.d, float(task.noise_std) / unit)
    run_params, size = [params] * NUM_PROMPT_SETS, num_prompts // NUM_PROMPT_SETS
    return find_nearest_rules(model, run_params, distribution, task.n, size, PROMPT_SETS, unit)


def find_nearest_rules(
    model: ModelUnderTest,
    params: Sequence[Any],  # [R]
    distribution: PromptDistribution,
    n: int,
    size: int,
    runs: str = "runs",
    unit: float = 1.0,
) -> list[NearestRule]:
    """Return the nearest rule after each layer; each run reads prompts drawn for it.

    The labels in the prompts, and the predictions, are ``unit`` times those of the distribution.
    """
    predictions, tables = [], []
    for run, run_params in enumerate(params):
        rng = np.random.default_rng([run, 0x72756C65])
        sets = _draw_prompt_sets(rng, distribution, size, n)
        scaled = [prompt.replace(y=unit * prompt.y) for prompt in sets.values()]
        by_set = [model.predict_layers(run_params, prompt) / unit for prompt in scaled]
        predictions.append(np.stack(by_set))  # [S, B, L]
        tables.append(_join_prompts(list(sets.values())))
    table = PromptTable(*(np.stack(leaves) for leaves in zip(*tables, strict=True)))
    layers = _clip(np.stack(predictions)).transpose(3, 1, 0, 2)
    features = [_take_differences(layer) for layer in layers]  # [S, R, B] each
    families = make_families(distribution.d, distribution.noise_var, distribution.tasks)
    fits = zip(*(_fit_family(family, table, features) for family in families), strict=True)
    return [_choose_rule(layer_fits, list(sets), model.rule, runs) for layer_fits in fits]


def _draw_prompt_sets(
    rng: np.random.Generator, distribution: PromptDistribution, size: int, n: int
) -> dict[str, Prompt]:
    """Draw the sets by name; those from _ORDER on change the prompts of _MANY."""
    n = 2 * max(n // 4, distribution.d)
    training = batches.draw_batch(rng, distribution, size, n)
    shifts: dict[str, dict] = {
        "stretched covariates": {"stretch": 2.0},
        "enlarged covariates": {"scale": 1.5},
        "noisier labels": {"noise_std": 2 * distribution.noise_std},
        "drifting weights": {"persistence": half_life_gate(distribution.d), "tasks": None},
    }
    few = take_prefix(training.prompt, max(distribution.d // 2, 2))
    sets = {"few demonstrations": few, "many demonstrations": training.prompt}
    for name, change in shifts.items():
        sets[name] = batches.draw_batch(rng, replace(distribution, **change), size, n).prompt
    sets["repeated keys"] = batches.draw_repeated_keys(rng, distribution, size, n // 2).prompt
    sets["another order"] = batches.permute(training, rng.permutation(n)).prompt
    for name, place in {"first": 0, "middle": n // 2, "last": n - 1}.items():
        labels = training.prompt.y + (np.arange(n) == place)
        sets[f"change with the {name} label"] = training.prompt.replace(y=labels)
    return sets


def _take_differences(predictions: np.ndarray) -> np.ndarray:  # [S, ...]
    """Return the predictions; from _ORDER on their differences to those of _MANY.

    Unrelated predictions in another order differ by √2 of their size, which is divided out.
    """
    changed = predictions - predictions[_MANY]
    order = changed[_ORDER : _ORDER + 1] / 2**0.5
    return np.concatenate([predictions[:_ORDER], order, changed[_ORDER + 1 :]])


def _join_prompts(prompts: list) -> list[np.ndarray]:
    """Join x [N, n, d], y and the queries of all sets, with rows of zeros before few rows."""
    n = max(prompt.y.shape[1] for prompt in prompts)
    rows = [((0, 0), (n - prompt.y.shape[1], 0)) for prompt in prompts]
    x = [np.pad(prompt.x, (*pad, (0, 0))) for prompt, pad in zip(prompts, rows, strict=True)]
    y = [np.pad(prompt.y, pad) for prompt, pad in zip(prompts, rows, strict=True)]
    return [np.concatenate(leaves) for leaves in (x, y, [prompt.x_query for prompt in prompts])]


def _clip(predictions: np.ndarray) -> np.ndarray:
    return np.clip(np.nan_to_num(predictions, nan=np.inf), -_MAX_PREDICTION, _MAX_PREDICTION)


@dataclass(frozen=True)
class _Fit:
    """The best rule of a family in each run, and how near it is."""

    name: str
    size: int  # number of fitted numbers
    point: str
    scores: np.ndarray  # [R]
    distances: np.ndarray  # [S, R]
    grid_distances: np.ndarray  # [G P]


def _fit_family(family: Family, table: PromptTable, layers: list[np.ndarray]) -> list[_Fit]:
    """Return the rule with the largest likelihood on even prompts, by layer [S, R, B] and run."""
    num_steps, runs = len(family.steps), np.arange(layers[0].shape[1])
    size = len(family.free) + (num_steps > 1)

    def predict(points: np.ndarray) -> np.ndarray:  # [R, G, k] -> [S, R, B, G P]
        with np.errstate(all="ignore"):
            predictions = _clip(family.predict(table, points))  # [R, S B, G, P]
        shape = len(runs), _NUM_SETS, -1, points.shape[1] * num_steps
        return _take_differences(predictions.reshape(shape).swapaxes(0, 1))

    first_points, fits = np.repeat(family.grid[None], len(runs), 0), []
    grid = predict(first_points)
    for f in layers:
        points, predictions = first_points, grid
        for width in _SEARCH_WIDTHS:
            by_point = _score(f, predictions, 0, _ROUNDING).reshape(*points.shape[:2], -1).max(-1)
            starts = np.argsort(-by_point, 1, kind="stable")[:, :_NUM_STARTS]
            points = family.sample_around(points[runs[:, None], starts], width)
            predictions = predict(points)
        best = _score(f, predictions, 0, _ROUNDING).argmax(-1)  # [R]
        chosen = predictions[:, runs, :, best].swapaxes(0, 1)[..., None]  # [S, R, B, 1]
        distances = _compute_distances(f, chosen)[..., 0]
        median = np.argsort(distances.mean(0))[len(runs) // 2]
        point, step = divmod(int(best[median]), num_steps)
        text = family.template.format(*points[median, point], family.steps[step])
        grid_distances = _compute_distances(f, grid).mean((0, 1))
        scores = _score(f, chosen, 1, _LEAST_VAR)[:, 0]
        fits.append(_Fit(family.name, size, text, scores, distances, grid_distances))
    return fits


def _score(f: np.ndarray, r: np.ndarray, half: int, least_var: float) -> np.ndarray:  # [R, G P]
    """Return the largest log likelihood of a prediction, but for a constant, the mean over sets."""
    variances = np.maximum(_square_errors(f, r, half), least_var * _mean_squares(f)[..., None])
    return -np.log(variances).mean(0) / 2


def _square_errors(f: np.ndarray, r: np.ndarray, half: int) -> np.ndarray:
    """Return E(f - r)² over the even prompts (half 0) or the odd ones, [S, R, G P]."""
    return ((f[:, :, half::2, None] - r[:, :, half::2]) ** 2).mean(2)


def _mean_squares(predictions: np.ndarray) -> np.ndarray:
    """Return the mean square over prompts [S, R, ...].

    Changes with the order have that of _MANY, and those with single labels share one.
    """
    squares = (predictions**2).mean(2) + 1e-12
    squares[_ORDER] = squares[_MANY]
    squares[_ORDER + 1 :] = squares[_ORDER + 1 :].mean(0)
    return squares


def _compute_distances(f: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Return 2E(f - r)²/(Ef² + Er²) over the odd prompts, [S, R, G P]."""
    squares = _mean_squares(f[:, :, 1::2, None]) + _mean_squares(r[:, :, 1::2])
    return 2 * _square_errors(f, r, 1) / squares


def mean_interval(samples: np.ndarray) -> Interval:  # [R]
    """Return Student's 95 % interval for the mean of R runs."""
    half = float(stdtrit(len(samples) - 1, 0.975)) * samples.std(ddof=1) / len(samples) ** 0.5
    return float(samples.mean() - half), float(samples.mean() + half)


def _choose_rule(fits: Sequence[_Fit], names: list[str], own: str, runs: str) -> NearestRule:
    """Return the best of the rules with fewest numbers among those tied with the best score."""
    titles = [fit.name for fit in fits]
    scores = np.stack([fit.scores for fit in fits])  # [F, R]
    means = np.array([fit.distances.mean() for fit in fits])
    gaps = np.clip(scores[scores.mean(1).argmax()] - scores, -1, 1)  # one run decides no tie
    tied = [row.mean() <= _MARGIN or mean_interval(row)[0] <= 0 for row in gaps]
    sizes = np.where(tied, [fit.size for fit in fits], np.inf)
    chosen = int(np.lexsort((-scores.mean(1), sizes))[0])
    agreeing = np.where(tied, scores.T, -np.inf).max(1) >= scores.max(0) - _MARGIN
    fit, samples = fits[chosen], fits[chosen].distances.mean(0)
    relative = (scores.mean(1) - scores.mean(1).max()).tolist()
    distances = {titles[i]: float(means[i]) for i in np.argsort(means, kind="stable")}
    return NearestRule(
        name=fit.name,
        point=fit.point,
        distance=float(means[chosen]),
        interval=mean_interval(samples),
        agreeing=int(agreeing.sum()),
        random=float(np.median(np.concatenate([fit.grid_distances for fit in fits]))),
        distances=distances,
        scores=dict(zip(titles, relative, strict=True)),
        tied=tuple(titles[i] for i in np.flatnonzero(tied) if i != chosen),
        own={"name": own, "distance": distances[own]} if own in distances else None,
        by_prompts=dict(zip(names, fit.distances.mean(1).tolist(), strict=True)),
        samples=tuple(samples.tolist()),
        runs=runs,
    )
