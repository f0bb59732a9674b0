"""What is measured of trained models: rises of the risk without a head, and how alike heads are."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads import sparse_rules
from experiments.heads.each_run import run
from experiments.heads.head_importance.config import REPRESENTATIVES, Config
from experiments.heads.importance import importances, risks
from experiments.heads.rule_names import RIDGE
from experiments.models import tasks
from experiments.models.model import Model, shape
from experiments.models.runs import Runs
from experiments.models.specs import Spec
from lsa_lab.analyses import head_similarity
from lsa_lab.analyses.head_similarity import HeadMaps
from lsa_lab.models import constructions, head_gauge, transformer
from lsa_lab.prompts import Prompt

ABLATIONS = {  # what a head is taken away by, and what is made of the errors of all prompts
    "zero": ("zero", np.mean),
    "mean": ("mean", np.mean),
    "resample": ("resample", np.mean),
    "zero, median prompt": ("zero", np.median),
}


def at_the_end(config: Config, runs: Runs, variant: int) -> dict:
    """Rises of the risk and of the median error [R, L, H], all NaN for a run that diverged; its
    risk [R], and ridge's."""
    batch, task = prompts_of(config, runs.spec)
    models, alive = runs.models(variant).in_float64(), runs.finished[variant]
    both = importances(models, batch, over_prompts=_mean_and_median)
    risk = risks(models, batch, models.gates[:1])[:, 0]
    linear = runs.spec.task.degree == 1  # ridge is no rule for polynomials
    return {
        "rise": _finished(alive, both[..., 0]),
        "median": _finished(alive, both[..., 1]),
        "risk": np.where(alive, risk, np.nan),
        "ridge": sparse_rules.errors(RIDGE, batch, task).mean() if linear else np.nan,
    }


def on_the_way(config: Config, runs: Runs, end: np.ndarray) -> np.ndarray:  # [R, C, L, H]
    """Rises of the risk for the full model after each part of its training, the last given."""
    batch, _ = prompts_of(config, runs.spec)
    rises = []
    for part in range(runs.spec.training.checkpoints - 1):
        params = jax.tree.map(lambda leaf, part=part: leaf[:, part], runs.checkpoints)
        models = runs.models().replace(params=params).in_float64()
        rises.append(_finished(runs.finished[-1], importances(models, batch)))
    return np.stack([*rises, end], axis=1)


def by_ablation(config: Config, runs: Runs) -> np.ndarray:  # [ablation, R, L, H]
    """The full model's rises of the risk by every way to take a head away."""
    batch = first(config.ablation_prompts, prompts_of(config, runs.spec)[0])
    rises = [importances(full(runs), batch, *way) for way in ABLATIONS.values()]
    return _finished(runs.finished[-1], np.array(rises))


def by_representative(config: Config, runs: Runs, rise: np.ndarray) -> np.ndarray:
    """Rises of the risk for other heads of the same full model, after its own:
    [representative, R, L, H]."""
    batch, _ = prompts_of(config, runs.spec)
    others = represented(full(runs), config.seed)
    rises = [importances(models, batch) for models in others.values()]
    return np.stack([rise, *_finished(runs.finished[-1], np.array(rises))])


def _finished(alive: np.ndarray, rises: np.ndarray) -> np.ndarray:  # [R], [..., R, L, H]
    """NaN for the runs that diverged."""
    return np.where(alive[:, None, None], rises, np.nan)


def _mean_and_median(errors: np.ndarray) -> list:
    return [errors.mean(), np.median(errors)]


def full(runs: Runs) -> Model:  # leaves [R, ...]
    """The variant with as many heads in every layer."""
    return runs.models().in_float64()


def prompts_of(config: Config, spec: Spec):  # -> Prompt [B], its task
    """The prompts of a model, the same for all models of a task."""
    key = jax.random.fold_in(jax.random.key(config.seed), 0)
    task = tasks.distribution(spec.task, config.n)
    batch = _draw(key, task, max(config.prompts, config.softmax_prompts))
    softmax = spec.architecture.kernel == "softmax"
    return first(config.softmax_prompts if softmax else config.prompts, batch), task


def first(count: int, batch: Prompt) -> Prompt:
    return jax.tree.map(lambda leaf: leaf[:count], batch)


_draw = jax.jit(tasks.draw, static_argnums=2)


def similarities(config: Config, runs: Runs) -> dict[str, np.ndarray]:
    """Attention across seeds [state, R, L], likeness to the construction [state, R]: full model."""
    trained, rng = full(runs), np.random.default_rng(config.seed)
    batch = first(config.pattern_prompts, prompts_of(config, runs.spec)[0])
    random = trained.replace(params=jax.tree.map(partial(_random_like, rng), trained.params))
    states = trained, random
    return {
        "across": np.array([across_seeds(models, batch) for models in states]),
        "built": np.array([like_construction(models) for models in states]),
    }


def _random_like(rng, leaf: np.ndarray) -> np.ndarray:  # [R, L, ...]
    """Gaussian weights of the same size in every run and layer."""
    size = np.sqrt(np.mean(np.square(leaf), axis=tuple(range(2, leaf.ndim)), keepdims=True))
    return size * rng.standard_normal(leaf.shape)


def represented(models: Model, seed: int) -> dict[str, Model]:  # leaves [R, ...]
    """Models of merged heads, all of them present, written as the other REPRESENTATIVES.

    "orthogonal": those of models.head_gauge; "turned": these, mixed by random rotations.
    The first layer is restricted to what prompts fill: no scratch.
    """
    filled, models = _filled(models.spec), jax.vmap(Model.plain)(models)
    params = jax.tree.map(np.array, models.params)
    params.w_kq[:, 0] *= np.outer(filled, filled)
    params.w_pv[:, 0] *= filled
    orthogonal = jax.jit(jax.vmap(lambda params: head_gauge.orthogonal(params)[0]))(params)
    heads = params.w_pv.shape[:3]  # [R, L, H]
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((*heads, heads[-1])))[0]
    turned = jax.jit(jax.vmap(head_gauge.mixed))(orthogonal, turn)
    others = zip(REPRESENTATIVES[1:], (orthogonal, turned), strict=True)
    return {name: models.replace(params=params) for name, params in others}


def _filled(spec: Spec) -> np.ndarray:  # [e]
    """1 for the coordinates of a token that prompts fill: covariates and label."""
    place = np.arange(spec.token_width)
    scratch = (place >= spec.task.width) & (place < spec.token_width - 1)
    return np.where(scratch, 0.0, 1.0)


def across_seeds(models: Model, batch: Prompt) -> np.ndarray:  # leaves [R, ...] -> [R, L]
    """The absolute correlation of matched heads' attention, averaged over heads and the other runs.

    Absolute, for a linear head that turns the sign of what it reads and of what it writes is the
    same head.
    """
    models = jax.vmap(Model.plain)(models)
    count, depth = len(models.gates), models.spec.architecture.depth
    patterns = [_attention(run(models, r), batch) for r in range(count)]  # [B, L, H, T, T] each
    total = np.zeros((count, depth))
    for r in range(count):
        for other in range(r):
            similar = np.abs(_all_layers(patterns[r], patterns[other]))  # [L, H, H]
            means = [layer[head_similarity.match(layer)].mean() for layer in similar]
            total[[r, other]] += means
    return total / (count - 1)


@jax.jit
def _attention(model: Model, batch: Prompt):
    def of_prompt(prompt):
        trace = model.replace(gates=None).forward(prompt)
        return transformer.attention(model.factored(), trace, shape(model.spec))

    return jax.vmap(of_prompt)(batch)


_all_layers = jax.jit(jax.vmap(head_similarity.attention_similarity, in_axes=1))


def like_construction(models: Model) -> np.ndarray:  # leaves [R, ...] -> [R]
    """The similarity of first-layer heads to those of preprocess_then_optimise, matched; averaged.

    Maps are of tokens [x, y] as prompts fill them. The construction's heads weigh a coordinate
    each, or share the coordinates if the model has fewer heads.
    """
    similar = np.asarray(_to_construction(models))  # [R, H, G]
    return np.array([each[head_similarity.match(each)].mean() for each in similar])


@jax.jit
def _to_construction(models: Model):  # leaves [R, ...] -> [R, H, G]
    filled, config = np.flatnonzero(_filled(models.spec)), shape(models.spec)
    d = models.spec.task.width

    def of_run(construction, model):
        maps = head_similarity.first_layer_maps(model.factored(), config)
        key_query = maps.key_query[:, filled][:, :, filled]
        own = HeadMaps(key_query=key_query, written=maps.written[:, :, filled])
        return head_similarity.similarity(own, construction)

    heads = min(models.spec.architecture.heads, d)
    construction = constructions.preprocess_then_optimise(d, heads, jnp.ones(1))
    maps = head_similarity.first_layer_maps(*construction)
    return jax.vmap(partial(of_run, maps))(models)
