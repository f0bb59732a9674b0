"""What `head_importance` measures: all models of a tier, at their end, on the way, rewritten."""

from dataclasses import replace
from functools import partial

import jax
import numpy as np

from experiments.heads import importance
from experiments.heads.head_importance import patterns as head_patterns
from experiments.heads.head_importance.config import COMPARED, ON_THE_WAY, REPRESENTED, Config
from experiments.heads.sparse_judging import rule_errors
from experiments.models import sparse_models
from experiments.models.sparse_training import Trained
from experiments.models.specs import Family
from lsa_lab.analyses import heads

ABLATIONS = {  # what a head is taken away by, and what is made of the errors of all prompts
    "zero": ("zero", np.mean),
    "mean": ("mean", np.mean),
    "resample": ("resample", np.mean),
    "zero, median prompt": ("zero", np.median),
}
STATES = ("trained", "random")


def measured(config: Config, made: dict[str, Trained]):
    """Variables (dimensions, blocks along the first of them), and coordinates."""
    rows = _models(made)
    found = [measure(config, made, *row) for row in rows]
    ways, again, pairs = (
        [name for name in names if name in made] for names in (ON_THE_WAY, REPRESENTED, COMPARED)
    )
    ends = {name: one["rise"] for name, one in zip(made, found, strict=False)}
    looks = [on_the_way(config, made[name], ends[name]) for name in ways]
    patterns = [alike(config, made[name]) for name in pairs]
    architectures = [made[name].family.architectures[a] for name, a in rows]
    one, heads_of = ("model", "run"), ("layer", "head")
    variables = {
        "rise": ((*one, *heads_of), [each["rise"] for each in found]),
        "rise_of_median": ((*one, *heads_of), [each["median"] for each in found]),
        "risk": (one, [each["risk"] for each in found]),
        "ridge": (one[:1], [each["ridge"] for each in found]),
        "heads": (("model", "layer"), architectures),
        "rise_on_the_way": (("way", "run", "look", *heads_of), looks),
        "steps": (("way", "look"), [_steps(made[name].family) for name in ways]),
        "rise_ablated": (("ablation", "run", *heads_of), by_ablation(config, made["depth 3"])),
        "rise_represented": (
            ("again", "representative", "run", *heads_of),
            [by_representative(config, made[name], ends[name]) for name in again],
        ),
        "across": (("pair", "state", "run", "layer"), [each["across"] for each in patterns]),
        "built": (("pair", "state", "run"), [each["built"] for each in patterns]),
    }
    coordinates = {
        "model": [f"{name}: {_text(a)}" for (name, _), a in zip(rows, architectures, strict=True)],
        "family": ("model", [name for name, _ in rows]),
        "seeds": ("model", [made[name].family.seeds for name, _ in rows]),
        "form": ("model", [_form(made[name].family, a) for name, a in rows]),
        "way": ways,
        "ablation": list(ABLATIONS),
        "again": again,
        "representative": ["as trained", *head_patterns.OTHERS],
        "pair": pairs,
        "state": list(STATES),
    }
    return variables, coordinates


def _text(architecture: tuple[int, ...]) -> str:
    return " ".join(map(str, architecture))


def _form(family: Family, a: int) -> str:
    """What SUBJECTS call an architecture."""
    return next((name for name in ("full", "first") if family.named.get(name) == a), "other")


def _models(made: dict[str, Trained]) -> list[tuple[str, int]]:
    """Family and architecture: the full one of each family first, then others with several heads in
    the first layer."""
    full = [(name, len(one.family.architectures) - 1) for name, one in made.items()]
    others = [
        (name, a)
        for name, one in made.items()
        for a, architecture in enumerate(one.family.architectures[:-1])
        if architecture[0] > 1
    ]
    return full + others


def measure(config: Config, made: dict[str, Trained], name: str, a: int) -> dict:
    """Rises of the risk [R, L, H], all NaN for a run that diverged; its risk [R], and ridge's."""
    one = made[name]
    batch, ridge = _prompts(config, one.family)
    params = jax.tree.map(lambda leaf: leaf[a], one.params)
    alive = one.finished[a]
    gates = sparse_models.masks(one.family)[a]
    judge = partial(importance.importances, one.family, params, batch, gates)
    rise, of_median = np.moveaxis(judge(over_prompts=_mean_and_median), -1, 0)
    risk = importance.risks(one.family, params, batch, gates[None], gates)[:, 0]
    found = {"rise": rise, "median": of_median, "risk": risk}
    return {name: _only(alive, values) for name, values in found.items()} | {"ridge": ridge}


def on_the_way(config: Config, one: Trained, end: np.ndarray) -> np.ndarray:  # [R, looks, L, H]
    """Rises of the risk for the full model after each part of its training, the last given."""
    batch, _ = _prompts(config, one.family)
    gates, alive = sparse_models.masks(one.family)[-1], one.finished[-1]
    looks = [
        importance.importances(
            one.family, jax.tree.map(lambda leaf, i=i: leaf[:, i], one.looks), batch, gates
        )
        for i in range(one.family.looks - 1)
    ]
    return np.stack([*(_only(alive, look) for look in looks), end], axis=1)


def _steps(family: Family) -> np.ndarray:
    return np.arange(1, family.looks + 1) * (family.steps // family.looks)


def by_ablation(config: Config, one: Trained) -> np.ndarray:  # [ablation, R, L, H]
    """Of the full model."""
    batch = jax.tree.map(lambda x: x[: config.ablation_prompts], _prompts(config, one.family)[0])
    gates, params = sparse_models.masks(one.family)[-1], _full(one)
    judge = partial(importance.importances, one.family, params, batch, gates)
    found = [judge(*how) for how in ABLATIONS.values()]
    return _only(one.finished[-1], np.array(found), axis=1)


def by_representative(config: Config, one: Trained, rise: np.ndarray) -> np.ndarray:
    """Rises of the risk for other heads of the same full model, after its own:
    [representative, R, L, H]."""
    batch, _ = _prompts(config, one.family)
    gates, kind = sparse_models.masks(one.family)[-1], replace(one.family, key_width=None)
    written = head_patterns.represented(one.family, _full(one), config.seed)
    found = [importance.importances(kind, params, batch, gates) for params in written.values()]
    return np.stack([rise, *_only(one.finished[-1], np.array(found), axis=1)])


def alike(config: Config, one: Trained) -> dict[str, np.ndarray]:
    """Attention across seeds [state, R, L], likeness to the construction [state, R]: full model."""
    family, rng = one.family, np.random.default_rng(config.seed)
    batch = jax.tree.map(lambda x: x[: config.pattern_prompts], _prompts(config, family)[0])
    states = _full(one), jax.tree.map(lambda leaf: _like(rng, leaf), _full(one))
    return {
        "across": np.array([head_patterns.across_seeds(family, p, batch) for p in states]),
        "built": np.array([head_patterns.like_construction(family, p) for p in states]),
    }


def effective(raw: np.ndarray) -> np.ndarray:  # [..., L, H] -> [..., L]
    """Effective heads; NaN for runs that diverged and for layers that are not there."""
    count = jax.jit(heads.effective_heads)(np.nan_to_num(raw))
    return np.where(np.isfinite(raw).any(-1), count, np.nan)


def padded(blocks, dims: tuple[str, ...], sizes: dict[str, int]) -> np.ndarray:
    """Arrays along the first dimension, each filled up with NaN to the sizes of the others."""
    out = np.full((len(blocks), *(sizes[name] for name in dims[1:])), np.nan)
    for i, block in enumerate(map(np.asarray, blocks)):
        out[(i, *map(slice, block.shape))] = block
    return out


def _only(alive: np.ndarray, values: np.ndarray, axis: int = 0) -> np.ndarray:
    shape = [1] * values.ndim
    shape[axis] = -1
    return np.where(alive.reshape(shape), values, np.nan)


def _mean_and_median(errors: np.ndarray) -> list:
    return [errors.mean(), np.median(errors)]


def _like(rng, leaf: np.ndarray) -> np.ndarray:  # [R, L, ...]
    """Gaussian weights of the same size in every run and layer."""
    size = np.sqrt(np.mean(np.square(leaf), axis=tuple(range(2, leaf.ndim)), keepdims=True))
    return size * rng.standard_normal(leaf.shape)


def _full(one: Trained):
    return jax.tree.map(lambda leaf: leaf[-1], one.params)


def _prompts(config: Config, family: Family):
    """The prompts of a family, and ridge's risk on them, which is no rule for polynomials; the same
    for all families of a task."""
    key, law = (
        jax.random.fold_in(jax.random.key(config.seed), 0),
        sparse_models.law(family, config.n),
    )
    size = max(config.prompts, config.softmax_prompts)
    kept = config.softmax_prompts if family.kernel == "softmax" else config.prompts
    batch = jax.tree.map(lambda leaf: leaf[:kept], _drawn(law, key, size))
    known = family.task != "polynomial"
    return batch, rule_errors("ridge", law, batch).mean() if known else np.nan


_drawn = jax.jit(sparse_models.draw_from, static_argnums=2)
