"""How much the risk of trained models rises without a head."""

import jax
import numpy as np

from experiments.heads import sparse_rules
from experiments.heads.head_importance.config import ABLATIONS, Config
from experiments.heads.importance import importances, risks
from experiments.heads.rule_names import RIDGE
from experiments.models import tasks
from experiments.models.model import Model
from experiments.models.runs import Runs
from experiments.models.specs import Spec
from lsa_lab.analyses import narrow_heads
from lsa_lab.prompts import Prompt

_OVER_PROMPTS = {"zero, median prompt": np.median}  # what is made of all errors, if not the mean


def final_rises(config: Config, runs: Runs, variant: int) -> dict:
    """Rises of the risk and of the median error [R, L, H], all NaN for a run that diverged; its
    risk [R], and ridge's."""
    batch, task = prompts_of(config, runs.spec)
    models, alive = runs.models(variant).in_float64(), runs.finished[variant]
    both = importances(models, batch, over_prompts=_mean_and_median)
    risk = risks(models, batch, models.gates[:1])[:, 0]
    return {
        "rise": _finished(alive, both[..., 0]),
        "median": _finished(alive, both[..., 1]),
        "risk": np.where(alive, risk, np.nan),
        "ridge": sparse_rules.errors(RIDGE, batch, task).mean(),
    }


def ablated_rises(config: Config, runs: Runs) -> np.ndarray:  # [ablation, R, L, H]
    """The full model's rises of the risk by every way to take a head away."""
    batch = first(config.ablation_prompts, prompts_of(config, runs.spec)[0])
    ways = [(name.split(",")[0], _OVER_PROMPTS.get(name, np.mean)) for name in ABLATIONS]
    rises = [importances(full(runs), batch, *way) for way in ways]
    return _finished(runs.finished[-1], np.array(rises))


def condition_numbers(models: Model) -> np.ndarray:  # leaves [R, ...] -> [R, L]
    """How well each layer determines its heads (analyses.narrow_heads): infinite where it does not;
    softmax heads have no such number. Slots that no prompt fills or no layer reads are left out."""
    spec, architecture = models.spec, models.spec.architecture
    if architecture.kernel == "softmax":
        return np.full(models.gates.shape[:2], np.nan)
    models = jax.vmap(Model.plain)(models)
    width = architecture.key_width or spec.token_width
    number = jax.jit(narrow_heads.condition_number, static_argnums=2)
    filled = np.r_[: spec.task.width, spec.token_width - 1]
    rows = []
    for w_pv, w_kq in zip(models.params.w_pv, models.params.w_kq, strict=True):
        layers = [list(pair) for pair in zip(np.asarray(w_pv), np.asarray(w_kq), strict=True)]
        layers[0] = [layers[0][0][:, :, filled], layers[0][1][:, filled][:, :, filled]]
        layers[-1][0] = layers[-1][0][:, -1:]
        rows.append([number(*layer, width) for layer in layers])
    return np.array(rows)


def _finished(alive: np.ndarray, rises: np.ndarray) -> np.ndarray:  # [R], [..., R, L, H]
    """NaN for the runs that diverged."""
    return np.where(alive[:, None, None], rises, np.nan)


def _mean_and_median(errors: np.ndarray) -> list:
    return [errors.mean(), np.median(errors)]


def full(runs: Runs) -> Model:  # leaves [R, ...]
    """The variant with as many heads in every layer."""
    return runs.models().in_float64()


def prompts_of(config: Config, spec: Spec, tag: int = 0):  # -> Prompt [B], its task
    """The prompts of a model, the same for all models of a task."""
    key = jax.random.fold_in(jax.random.key(config.seed), tag)
    task = tasks.distribution(spec.task, config.n)
    batch = _draw(key, task, max(config.prompts, config.softmax_prompts))
    softmax = spec.architecture.kernel == "softmax"
    return first(config.softmax_prompts if softmax else config.prompts, batch), task


def first(count: int, batch: Prompt) -> Prompt:
    return jax.tree.map(lambda leaf: leaf[:count], batch)


_draw = jax.jit(tasks.draw, static_argnums=2)
