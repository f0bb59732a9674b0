"""The nearest known rule of a model, by its predictions on prompts where known rules differ."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.arguments import check_at_least
from lsa_lab.card.batches import PromptDistribution
from lsa_lab.card.model_checks import Forward, prepare_model
from lsa_lab.card.model_under_test import ModelUnderTest, take_prefix
from lsa_lab.card.probe import Interval, mean_interval
from lsa_lab.card.prompt_sets import draw_prompt_sets
from lsa_lab.card.rules import Family, make_discrete_bayes, make_families
from lsa_lab.tasks.linear import LinearTask

SAME, LIKE = 0.01, 0.1  # largest distances of "ridge" and "ridge-like"; else "none of these"
NONE = "none of these"
PROMPT_SETS = "sets of prompts"  # the units of an interval for one set of params
NUM_PROMPT_SETS = 8
_TIE = 0.1, 0.002  # relative and absolute difference of distances that count as equal
_SEARCH_ROUNDS = 3  # the grid of a family, and two searches around the best point
_MAX_PREDICTION = 1e6  # larger predictions of a model or a rule are clipped


@dataclass(frozen=True)
class NearestRule:
    """The rule nearest to the predictions of a model, after one layer or at the end."""

    name: str  # a family, "a constant", or NONE
    closest: str  # the closest family, at any distance
    point: str  # the numbers of the rule
    distance: float
    interval: Interval  # over runs
    agreeing: int  # number of runs with this family as the simplest nearest one
    random: float  # the distance of the median rule of the whole list
    second: str  # the next family outside a tie, "" if there is none
    second_distance: float  # NaN if there is none
    alike: tuple[str, ...]  # families in a tie, which the card cannot tell apart
    decided_by: str  # the set of prompts with the largest gap to the second, "" if there is none
    by_prompts: dict[str, float]  # the distance on each set of prompts
    samples: tuple[float, ...]  # the distance in each run
    runs: str = "runs"  # the unit of the samples

    @property
    def title(self) -> str:
        """Return the name, "-like" after it if the distance is above SAME.

        "undecided: " precedes the name if the interval of the distance ends above LIKE, or if
        another family is the nearest in half of the runs or more.
        """
        if self.name == NONE:
            return NONE
        suffix = "" if self.distance <= SAME else "-like"
        decided = self.interval[1] <= LIKE and 2 * self.agreeing > len(self.samples)
        return f"{'' if decided else 'undecided: '}{self.name}{suffix}"

    @property
    def agreement(self) -> str:
        """Return a text such as "3 of 3 runs"."""
        return f"{self.agreeing} of {len(self.samples)} {self.runs}"


def identify(
    forward: Forward, params: Any, task: LinearTask, *, causal: bool = True, num_prompts: int = 512
) -> list[NearestRule]:
    """Return the nearest known rule after each layer of a Trace, or at the end of any other model.

    The distance of f and r is 2E(f - r)²/(Ef² + Er²): 0 for equal predictions and 2 for unrelated
    ones. It is averaged over sets of prompts on which rules differ: few and many demonstrations,
    stretched and enlarged covariates, noisier labels, repeated keys with new labels. One half of
    the prompts selects the numbers of a rule. The other half gives the distance, with an interval
    over eight parts. ``task`` gives n, d, the noise and weight_std s in training. Prompts have
    x ~ N(0, I) and w ~ N(0, s² I). Rules read labels in units of s√d, in which E |w|² = 1, and σ in
    a penalty has that unit (docs/card.md).

    Raises ValueError for a task with another distribution of x, w or labels.
    """
    check_at_least(num_prompts, "num_prompts", 2 * NUM_PROMPT_SETS)
    unit = _compute_label_unit(task)
    model = prepare_model(forward, params, task.d, task.n, causal)
    distribution = PromptDistribution(task.d, float(task.noise_std) / unit)
    run_params, size = [params] * NUM_PROMPT_SETS, num_prompts // NUM_PROMPT_SETS
    rules = find_nearest_rules(model, run_params, distribution, task.n, size, unit)
    return [replace(rule, runs=PROMPT_SETS) for rule in rules]


def _compute_label_unit(task: LinearTask) -> float:
    """Return the root of E |w|²; raise ValueError unless w is Gaussian and x is white."""
    optional = {"covariance", "task_covariance", "prior_mean", "sparsity"}
    unsupported = sorted(name for name in optional if getattr(task, name) is not None)
    for name, supported in {"signal": "gaussian", "labels": "real"}.items():
        if getattr(task, name) != supported:
            unsupported.append(f"the {name} {getattr(task, name)!r}")
    if unsupported:
        raise ValueError(
            f"the task has {', '.join(unsupported)}: identify draws x ~ N(0, I), w ~ N(0, s² I) "
            "and real labels; leave these settings out to use that distribution"
        )
    unit = float(task.weight_std) * task.d**0.5
    if not 0 < unit < np.inf:
        raise ValueError(f"weight_std = {task.weight_std}: it is positive and finite")
    return unit


def find_nearest_rules(
    model: ModelUnderTest,
    params: Sequence[Any],  # [R]
    distribution: PromptDistribution,
    n: int,
    size: int,
    unit: float = 1.0,
) -> list[NearestRule]:
    """Return the nearest rule after each layer; each run reads prompts drawn for it.

    The labels in the prompts, and the predictions, are ``unit`` times those of the distribution.
    """
    predictions, run_prompts = [], []
    for run, run_params in enumerate(params):
        rng = np.random.default_rng([run, 0x72756C65])
        sets = draw_prompt_sets(rng, distribution, size, n)
        scaled = [(b.prompt.replace(y=unit * b.prompt.y), place) for b, place in sets.values()]
        by_set = [model.predict_layers(run_params, *pair) / unit for pair in scaled]
        predictions.append(np.stack(by_set))
        run_prompts.append([take_prefix(batch.prompt, place) for batch, place in sets.values()])
    prompts = [
        jax.tree.map(lambda *leaves: jnp.asarray(np.concatenate(leaves), float), *prompts_of_set)
        for prompts_of_set in zip(*run_prompts, strict=True)
    ]  # [S]
    clipped = _clip(np.stack(predictions)).transpose(3, 1, 0, 2)
    families = list(_compile_families(distribution.d, distribution.noise_var))
    if distribution.tasks is not None:
        bayes = make_discrete_bayes(distribution.tasks, distribution.noise_var)
        families.insert(0, _compile_family(bayes))
    candidates = []
    for family, predict in families:
        evaluate = _make_evaluator(predict, prompts, clipped.shape[1:])
        candidates.append(_Candidate(family, evaluate, evaluate(family.grid)))
    return [_choose_rule(candidates, list(sets), layer, unit) for layer in clipped]  # [S, R, B]


def _clip(predictions: np.ndarray) -> np.ndarray:
    limit = _MAX_PREDICTION
    finite = np.nan_to_num(predictions, nan=limit, posinf=limit, neginf=-limit)
    return np.clip(finite, -limit, limit)


@dataclass(frozen=True)
class _Candidate:
    """A family, the function of its predictions at some points, and those on its grid."""

    family: Family
    evaluate: Callable[[np.ndarray], np.ndarray]  # [G, k] -> [S, R, B, G P]
    grid_predictions: np.ndarray  # [S, R, B, G P]


def _compile_family(family: Family) -> tuple[Family, Callable]:
    """Return a family and the compiled function of its predictions for prompts and points."""
    return family, jax.jit(jax.vmap(jax.vmap(family.predict, (None, 0)), (0, None)))


@functools.cache
def _compile_families(d: int, noise_var: float) -> tuple[tuple[Family, Callable], ...]:
    """Return all families, compiled once in a process."""
    return tuple(map(_compile_family, make_families(d, noise_var)))


def _make_evaluator(
    predict: Callable, prompts: list, shape: tuple
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from points [G, k] to the predictions of a rule [S, R, B, G P]."""

    def evaluate(points: np.ndarray) -> np.ndarray:
        numbers = jnp.asarray(points, float)
        predictions = np.stack([np.asarray(predict(prompt_set, numbers)) for prompt_set in prompts])
        return _clip(predictions).reshape(*shape, -1)

    return evaluate


def _compute_distances(
    f: np.ndarray, r: np.ndarray, half: int
) -> np.ndarray:  # [S, R, B], [S, R, B, G] -> [S, R, G]
    """Return 2E(f - r)²/(Ef² + Er²) over the even prompts (half 0) or the odd ones (half 1)."""
    f, r = f[:, :, half::2, None], r[:, :, half::2]
    return 2 * ((f - r) ** 2).mean(2) / ((f**2).mean(2) + (r**2).mean(2) + 1e-12)


def _fit_family(candidate: _Candidate, f: np.ndarray) -> tuple[str, np.ndarray]:  # [S, R]
    """Return the best point of a family on the even prompts, and its distance on the odd ones."""
    family, points, predictions = (
        candidate.family,
        candidate.family.grid,
        candidate.grid_predictions,
    )
    for _ in range(_SEARCH_ROUNDS - 1):
        best = int(_compute_distances(f, predictions, 0).mean((0, 1)).argmin())
        points = family.sample_around(points[best // family.steps])
        predictions = candidate.evaluate(points)
    best = int(_compute_distances(f, predictions, 0).mean((0, 1)).argmin())
    text = family.describe(points[best // family.steps], best % family.steps + 1)
    return text, _compute_distances(f, predictions[..., best : best + 1], 1)[..., 0]


def _choose_rule(
    candidates: list[_Candidate], set_names: list[str], f: np.ndarray, unit: float
) -> NearestRule:
    """Return the simplest rule among the nearest ones to the predictions [S, R, B] of one layer."""
    fits = [_fit_family(candidate, f) for candidate in candidates]
    constant = np.broadcast_to(f[:, :, ::2].mean(), f.shape)[..., None]
    columns = [_compute_distances(f, constant, 1)[..., 0], *(distances for _, distances in fits)]
    by_set = np.stack(columns, -1)  # [S, R, F]
    titles = ["a constant", *(candidate.family.name for candidate in candidates)]
    means, by_run = by_set.mean((0, 1)), by_set.mean(0)  # [F], [R, F]
    tied = means <= means.min() * (1 + _TIE[0]) + _TIE[1]
    chosen = int(np.argmax(tied))  # the families are sorted, the simplest first
    tied_by_run = by_run <= by_run.min(1, keepdims=True) * (1 + _TIE[0]) + _TIE[1]
    farther = [int(i) for i in np.argsort(means, kind="stable") if not tied[i]]
    second = farther[0] if farther else chosen
    gaps = (by_set[..., second] - by_set[..., chosen]).mean(1)
    grid_distances = np.concatenate(
        [_compute_distances(f, c.grid_predictions, 1).mean((0, 1)) for c in candidates]
    )
    return NearestRule(
        name=titles[chosen] if means[chosen] <= LIKE else NONE,
        closest=titles[chosen],
        point=fits[chosen - 1][0] if chosen else f"{unit * constant.flat[0]:.3f}",
        distance=float(means[chosen]),
        interval=mean_interval(by_run[:, chosen]),
        agreeing=int((tied_by_run.argmax(1) == chosen).sum()),
        random=float(np.median(grid_distances)),
        second=titles[second] if farther else "",
        second_distance=float(means[second]) if farther else np.nan,
        alike=tuple(titles[i] for i in np.flatnonzero(tied) if i != chosen),
        decided_by=set_names[int(gaps.argmax())] if farther else "",
        by_prompts=dict(zip(set_names, by_set[..., chosen].mean(1).tolist(), strict=True)),
        samples=tuple(by_run[:, chosen].tolist()),
    )
