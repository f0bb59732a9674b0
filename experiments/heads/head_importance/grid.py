"""What `head_importance` measures: every model, at its end, on the way, rewritten."""

from functools import partial

import jax
import numpy as np

from experiments.heads import importance, sparse_rules
from experiments.heads.head_importance import patterns as head_patterns
from experiments.heads.head_importance.config import COMPARED, ON_THE_WAY, REPRESENTED, Config
from experiments.models import tasks
from experiments.models.model import Model
from experiments.models.runs import Runs
from experiments.models.specs import Architecture, Spec
from lsa_lab.analyses import heads

ABLATIONS = {  # what a head is taken away by, and what is made of the errors of all prompts
    "zero": ("zero", np.mean),
    "mean": ("mean", np.mean),
    "resample": ("resample", np.mean),
    "zero, median prompt": ("zero", np.median),
}
STATES = ("trained", "random")


def measured(config: Config, runs: dict[str, Runs]):
    """Variables (dimensions, blocks along the first of them), and coordinates."""
    rows = _models(runs)
    ends = [measure(config, runs[name], variant) for name, variant in rows]
    ways, again, pairs = (
        [name for name in names if name in runs] for names in (ON_THE_WAY, REPRESENTED, COMPARED)
    )
    rises = {name: end["rise"] for name, end in zip(runs, ends, strict=False)}
    patterns = [alike(config, runs[name]) for name in pairs]
    architectures = {name: each.spec.architecture for name, each in runs.items()}
    variants = [architectures[name].variants[variant] for name, variant in rows]
    by_run, heads_of = ("model", "run"), ("layer", "head")
    variables = {
        "rise": ((*by_run, *heads_of), [end["rise"] for end in ends]),
        "rise_of_median": ((*by_run, *heads_of), [end["median"] for end in ends]),
        "risk": (by_run, [end["risk"] for end in ends]),
        "ridge": (by_run[:1], [end["ridge"] for end in ends]),
        "heads": (("model", "layer"), variants),
        "rise_on_the_way": (
            ("way", "run", "look", *heads_of),
            [on_the_way(config, runs[name], rises[name]) for name in ways],
        ),
        "steps": (("way", "look"), [_steps(runs[name].spec) for name in ways]),
        "rise_ablated": (("ablation", "run", *heads_of), by_ablation(config, runs["depth 3"])),
        "rise_represented": (
            ("again", "representative", "run", *heads_of),
            [by_representative(config, runs[name], rises[name]) for name in again],
        ),
        "across": (("pair", "state", "run", "layer"), [each["across"] for each in patterns]),
        "built": (("pair", "state", "run"), [each["built"] for each in patterns]),
    }
    coordinates = {
        "model": [f"{name}: {_text(row)}" for (name, _), row in zip(rows, variants, strict=True)],
        "family": ("model", [name for name, _ in rows]),
        "seeds": ("model", [runs[name].spec.training.seeds for name, _ in rows]),
        "form": ("model", [_form(architectures[name], variant) for name, variant in rows]),
        "way": ways,
        "ablation": list(ABLATIONS),
        "again": again,
        "representative": ["as trained", *head_patterns.OTHERS],
        "pair": pairs,
        "state": list(STATES),
    }
    return variables, coordinates


def _text(variant: tuple[int, ...]) -> str:
    return " ".join(map(str, variant))


def _form(architecture: Architecture, variant: int) -> str:
    """What SUBJECTS call a variant."""
    places = architecture.places
    return next((name for name in ("full", "first") if places.get(name) == variant), "other")


def _models(runs: dict[str, Runs]) -> list[tuple[str, int]]:
    """Names and variants: the full one of each model first, then others with several heads in the
    first layer."""
    variants = {name: each.spec.architecture.variants for name, each in runs.items()}
    full = [(name, len(rows) - 1) for name, rows in variants.items()]
    others = [
        (name, variant)
        for name, rows in variants.items()
        for variant, row in enumerate(rows[:-1])
        if row[0] > 1
    ]
    return full + others


def measure(config: Config, runs: Runs, variant: int) -> dict:
    """Rises of the risk [R, L, H], all NaN for a run that diverged; its risk [R], and ridge's."""
    batch, ridge = _prompts(config, runs.spec)
    models = runs.models(variant).in_float64()
    alive = runs.finished[variant]
    judge = partial(importance.importances, models, batch)
    rise, of_median = np.moveaxis(judge(over_prompts=_mean_and_median), -1, 0)
    risk = importance.risks(models, batch, models.gates[:1])[:, 0]
    measures = {"rise": rise, "median": of_median, "risk": risk}
    return {name: _only(alive, values) for name, values in measures.items()} | {"ridge": ridge}


def on_the_way(config: Config, runs: Runs, end: np.ndarray) -> np.ndarray:  # [R, C, L, H]
    """Rises of the risk for the full model after each part of its training, the last given."""
    batch, _ = _prompts(config, runs.spec)
    rises = []
    for part in range(runs.spec.training.checkpoints - 1):
        params = jax.tree.map(lambda leaf, part=part: leaf[:, part], runs.checkpoints)
        models = runs.models().replace(params=params).in_float64()
        rises.append(_only(runs.finished[-1], importance.importances(models, batch)))
    return np.stack([*rises, end], axis=1)


def _steps(spec: Spec) -> np.ndarray:
    parts = spec.training.checkpoints
    return np.arange(1, parts + 1) * (spec.training.steps // parts)


def by_ablation(config: Config, runs: Runs) -> np.ndarray:  # [ablation, R, L, H]
    """The full model's rises of the risk by every way to take a head away."""
    batch = jax.tree.map(lambda x: x[: config.ablation_prompts], _prompts(config, runs.spec)[0])
    judge = partial(importance.importances, _full(runs), batch)
    rises = [judge(*how) for how in ABLATIONS.values()]
    return _only(runs.finished[-1], np.array(rises), axis=1)


def by_representative(config: Config, runs: Runs, rise: np.ndarray) -> np.ndarray:
    """Rises of the risk for other heads of the same full model, after its own:
    [representative, R, L, H]."""
    batch, _ = _prompts(config, runs.spec)
    written = head_patterns.represented(_full(runs), config.seed)
    rises = [importance.importances(models, batch) for models in written.values()]
    return np.stack([rise, *_only(runs.finished[-1], np.array(rises), axis=1)])


def alike(config: Config, runs: Runs) -> dict[str, np.ndarray]:
    """Attention across seeds [state, R, L], likeness to the construction [state, R]: full model."""
    trained, rng = _full(runs), np.random.default_rng(config.seed)
    batch = jax.tree.map(lambda x: x[: config.pattern_prompts], _prompts(config, runs.spec)[0])
    random = trained.replace(params=jax.tree.map(partial(_like, rng), trained.params))
    states = trained, random
    return {
        "across": np.array([head_patterns.across_seeds(models, batch) for models in states]),
        "built": np.array([head_patterns.like_construction(models) for models in states]),
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


def _full(runs: Runs) -> Model:  # leaves [R, ...]
    return runs.models().in_float64()


def _prompts(config: Config, spec: Spec):
    """The prompts of a model, and ridge's risk on them, which is no rule for polynomials; the same
    for all models of a task."""
    key = jax.random.fold_in(jax.random.key(config.seed), 0)
    task = tasks.distribution(spec.task, config.n)
    size = max(config.prompts, config.softmax_prompts)
    softmax = spec.architecture.kernel == "softmax"
    kept = config.softmax_prompts if softmax else config.prompts
    batch = jax.tree.map(lambda leaf: leaf[:kept], _draw(key, task, size))
    linear = spec.task.degree == 1
    return batch, sparse_rules.errors("ridge", batch, task).mean() if linear else np.nan


_draw = jax.jit(tasks.draw, static_argnums=2)
