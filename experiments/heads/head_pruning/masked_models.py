"""Trained models under masks of their heads, each run on prompts of its own."""

from dataclasses import dataclass

import jax
import numpy as np

from experiments.heads import importance, sparse_rules
from experiments.heads.each_run import over_runs, prompts_of
from experiments.heads.head_pruning.config import RULES
from experiments.models.model import Model
from experiments.models.specs import Spec
from experiments.models.tasks import distribution
from experiments.models.trained import trained
from lsa_lab.prompts import Prompt

IMPORTANCE, SEARCH, MASKS, JUDGE = range(4)  # tags of keys


@dataclass(frozen=True)
class Case:
    """The runs of a model's full variant that have finished, and of that with fewer heads."""

    models: Model  # leaves [R, ...]
    fewer: tuple[Model, np.ndarray] | None  # (h, 1, ..., 1), and whether its run has finished [R]
    lost: int  # trainings that have not finished

    @property
    def spec(self) -> Spec:
        return self.models.spec

    @property
    def gates(self) -> np.ndarray:  # [L, H]
        return self.models.gates[0]

    @property
    def counts(self) -> tuple[int, ...]:
        return self.spec.architecture.variants[-1]

    @property
    def runs(self) -> int:
        return len(self.models.gates)


def load(config, name: str, spec: Spec, progress=None) -> Case:
    runs = trained(spec, f"sparse models: {name}", retrain=config.retrain, progress=progress)
    seeds, first = runs.finished[-1], spec.architecture.places.get("first")
    fewer, lost = None, (~seeds).sum()
    if first is not None:
        fewer = runs.models(first, seeds).in_float64(), runs.finished[first, seeds]
        lost += (~runs.finished[first]).sum()
    return Case(runs.models(-1, seeds).in_float64(), fewer, int(lost))


def batch_of(config, case: Case, tag: int, n: int, size: int) -> Prompt:  # leaves [R, B, ...]
    """Prompts for each run, the first n demonstrations of longer ones."""
    sizes = max(config.lengths), max(config.prompts, config.search)
    batch = prompts_of(case.spec.task, config.seed, tag, *sizes, case.runs)
    batch = jax.tree.map(lambda leaf: leaf[:, :size], batch)
    return batch.replace(x=batch.x[:, :, :n], y=batch.y[:, :, :n])


def judging_batch(config, case: Case, n: int) -> Prompt:  # leaves [R, B, ...]
    """Prompts on which nothing is chosen."""
    return batch_of(config, case, JUDGE, n, config.prompts)


def repeated(config, case: Case, batch: Prompt) -> Prompt:
    """Demonstrations over and over, up to the longest prompt: a model sees no difference.

    Softmax attention pays for every token: its prompts stay as they are.
    """
    if case.spec.architecture.kernel == "softmax":
        return batch
    times = config.longest // batch.y.shape[-1]
    return batch.replace(x=np.tile(batch.x, (1, 1, times, 1)), y=np.tile(batch.y, (1, 1, times)))


def risks(config, case: Case, batch: Prompt, masks: np.ndarray) -> np.ndarray:
    """Excess risks [R, M] under masks [R, M, L, H]."""
    return _risks(case.models, repeated(config, case, batch), masks)


def risks_of_fewer(config, case: Case, batch: Prompt) -> np.ndarray:  # [R]
    """Excess risks of the models trained with one head in each later layer."""
    if case.fewer is None:
        return np.full(case.runs, np.nan)
    models, finished = case.fewer
    values = _risks(models, repeated(config, case, batch), models.gates[:, None])
    return np.where(finished, values[:, 0], np.nan)


def risks_of_rules(config, case: Case, n: int) -> np.ndarray:  # [R, rules]
    """Excess risks of RULES on the prompts on which the models are judged."""
    batch = judging_batch(config, case, n)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), batch)
    task = distribution(case.spec.task, n)
    errors = np.array([sparse_rules.errors(rule, flat, task) for rule in RULES])
    return errors.reshape(len(RULES), case.runs, -1).mean(2).T


def importances(config, case: Case) -> np.ndarray:  # [R, L, H]
    """What every head saves, by zeroing it alone, on prompts that nothing is judged on."""
    batch = repeated(config, case, batch_of(config, case, IMPORTANCE, config.n, config.prompts))
    return over_runs(importance.importances, _one_by_one(case.models), batch)[:, 0]


def _risks(models: Model, batch: Prompt, masks: np.ndarray) -> np.ndarray:  # [R, M]
    return over_runs(importance.risks, _one_by_one(models), batch, masks)[:, 0]


def _one_by_one(models: Model) -> Model:  # leaves [R, 1, ...]
    return jax.tree.map(lambda leaf: leaf[:, None], models)
