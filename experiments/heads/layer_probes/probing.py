"""Variants of trained models, and linear readers of the query's token after each layer."""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads import sparse_rules
from experiments.heads.each_run import map_runs, prompts_of
from experiments.heads.layer_probes.config import RULES
from experiments.models.model import Model, clip_predictions, compilation_key
from experiments.models.runs import Runs
from experiments.models.specs import Spec
from experiments.models.tasks import distribution
from lsa_lab import prompts
from lsa_lab.analyses import probes
from lsa_lab.prompts import Prompt

_SCALE = 0.1  # of random weights; a reader does not depend on it as long as it is small
_TOGETHER = 512  # prompts that are in memory at once

LEARN, FRESH, DESCENT = 1, 2, 4  # tags of keys


@dataclass(frozen=True)
class Variant:
    """R runs of a variant, or of random weights."""

    models: Model  # leaves [R, ...]
    finished: np.ndarray  # [R]  which of them have been trained to the end


@dataclass(frozen=True)
class Case:
    """A model: R runs whose "full" and "single head" variants have been trained to the end."""

    spec: Spec
    variants: dict[str, Variant]  # "random" too
    lost: int  # trainings that have not finished

    @property
    def runs(self) -> int:
        return len(self.variants["full"].finished)


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


def finished_case(config, runs: Runs) -> Case:
    spec = runs.spec
    places, rows = spec.architecture.places, spec.architecture.variants
    seeds, variants = runs.finished[[places["single"], places["full"]]].all(0), {}
    for i, row in enumerate(rows):
        models = runs.models(i, seeds).cast_float64()
        variants[short(row, rows[-1])] = Variant(models, runs.finished[i, seeds])
    full, finished = variants["full"].models, variants["full"].finished
    rng = np.random.default_rng(config.seed)
    random = jax.tree.map(lambda leaf: rng.normal(0.0, _SCALE, leaf.shape), full.params)
    variants["random"] = Variant(full.replace(params=random), finished)
    return Case(spec, variants, int((~runs.finished).sum()))


def batch_of(config, case: Case, tag: int, count: int) -> Prompt:  # leaves [R, count, ...]
    size = max(config.prompts, config.descents)
    batch = prompts_of(case.spec.task, config.seed, tag, config.n, size, case.runs)
    return jax.tree.map(lambda leaf: leaf[:, :count], batch)


def risks_of_rules(config, case: Case) -> np.ndarray:  # [rules]
    """Excess risks of RULES on the fresh prompts of all runs."""
    fresh = batch_of(config, case, FRESH, config.prompts)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), fresh)
    task = distribution(case.spec.task, config.n)
    return np.array([sparse_rules.errors(rule, flat, task).mean() for rule in RULES])


def readers(config, case: Case) -> np.ndarray:  # [variants, R, 3, L+1]
    """What ``_reader`` says of every variant after every layer; NaN where a training has not ended.

    A reader of one shape of models is compiled once.
    """
    learn, fresh = (batch_of(config, case, tag, config.prompts) for tag in (LEARN, FRESH))
    program, like, rows = _reader(config.learned), compilation_key(case.spec), []
    for variant in case.variants.values():
        numbers = map_runs(program, variant.models.replace(spec=like), learn, fresh)
        rows.append(np.where(variant.finished[:, None, None], numbers, np.nan))
    return np.stack(rows)


@functools.cache
def _reader(learned: int):
    """(model, prompts to learn from, fresh ones) of one run -> [3, L+1]: excess risks of the best
    linear reader of the query's token and of the model's own read-out, and mean R² of r_j x_j."""

    def read_run(model, learn, fresh):
        tokens, scale, targets = _tokens(model, learn)
        fresh_tokens, fresh_scale, fresh_targets = _tokens(model, fresh)
        kept, fresh_kept = _shortest(tokens, learned), _shortest(fresh_tokens, learned)

        def read_layer(layer):
            states, fresh_states = layer  # [B, D]
            reader = probes.fit((scale[:, None] * states)[kept], learn.y_query[kept, None])
            answers = (
                fresh_scale * (fresh_states @ reader)[:, 0],
                -fresh_scale * fresh_states[:, -1],
            )
            risks = [
                ((clip_predictions(answer, fresh) - fresh.y_query) ** 2).mean()
                for answer in answers
            ]
            probe = probes.fit(states[kept], targets[kept])
            judged = fresh_states[fresh_kept], fresh_targets[fresh_kept]
            return jnp.stack([*risks, probes.r_squared(probe, *judged).mean()])

        return jax.lax.map(read_layer, (tokens.swapaxes(0, 1), fresh_tokens.swapaxes(0, 1))).T

    return jax.jit(read_run)


def _tokens(model: Model, batch: Prompt):
    """The query's token after each layer [B, L+1, D], what its units are to be multiplied by [B],
    and the r_j x_j that it may hold [B, d]."""

    def read_prompt(prompt: Prompt):
        own, scale = prompts.normalise(prompt)
        return model.forward(prompt).stream[:, -1], scale, probes.preprocess(own)[-1]

    return jax.lax.map(read_prompt, batch, batch_size=min(_TOGETHER, len(batch.y)))


def _shortest(tokens, count: int):  # [B, L+1, D] -> [count]
    """The prompts whose tokens are shortest after the last layer."""
    return jnp.argsort(jnp.linalg.norm(tokens[:, -1], axis=-1))[:count]
