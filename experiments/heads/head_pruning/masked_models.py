"""Trained models under masks of their heads, each run on prompts of its own, and which to keep."""

from dataclasses import dataclass

import jax
import numpy as np

from experiments.heads import importance
from experiments.heads.each_run import map_runs, prompts_of
from experiments.models.model import Model
from experiments.models.runs import Runs
from experiments.models.specs import Spec
from lsa_lab.analyses import heads
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
    def runs(self) -> int:
        return len(self.models.gates)


def finished_case(runs: Runs) -> Case:
    seeds, first = runs.finished[-1], runs.spec.architecture.places.get("first")
    fewer, lost = None, (~seeds).sum()
    if first is not None:
        fewer = runs.models(first, seeds).cast_float64(), runs.finished[first, seeds]
        lost += (~runs.finished[first]).sum()
    return Case(runs.models(-1, seeds).cast_float64(), fewer, int(lost))


def batch_of(config, case: Case, tag: int, size: int) -> Prompt:  # leaves [R, B, ...]
    """Prompts for each run."""
    return prompts_of(case.spec.task, config.seed, tag, config.n, size, case.runs)


def judging_batch(config, case: Case) -> Prompt:  # leaves [R, B, ...]
    """Prompts on which nothing is chosen."""
    return batch_of(config, case, JUDGE, config.prompts)


def risks(models: Model, batch: Prompt, masks: np.ndarray) -> np.ndarray:  # [R, M]
    """Excess risks of each run under its masks [R, M, L, H]."""
    return map_runs(importance.risks, _one_by_one(models), batch, masks)[:, 0]


def risks_as_they_are(config, case: Case, models: Model) -> np.ndarray:  # [R]
    """Excess risks of models in place of a case's, on the prompts on which those are judged."""
    return risks(models, judging_batch(config, case), models.gates[:, None])[:, 0]


def risks_of_fewer(config, case: Case) -> np.ndarray:  # [R]
    """Excess risks of the models trained with one head in each later layer."""
    if case.fewer is None:
        return np.full(case.runs, np.nan)
    models, finished = case.fewer
    return np.where(finished, risks_as_they_are(config, case, models), np.nan)


def importances(config, case: Case) -> np.ndarray:  # [R, L, H]
    """What every head saves, by zeroing it alone, on prompts that nothing is judged on."""
    batch = batch_of(config, case, IMPORTANCE, config.prompts)
    return map_runs(importance.importances, _one_by_one(case.models), batch)[:, 0]


def _one_by_one(models: Model) -> Model:  # leaves [R, 1, ...]
    return jax.tree.map(lambda leaf: leaf[:, None], models)


def treatment_masks(config, case: Case, scores: np.ndarray) -> np.ndarray:
    """Masks [R, len(CHOSEN) + 2 draws, L, H]: CHOSEN, then the draws of each of RANDOM."""
    counts = case.spec.architecture.variants[-1]
    key = jax.random.fold_in(jax.random.key(config.seed), MASKS)
    keys = jax.random.split(key, (case.runs, 2, config.draws))

    def masks_of_run(r):
        chosen = [case.models.gates[0], heads.prune(scores[r], counts)]
        chosen.append(heads.prune_first_layer(scores[r], counts))
        controls = (heads.prune_to_random_heads, heads.remove_at_random)
        return chosen + [
            control(key, scores[r], counts)
            for control, own in zip(controls, keys[r], strict=True)
            for key in own
        ]

    return np.array([masks_of_run(r) for r in range(case.runs)], float)
