"""Linear readers of the query's token after each layer of trained models."""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads import importance
from experiments.heads.dissected import prompts_of, run
from experiments.heads.sparse_judging import rule_errors
from experiments.models.model import Model, cut, skeleton
from experiments.models.specs import Spec
from experiments.models.tasks import distribution
from experiments.models.trained import trained
from lsa_lab import prompts
from lsa_lab.analyses import heads, probes
from lsa_lab.prompts import Prompt

RULES = ("ridge", "sparse Bayes")
_SCALE = 0.1  # of random weights; a reader does not depend on it as long as it is small
_TOGETHER = 512  # prompts that are in memory at once

IMPORTANCE, LEARN, FRESH, CONTROL, DESCENT, SHUFFLE = range(6)  # tags of keys


@dataclass(frozen=True)
class Variant:
    """R runs of a variant, of what is left of it, or of random weights."""

    models: Model  # leaves [R, ...]
    whole: np.ndarray  # [R]  which of them have been trained to the end


@dataclass(frozen=True)
class Case:
    """A model: R runs whose "full" and "single head" variants have been trained to the end."""

    spec: Spec
    variants: dict[str, Variant]  # "pruned" and "random" too
    lost: int  # trainings that have not finished

    @property
    def runs(self) -> int:
        return len(self.variants["full"].whole)


def short(variant: tuple[int, ...], full: tuple[int, ...]) -> str:
    """The heads of each layer, the last number going on to the end: (4, 1, 1) is "4 1…"."""
    if variant == full:
        return "full"
    if max(variant) == 1:
        return "single head"
    end = len(variant) - 1
    while end and variant[end - 1] == variant[-1]:
        end -= 1
    return " ".join(map(str, variant[: end + 1])) + "…"


def load(config, name: str, spec: Spec, progress=None) -> Case:
    runs = trained(spec, f"sparse models: {name}", retrain=config.retrain, progress=progress)
    places, rows = spec.architecture.places, spec.architecture.variants
    seeds, variants = runs.finished[[places["single"], places["full"]]].all(0), {}
    for i, row in enumerate(rows):
        models = runs.models(i, seeds).in_float64()
        variants[short(row, rows[-1])] = Variant(models, runs.finished[i, seeds])
    full, whole = variants["full"].models, variants["full"].whole
    left = full.replace(gates=pruned(config, full, rows[-1]))
    variants["pruned"] = Variant(left, whole)
    rng = np.random.default_rng(config.seed)
    random = jax.tree.map(lambda leaf: rng.normal(0.0, _SCALE, leaf.shape), full.params)
    variants["random"] = Variant(full.replace(params=random), whole)
    return Case(spec, variants, int((~runs.finished).sum()))


def pruned(config, models: Model, counts: tuple[int, ...]) -> np.ndarray:  # [R, L, H]
    """Importance is measured on prompts that nothing is judged on."""
    batch = run(draw(config, models.spec, IMPORTANCE, len(models.gates)), 0)
    scores = importance.importances(models, batch, "zero")
    return np.asarray(jax.jit(jax.vmap(lambda scores: heads.prune(scores, counts)))(scores))


def draw(config, spec: Spec, tag: int, runs: int) -> Prompt:  # leaves [R, B, ...]
    size = max(config.prompts, config.descents)
    return prompts_of(spec.task, config.seed, tag, config.n, size, runs)


def both(config, case: Case) -> tuple[Prompt, Prompt]:
    """Prompts to learn from and fresh ones to judge on, leaves [R, B, ...]."""
    batches = (draw(config, case.spec, tag, case.runs) for tag in (LEARN, FRESH))
    return tuple(jax.tree.map(lambda leaf: leaf[:, : config.prompts], batch) for batch in batches)


def readers(config, case: Case) -> np.ndarray:  # [variants, R, 4, L+1]
    """What ``_reader`` says of every variant after every layer; NaN where a training has not ended.

    A reader of one shape of models is compiled once.
    """
    given = (*both(config, case), keys(config, CONTROL, case.runs))
    program, like = _reader(config.learned), skeleton(case.spec)
    rows = []
    for variant in case.variants.values():
        numbers = over_runs(program, variant.models.replace(spec=like), *given)
        rows.append(np.where(variant.whole[:, None, None], numbers, np.nan))
    return np.stack(rows)


@functools.cache
def _reader(learned: int):
    """(model, prompts to learn from, fresh ones, key) of one run -> [4, L+1]: the excess risks of
    the best linear reader of the query's token and of the model's own read-out; the mean R² of
    r_j x_j and that of the control task."""

    def of_run(model, learn, fresh, key):
        def look(batch):
            return jax.lax.map(
                functools.partial(_look, model), batch, batch_size=min(_TOGETHER, len(batch.y))
            )

        (states, scale, held), (others, units, targets) = look(learn), look(fresh)
        short, brief = _shortest(states, learned), _shortest(others, learned)
        wrong = probes.control_targets(key, held[short])

        def layer(pair):
            mine, theirs = pair
            reader = probes.fit((scale[:, None] * mine)[short], learn.y_query[short, None])
            answers = (units * (theirs @ reader)[:, 0], -units * theirs[:, -1])
            risks = [((cut(answer, fresh) - fresh.y_query) ** 2).mean() for answer in answers]
            shares = [
                probes.explained(
                    probes.fit(mine[short], goal), theirs[brief], targets[brief]
                ).mean()
                for goal in (held[short], wrong)
            ]
            return jnp.stack(risks + shares)

        pair = states.swapaxes(0, 1), others.swapaxes(0, 1)
        return jax.lax.map(layer, pair).T

    return jax.jit(of_run)


def _look(model: Model, prompt: Prompt):
    """The query's token after each layer [L+1, D], c, and the r_j x_j that it may hold [d]."""
    own, scale = prompts.normalised(prompt)
    stream = model.forward(prompt).stream
    return stream[:, -1], scale, probes.preprocessed(own)[-1]


def _shortest(states, count: int):  # [B, L+1, D] -> [count]
    """The prompts whose tokens are shortest after the last layer."""
    return jnp.argsort(jnp.linalg.norm(states[:, -1], axis=-1))[:count]


def of_rules(config, case: Case) -> np.ndarray:  # [rules]
    """Excess risks of RULES on the fresh prompts of all runs."""
    fresh = both(config, case)[1]
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), fresh)
    task = distribution(case.spec.task, config.n)
    return np.array([rule_errors(rule, task, flat).mean() for rule in RULES])


def over_runs(program, *trees) -> np.ndarray:  # leaves [R, ...] -> [R, ...]
    runs = len(jax.tree.leaves(trees)[0])
    return np.stack([program(*(run(tree, r) for tree in trees)) for r in range(runs)])


def keys(config, tag: int, runs: int):
    return jax.random.split(jax.random.fold_in(jax.random.key(config.seed), tag), runs)
