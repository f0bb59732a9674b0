"""Trained models under many masks of their heads: which to keep, and what is lost without."""

from dataclasses import dataclass

import jax
import numpy as np

from experiments.heads import dissected, importance
from experiments.heads.sparse_judging import rule_errors
from experiments.models.model import Model
from experiments.models.specs import Spec
from experiments.models.tasks import distribution
from experiments.models.trained import trained
from lsa_lab.analyses import heads
from lsa_lab.prompts import Prompt

KEPT = ("full", "pruned", "best later heads", "top head of layer 1")
DRAWN = ("random later heads", "as many at random")
TREATMENTS = (*KEPT, *DRAWN, "trained so")
RULES = ("ridge", "sparse Bayes")

IMPORTANCE, SEARCH, MASKS, JUDGE = range(4)  # tags of keys


@dataclass(frozen=True)
class Case:
    """The full variant of a model, R runs that have finished, and the variant pruned to."""

    models: Model  # leaves [R, ...]
    so: tuple[Model, np.ndarray] | None  # (h, 1, ..., 1), and whether its run has finished [R]
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
    so, lost = None, (~seeds).sum()
    if first is not None:
        so = runs.models(first, seeds).in_float64(), runs.finished[first, seeds]
        lost += (~runs.finished[first]).sum()
    return Case(runs.models(-1, seeds).in_float64(), so, int(lost))


def batches(config, case: Case, tag: int, n: int, size: int) -> Prompt:  # leaves [R, B, ...]
    """Prompts for each run, the first n demonstrations of longer ones."""
    sizes = max(config.lengths), max(config.prompts, config.search)
    batch = dissected.prompts_of(case.spec.task, config.seed, tag, *sizes, case.runs)
    batch = jax.tree.map(lambda leaf: leaf[:, :size], batch)
    return batch.replace(x=batch.x[:, :, :n], y=batch.y[:, :, :n])


def repeated(config, case: Case, batch: Prompt) -> Prompt:
    """Demonstrations over and over, up to the longest prompt: a model sees no difference.

    Softmax attention pays for every token: its prompts stay as they are.
    """
    if case.spec.architecture.kernel == "softmax":
        return batch
    times = config.longest // batch.y.shape[-1]
    return batch.replace(x=np.tile(batch.x, (1, 1, times, 1)), y=np.tile(batch.y, (1, 1, times)))


def judged(config, case: Case, batch: Prompt, masks: np.ndarray) -> np.ndarray:
    """Excess risks [R, M] under masks [R, M, L, H], in portions of one size: one program."""
    portion = len(KEPT) + len(DRAWN) * config.draws  # the treatments
    return _risks(case.models, repeated(config, case, batch), masks, portion)


def judged_so(config, case: Case, batch: Prompt) -> np.ndarray:  # [R]
    """Excess risks of the models trained with one head in each later layer."""
    if case.so is None:
        return np.full(case.runs, np.nan)
    models, whole = case.so
    risks = _risks(models, repeated(config, case, batch), models.gates[:, None], 1)[:, 0]
    return np.where(whole, risks, np.nan)


def _risks(models: Model, batch: Prompt, masks: np.ndarray, portion: int) -> np.ndarray:
    count = masks.shape[1]
    spare = np.repeat(models.gates[:, None], -count % portion, axis=1)
    masks = np.concatenate([masks, spare], axis=1)
    rows = []
    for (model, prompts), mine in zip(runs(models, batch), masks, strict=True):
        portions = np.split(mine, len(mine) // portion)
        risks = [importance.risks(model, prompts, each) for each in portions]
        rows.append(np.concatenate(risks, axis=1)[0, :count])
    return np.stack(rows)


def runs(models: Model, batch: Prompt):
    """Each run's model, as one of one, and its prompts."""
    for r in range(len(batch.y)):
        yield jax.tree.map(lambda leaf, r=r: leaf[r : r + 1], models), dissected.run(batch, r)


def importances(config, case: Case) -> np.ndarray:  # [R, L, H]
    """What every head saves, by zeroing it alone, on prompts that nothing is judged on."""
    batch = repeated(config, case, batches(config, case, IMPORTANCE, config.n, config.prompts))
    return np.concatenate([importance.importances(*each) for each in runs(case.models, batch)])


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
            for control, own in zip(controls, keys[r], strict=True)
            for k in own
        ]

    return np.array([of_run(r) for r in range(case.runs)], float)


def of_rules(config, case: Case, n: int) -> np.ndarray:  # [R, rules]
    """Excess risks of RULES on the prompts on which the models are judged."""
    batch = batches(config, case, JUDGE, n, config.prompts)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), batch)
    task = distribution(case.spec.task, n)
    errors = np.array([rule_errors(rule, task, flat) for rule in RULES])
    return errors.reshape(len(RULES), case.runs, -1).mean(2).T


def geometric(risks: np.ndarray, draws: int) -> np.ndarray:  # [R, M] -> [R, len(KEPT + DRAWN)]
    """The draws of each control as one: their geometric mean."""
    fixed, random = np.split(risks[:, : len(KEPT) + 2 * draws], [len(KEPT)], axis=1)
    means = np.exp(np.log(random).reshape(len(risks), 2, draws).mean(2))
    return np.concatenate([fixed, means], axis=1)
