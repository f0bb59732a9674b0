"""Trained models under many masks of their heads: which to keep, and what is lost without."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from experiments.heads import dissected, importance
from experiments.heads.sparse_judging import rule_errors
from experiments.models import sparse_models, sparse_training
from experiments.models.specs import Family
from lsa_lab.analyses import heads
from lsa_lab.prompts import Prompt

KEPT = ("full", "pruned", "best later heads", "top head of layer 1")
DRAWN = ("random later heads", "as many at random")
TREATMENTS = (*KEPT, *DRAWN, "trained so")
RULES = ("ridge", "sparse Bayes")

IMPORTANCE, SEARCH, MASKS, JUDGE = range(4)  # tags of keys


@dataclass(frozen=True)
class Case:
    """The full architecture of a family, R runs that have finished, and the one pruned to."""

    family: Family
    params: Any  # leaves [R, ...]
    gates: np.ndarray  # [L, H]
    so: tuple[Any, np.ndarray, np.ndarray] | None  # params, gates and whether a run of
    # (h, 1, ..., 1) has finished, if it was trained
    lost: int  # trainings that have not finished

    @property
    def counts(self) -> tuple[int, ...]:
        return self.family.architectures[-1]

    @property
    def runs(self) -> int:
        return len(jax.tree.leaves(self.params)[0])


def load(config, name: str, progress=None) -> Case:
    made = sparse_training.trained(config.families, name, config.retrain, progress)
    family = made.family
    gates, seeds = sparse_models.masks(family), made.finished[-1]
    first, so, lost = family.named.get("first"), None, (~seeds).sum()
    if first is not None:
        so = dissected.weights(made, first, seeds), gates[first], made.finished[first, seeds]
        lost += (~made.finished[first]).sum()
    return Case(family, dissected.weights(made, -1, seeds), gates[-1], so, int(lost))


def batches(config, case: Case, tag: int, n: int, size: int) -> Prompt:  # leaves [R, B, ...]
    """Prompts for each run, the first n demonstrations of longer ones."""
    sizes = max(config.lengths), max(config.prompts, config.search)
    drawn = dissected.drawn(case.family, config.seed, tag, *sizes, case.runs)
    drawn = jax.tree.map(lambda leaf: leaf[:, :size], drawn)
    return drawn.replace(x=drawn.x[:, :, :n], y=drawn.y[:, :, :n])


def repeated(config, case: Case, batch: Prompt) -> Prompt:
    """Demonstrations over and over, up to the longest prompt: a model sees no difference.

    Softmax attention pays for every token: its prompts stay as they are.
    """
    if case.family.kernel == "softmax":
        return batch
    times = config.longest // batch.y.shape[-1]
    return batch.replace(x=np.tile(batch.x, (1, 1, times, 1)), y=np.tile(batch.y, (1, 1, times)))


def judged(config, case: Case, batch: Prompt, masks: np.ndarray) -> np.ndarray:
    """Excess risks [R, M] under masks [R, M, L, H], in portions of one size: one program."""
    portion = len(KEPT) + len(DRAWN) * config.draws  # the treatments
    return _risks(case, case.params, repeated(config, case, batch), masks, portion)


def judged_so(config, case: Case, batch: Prompt) -> np.ndarray:  # [R]
    """Excess risks of the models trained with one head in each later layer."""
    if case.so is None:
        return np.full(case.runs, np.nan)
    params, gates, whole = case.so
    masks = np.tile(gates, (case.runs, 1, 1, 1))
    found = _risks(case, params, repeated(config, case, batch), masks, 1)[:, 0]
    return np.where(whole, found, np.nan)


def _risks(case: Case, params, batch: Prompt, masks: np.ndarray, portion: int) -> np.ndarray:
    count = masks.shape[1]
    spare = np.tile(case.gates, (len(masks), -count % portion, 1, 1))
    masks = np.concatenate([masks, spare], axis=1)
    rows = []
    for (model, prompts), mine in zip(runs(params, batch), masks, strict=True):
        portions = np.split(mine, len(mine) // portion)
        found = [
            importance.risks(case.family, model, prompts, some, case.gates) for some in portions
        ]
        rows.append(np.concatenate(found, axis=1)[0, :count])
    return np.stack(rows)


def runs(params, batch: Prompt):
    """Each run's model, as one of one, and its prompts."""
    for r in range(len(batch.y)):
        yield (
            jax.tree.map(lambda leaf: leaf[None], dissected.run(params, r)),
            dissected.run(batch, r),
        )


def importances(config, case: Case) -> np.ndarray:  # [R, L, H]
    """Of every head, by zeroing it alone, on prompts that nothing is judged on."""
    batch = repeated(config, case, batches(config, case, IMPORTANCE, config.n, config.prompts))
    each = runs(case.params, batch)
    found = [importance.importances(case.family, *one, case.gates, "zero") for one in each]
    return np.concatenate(found)


def treatments(config, case: Case, scores: np.ndarray, best: np.ndarray | None) -> np.ndarray:
    """Masks [R, len(KEPT) + 2 draws, L, H]: KEPT, then the draws of each of DRAWN."""
    counts = case.counts
    key = jax.random.fold_in(jax.random.key(config.seed), MASKS)
    keys = jax.random.split(key, (case.runs, 2, config.draws))
    best = np.tile(case.gates, (case.runs, 1, 1)) if best is None else best

    def of_run(r):
        kept = [case.gates, heads.prune(scores[r], counts), best[r]]
        kept.append(heads.prune_first_layer(scores[r], counts))
        controls = (heads.prune_to_random_heads, heads.remove_at_random)
        return kept + [
            control(k, scores[r], counts)
            for control, some in zip(controls, keys[r], strict=True)
            for k in some
        ]

    return np.array([of_run(r) for r in range(case.runs)], float)


def known(config, case: Case, n: int) -> np.ndarray:  # [R, rules]
    """Excess risks of RULES on the prompts on which the models are judged."""
    batch = batches(config, case, JUDGE, n, config.prompts)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), batch)
    law = sparse_models.law(case.family, n)
    errors = np.array([rule_errors(rule, law, flat) for rule in RULES])
    return errors.reshape(len(RULES), case.runs, -1).mean(2).T


def geometric(found: np.ndarray, draws: int) -> np.ndarray:  # [R, M] -> [R, len(KEPT + DRAWN)]
    """The draws of each control as one: their geometric mean."""
    fixed, drawn = np.split(found[:, : len(KEPT) + 2 * draws], [len(KEPT)], axis=1)
    means = np.exp(np.log(drawn).reshape(len(found), 2, draws).mean(2))
    return np.concatenate([fixed, means], axis=1)
