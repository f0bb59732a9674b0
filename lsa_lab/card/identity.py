"""Which rule a model runs: its answers beside those of known rules, where these differ."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.arguments import check_at_least
from lsa_lab.card.batches import Batch, Law, drawn_batch, labelled
from lsa_lab.card.rules import Family, discrete, families
from lsa_lab.card.subject import Forward, Subject, prefix, subject_of
from lsa_lab.judging.statistics import Interval, mean_interval
from lsa_lab.tasks.linear import LinearTask

NEAR, LIKE = 0.01, 0.1  # relative squared distances: "ridge", "ridge-like", else "none of these"
NONE = "none of these"
_TIE = 0.1, 0.002  # a simpler family is taken if it is as near, to a share and to a distance
_ROUNDS = 3  # of a search for a family's numbers: its grid, and twice around the best
_HUGE = 1e6  # where answers of a model or a rule are cut
PROMPTS = "sets of prompts"  # which stand for runs where one set of params is given
_PARTS = 8  # of the prompts, for an interval where there is one run


@dataclass(frozen=True)
class Nearest:
    """The rule nearest to a model's answers, after one layer or at the end."""

    name: str  # a family, "a constant", or NONE
    closest: str  # the same, however far it is
    point: str  # its numbers
    distance: float
    interval: Interval  # over runs
    agreeing: int  # runs that have this family alone
    random: float  # the distance of the median rule of the whole list
    second: str  # the next family that is not as near, "" if all are
    second_distance: float  # NaN then
    alike: tuple[str, ...]  # families that are as near: the card cannot tell them apart
    decided_by: str  # the prompts on which the second differs most, "" if there is none
    by_prompts: dict[str, float]  # the distance on each set of prompts
    samples: tuple[float, ...]  # the distance in each run
    runs: str = "runs"  # or what else samples are of

    @property
    def title(self) -> str:
        """The name, with "-like" where the rule is near and not the same; "undecided: " before it
        where the interval of the distance ends beyond that, or half of the runs have another."""
        if self.name == NONE:
            return NONE
        same = self.distance <= NEAR
        decided = self.interval[1] <= LIKE and 2 * self.agreeing > len(self.samples)
        return f"{'' if decided else 'undecided: '}{self.name}{'' if same else '-like'}"

    @property
    def agree(self) -> str:
        """As "3 of 3 runs"."""
        return f"{self.agreeing} of {len(self.samples)} {self.runs}"


def identify(
    forward: Forward, params: Any, task: LinearTask, *, causal: bool = True, num_prompts: int = 512
) -> list[Nearest]:
    """The nearest known rule after each layer, where ``forward`` returns a Trace, and at the end.

    The distance of f and r is 2E(f - r)²/(Ef² + Er²), 0 for the same and 2 for unrelated answers,
    averaged over sets of prompts that tell rules apart: few and many demonstrations, stretched and
    enlarged covariates, noise, repeated keys with new labels. A rule's numbers are chosen on one
    half of the prompts, the distance is taken on the other, its interval over eight parts of them.
    ``task`` gives n, d, the noise and weight_std s in training. Prompts have x ~ N(0, I) and w ~
    N(0, s² I): another law is refused. Rules are linear in labels, which they are shown in units of
    s√d, where E |w|² = 1: σ in a penalty is in that unit (docs/card.md).
    """
    check_at_least(num_prompts, "num_prompts", 2 * _PARTS)
    unit = _unit(task)
    subject = subject_of(forward, params, task.d, task.n, causal)
    law, size = Law(task.d, float(task.noise_std) / unit), num_prompts // _PARTS
    every = nearest_rules(subject, [params] * _PARTS, law, task.n, size, unit)
    return [replace(nearest, runs=PROMPTS) for nearest in every]


def _unit(task: LinearTask) -> float:
    """The root of E |w|²; a ValueError for a task that is not of Gaussian w and white x."""
    laws = {"covariance", "task_covariance", "prior_mean", "sparsity"}
    own = sorted(name for name in laws if getattr(task, name) is not None)
    usual = {"signal": "gaussian", "labels": "real"}
    own += [f"the {name} {getattr(task, name)!r}" for name in usual
            if getattr(task, name) != usual[name]]  # fmt: skip
    if own:
        raise ValueError(
            f"the task has {', '.join(own)}: identify asks with x ~ N(0, I), w ~ N(0, s² I) and "
            "real labels, and cannot ask by another law; leave these out to be asked so"
        )
    unit = float(task.weight_std) * task.d**0.5
    if not 0 < unit < np.inf:
        raise ValueError(f"weight_std = {task.weight_std}: it is positive and finite")
    return unit


def nearest_rules(
    subject: Subject, params: Sequence[Any], law: Law, n: int, size: int, unit: float = 1.0
) -> list[Nearest]:
    """``Nearest`` after each layer; each of the params is askers on prompts of its own, whose
    labels, and the answers, are ``unit`` times those of the law."""
    answers, questions = [], []
    for run, own in enumerate(params):
        rng = np.random.default_rng([run, 0x72756C65])
        sets = question_sets(rng, law, size, n)
        prompts = [(b.prompt.replace(y=unit * b.prompt.y), t) for b, t in sets.values()]
        answers.append(np.stack([subject.layers(own, prompt, t) / unit for prompt, t in prompts]))
        questions.append([prefix(batch.prompt, place) for batch, place in sets.values()])
    stacked = [jax.tree.map(lambda *rows: jnp.asarray(np.concatenate(rows), float), *same)
               for same in zip(*questions, strict=True)]  # fmt: skip
    finite = np.nan_to_num(np.stack(answers), nan=_HUGE)
    cut = np.clip(finite, -_HUGE, _HUGE).transpose(3, 1, 0, 2)  # [L, S, R, B]
    tables = list(_tables(law.d, law.noise_var))
    if law.tasks is not None:
        tables.insert(0, _with_table(discrete(law.tasks, law.noise_var)))
    askers = [_asker(table, stacked, cut.shape[1:]) for _, table in tables]
    every = [family for family, _ in tables]
    coarse = [ask(family.grid) for ask, family in zip(askers, every, strict=True)]
    return [_nearest(every, askers, coarse, list(sets), layer, unit) for layer in cut]


def question_sets(
    rng: np.random.Generator, law: Law, size: int, n: int
) -> dict[str, tuple[Batch, int]]:
    """The prompts that are askers, by name, each with its number of demonstrations."""
    n = 2 * max(n // 4, law.d)
    plain = drawn_batch(rng, law, size, n)
    return {
        "few demonstrations": (plain, max(law.d // 2, 2)),
        "many demonstrations": (plain, n),
        "stretched covariates": (drawn_batch(rng, replace(law, stretch=2.0), size, n), n),
        "enlarged covariates": (drawn_batch(rng, replace(law, scale=1.5), size, n), n),
        "noisier labels": (drawn_batch(rng, replace(law, noise_std=2 * law.noise_std), size, n), n),
        "repeated keys": (repeated_keys(rng, law, size, n // 2)[0], n),
    }


def repeated_keys(
    rng: np.random.Generator, law: Law, size: int, pairs: int
) -> tuple[Batch, np.ndarray, np.ndarray]:
    """Prompts whose second half shows the keys of the first again, with the labels of another w,
    and the old and the new target at the query."""
    half = drawn_batch(rng, replace(law, tasks=None), size, pairs)
    old, new = (rng.normal(size=(size, 1, law.d)) / np.sqrt(law.d) for _ in range(2))
    x = np.concatenate([half.x[:, :-1], half.x], 1)
    weights = np.concatenate([np.repeat(old, pairs, 1), np.repeat(new, pairs + 1, 1)], 1)
    targets = (x * weights).sum(-1)
    labels = targets + law.noise_std * rng.normal(size=targets.shape)
    return labelled(x, targets, labels), (x[:, -1] * old[:, 0]).sum(-1), targets[:, -1]


def _with_table(family: Family) -> tuple[Family, Callable]:
    """A family, and its compiled answers to many prompts at many points."""
    return family, jax.jit(jax.vmap(jax.vmap(family.predict, (None, 0)), (0, None)))


@functools.cache
def _tables(d: int, noise_var: float) -> tuple[tuple[Family, Callable], ...]:
    """Every family, compiled once in a process."""
    return tuple(map(_with_table, families(d, noise_var)))


def _asker(table: Callable, stacked: list, shape: tuple) -> Callable[[np.ndarray], np.ndarray]:
    """A rule's answers [S, R, B, G P] at points [G, k]."""

    def ask(points: np.ndarray) -> np.ndarray:
        numbers = jnp.asarray(points, float)
        rows = np.stack([np.asarray(table(prompts, numbers)) for prompts in stacked])
        finite = np.nan_to_num(rows, nan=_HUGE, posinf=_HUGE, neginf=-_HUGE)
        return np.clip(finite, -_HUGE, _HUGE).reshape(*shape, -1)

    return ask


def _distances(f: np.ndarray, r: np.ndarray, half: int) -> np.ndarray:  # [S, R, B, G]: [S, R, G]
    """2E(f - r)²/(Ef² + Er²) over every other prompt."""
    f, r = f[:, :, half::2, None], r[:, :, half::2]
    return 2 * ((f - r) ** 2).mean(2) / ((f**2).mean(2) + (r**2).mean(2) + 1e-12)


def _fitted(
    family: Family, ask: Callable, coarse: np.ndarray, f: np.ndarray
) -> tuple[str, np.ndarray]:  # [S, R]
    """The family's best numbers on one half of the prompts, and its distance on the other."""
    points, answers = family.grid, coarse
    for _ in range(_ROUNDS - 1):
        best = int(_distances(f, answers, 0).mean((0, 1)).argmin())
        points = family.around(points[best // family.steps])
        answers = ask(points)
    best = int(_distances(f, answers, 0).mean((0, 1)).argmin())
    words = family.point(points[best // family.steps], best % family.steps + 1)
    return words, _distances(f, answers[..., best : best + 1], 1)[..., 0]


def _nearest(
    every: list[Family], askers: list, coarse: list, names: list[str], f: np.ndarray, unit: float
) -> Nearest:
    """The choice for one layer's answers [S, R, B], given in this unit."""
    fits = [_fitted(*each, f) for each in zip(every, askers, coarse, strict=True)]
    level = np.broadcast_to(f[:, :, ::2].mean(), f.shape)[..., None]
    by_set = np.stack([_distances(f, level, 1)[..., 0], *(far for _, far in fits)], -1)
    titles = ["a constant", *(family.name for family in every)]
    means, each = by_set.mean((0, 1)), by_set.mean(0)  # [F], [R, F]
    within = means.min() * (1 + _TIE[0]) + _TIE[1]
    taken = int(np.argmax(means <= within))  # the simplest of those that are as near
    simplest = (each <= each.min(1, keepdims=True) * (1 + _TIE[0]) + _TIE[1]).argmax(1)
    others = [int(i) for i in np.argsort(means, kind="stable") if means[i] > within]
    second = others[0] if others else taken
    gaps = (by_set[..., second] - by_set[..., taken]).mean(1)
    every_rule = np.concatenate([_distances(f, answers, 1).mean((0, 1)) for answers in coarse])
    return Nearest(
        name=titles[taken] if means[taken] <= LIKE else NONE,
        closest=titles[taken],
        point=fits[taken - 1][0] if taken else f"{unit * level.flat[0]:.3f}",
        distance=float(means[taken]),
        interval=mean_interval(each[:, taken]),
        agreeing=int((simplest == taken).sum()),
        random=float(np.median(every_rule)),
        second=titles[second] if others else "",
        second_distance=float(means[second]) if others else np.nan,
        alike=tuple(titles[i] for i in np.flatnonzero(means <= within) if i != taken),
        decided_by=names[int(gaps.argmax())] if others else "",
        by_prompts=dict(zip(names, by_set[..., taken].mean(1).tolist(), strict=True)),
        samples=tuple(each[:, taken].tolist()),
    )
