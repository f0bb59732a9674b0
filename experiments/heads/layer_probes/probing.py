"""Linear readers of the query's token after each layer of trained models."""

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads import dissected, importance
from experiments.heads.sparse_judging import rule_errors
from experiments.models import sparse_models, sparse_training
from experiments.models.specs import Family
from lsa_lab import prompts
from lsa_lab.analyses import heads, probes
from lsa_lab.prompts import Prompt

RULES = ("ridge", "sparse Bayes")
_SCALE = 0.1  # of random weights; a reader does not depend on it as long as it is small
_TOGETHER = 512  # prompts that are in memory at once

IMPORTANCE, LEARN, FRESH, CONTROL, DESCENT, SHUFFLE = range(6)  # tags of keys


@dataclass(frozen=True)
class Model:
    """R runs of an architecture, of what is left of it, or of random weights."""

    params: Any  # leaves [R, ...]
    masks: np.ndarray  # [R, L, H]
    whole: np.ndarray  # [R]  which of them have been trained to the end


@dataclass(frozen=True)
class Case:
    """A family: R runs, whose "full" and "single head" models have been trained to the end."""

    family: Family
    models: dict[str, Model]  # "pruned" and "random" too
    lost: int  # trainings that have not finished

    @property
    def runs(self) -> int:
        return len(self.models["full"].masks)


def short(family: Family, architecture: tuple[int, ...]) -> str:
    """The heads of each layer, the last number going on to the end: (4, 1, 1) is "4 1…"."""
    if architecture == family.architectures[-1]:
        return "full"
    if max(architecture) == 1:
        return "single head"
    end = len(architecture) - 1
    while end and architecture[end - 1] == architecture[-1]:
        end -= 1
    return " ".join(map(str, architecture[: end + 1])) + "…"


def load(config, name: str, progress=None) -> Case:
    made = sparse_training.trained(config.families, name, config.retrain, progress)
    family = made.family
    counts = family.architectures[-1]
    seeds, models = made.finished[[family.named["single"], family.named["full"]]].all(0), {}
    for a, one in enumerate(family.architectures):
        masks = np.tile(sparse_models.masks(family)[a], (seeds.sum(), 1, 1))
        weights = dissected.weights(made, a, seeds)
        models[short(family, one)] = Model(weights, masks, made.finished[a, seeds])
    full = models["full"]
    models["pruned"] = Model(full.params, pruned(config, family, full.params, counts), full.whole)
    rng = np.random.default_rng(config.seed)
    random = jax.tree.map(lambda leaf: rng.normal(0.0, _SCALE, leaf.shape), full.params)
    models["random"] = Model(random, full.masks, full.whole)
    return Case(family, models, int((~made.finished).sum()))


def pruned(config, family: Family, params, counts) -> np.ndarray:  # [R, L, H]
    """Importance is measured on prompts that nothing is judged on."""
    runs = len(jax.tree.leaves(params)[0])
    batch = dissected.run(drawn(config, family, IMPORTANCE, runs), 0)
    gates = sparse_models.masks(family)[-1]
    scores = importance.importances(family, params, batch, gates, "zero")
    return np.asarray(jax.jit(jax.vmap(lambda scores: heads.prune(scores, counts)))(scores))


def drawn(config, family: Family, tag: int, runs: int) -> Prompt:  # leaves [R, B, ...]
    size = max(config.prompts, config.descents)
    return dissected.drawn(family, config.seed, tag, config.n, size, runs)


def both(config, case: Case) -> tuple[Prompt, Prompt]:
    """Prompts to learn from and fresh ones to judge on, leaves [R, B, ...]."""
    found = (drawn(config, case.family, tag, case.runs) for tag in (LEARN, FRESH))
    return tuple(jax.tree.map(lambda leaf: leaf[:, : config.prompts], some) for some in found)


def readers(config, case: Case) -> np.ndarray:  # [models, R, 4, L+1]
    """Of every model, after every layer: see ``_reader``; NaN where a training has not ended."""
    given = (*both(config, case), keys(config, CONTROL, case.runs))
    program = _reader(sparse_models.skeleton(case.family), config.learned)
    found = []
    for model in case.models.values():
        numbers = over_runs(program, model.params, model.masks, *given)
        found.append(np.where(model.whole[:, None, None], numbers, np.nan))
    return np.stack(found)


@functools.cache
def _reader(family: Family, learned: int):
    """(params, mask, prompts to learn from, fresh ones, key) of one run -> [4, L+1]: the excess
    risks of the best linear reader of the query's token and of the model's own read-out; the mean
    R² of r_j x_j and that of the control task."""

    def one(params, mask, learn, fresh, key):
        def look(batch):
            one = functools.partial(_look, family, params, mask)
            return jax.lax.map(one, batch, batch_size=min(_TOGETHER, len(batch.y)))

        (states, scale, held), (others, units, asked) = look(learn), look(fresh)
        short, brief = _shortest(states, learned), _shortest(others, learned)
        wrong = probes.control_targets(key, held[short])

        def layer(pair):
            mine, theirs = pair
            reader = probes.fit((scale[:, None] * mine)[short], learn.y_query[short, None])
            answers = (units * (theirs @ reader)[:, 0], -units * theirs[:, -1])
            risks = [
                ((sparse_models.cut(some, fresh) - fresh.y_query) ** 2).mean() for some in answers
            ]
            shares = [
                probes.explained(probes.fit(mine[short], some), theirs[brief], asked[brief]).mean()
                for some in (held[short], wrong)
            ]
            return jnp.stack(risks + shares)

        pair = states.swapaxes(0, 1), others.swapaxes(0, 1)
        return jax.lax.map(layer, pair).T

    return jax.jit(one)


def _look(family: Family, params, mask, prompt: Prompt):
    """The query's token after each layer [L+1, D], c, and the r_j x_j that it may hold [d]."""
    own, scale = prompts.normalised(prompt)
    stream = sparse_models.forward(family, params, prompt, mask).stream
    return stream[:, -1], scale, probes.preprocessed(own)[-1]


def _shortest(states, count: int):  # [B, L+1, D] -> [count]
    """The prompts whose tokens are shortest after the last layer."""
    return jnp.argsort(jnp.linalg.norm(states[:, -1], axis=-1))[:count]


def known(config, case: Case) -> np.ndarray:  # [rules]
    """Excess risks of RULES on the fresh prompts of all runs."""
    fresh = both(config, case)[1]
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), fresh)
    law = sparse_models.law(case.family, config.n)
    return np.array([rule_errors(rule, law, flat).mean() for rule in RULES])


def over_runs(program, *trees) -> np.ndarray:  # leaves [R, ...] -> [R, ...]
    runs = len(jax.tree.leaves(trees)[0])
    return np.stack([program(*(dissected.run(tree, r) for tree in trees)) for r in range(runs)])


def keys(config, tag: int, runs: int):
    return jax.random.split(jax.random.fold_in(jax.random.key(config.seed), tag), runs)
