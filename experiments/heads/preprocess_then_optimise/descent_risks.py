"""Mean risks, for every run, of known rules on raw and preprocessed covariates."""

from functools import partial

import jax
import numpy as np

from experiments.heads import sparse_rules
from experiments.heads.preprocess_then_optimise import preprocessing
from experiments.heads.preprocess_then_optimise.config import TUNED, Config
from experiments.heads.preprocess_then_optimise.preprocessing import descents, judged
from experiments.heads.sparse_judging import rule_errors
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample


def laws(config: Config) -> tuple[LinearTask, LinearTask]:
    """Of the first task and of the wide one."""
    s, wide_s = config.sparsity, config.wide_sparsity
    law = LinearTask(config.n, config.d, s, config.noise_var**0.5, weight_std=s**-0.5)
    wide = LinearTask(config.wide_n, config.wide_d, wide_s, config.wide_noise_var**0.5)
    return law, wide.replace(weight_std=wide_s**-0.5, signal="flat")


@partial(jax.jit, static_argnums=2)
def _sample(key, law: LinearTask, count: int) -> Prompt:  # [count]
    # A few at a time: long prompts then stay in the caches.
    return jax.lax.map(partial(sample, task=law), jax.random.split(key, count), batch_size=8)


def draw(law: LinearTask, key, runs: int, size: int):  # yields Prompt [2 size], runs of them
    """Prompts of each run, a half to choose by and a half to be judged on."""
    for one in jax.random.split(key, runs):
        yield _sample(one, law, 2 * size)


def draw_flat(law: LinearTask, key, count: int, size: int) -> Prompt:  # [count]
    """Drawn as ``draw`` does, which is then compiled once."""
    parts = list(draw(law, key, -(-count // (2 * size)), size))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *parts)


def second_half(batch: Prompt) -> Prompt:  # [2 B] -> [B]
    return jax.tree.map(lambda leaf: leaf[len(leaf) // 2 :], batch)


def stacked(batches: list[Prompt]) -> Prompt:  # R of [B] -> [R, B]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *batches)


def flat(batch: Prompt) -> Prompt:  # [R, B] -> [R B]
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), batch)


def with_fitted_steps(config: Config, batch: Prompt, tuning: Prompt) -> np.ndarray:
    """After 1, 2, ... steps, each of a size of its own: [R, TUNED, depths]."""
    depths = range(1, config.depth + 1)
    thetas = preprocessing.tune(tuning, np.ones(len(tuning.y)), TUNED, depths)
    normalise = preprocessing.kinds(TUNED)
    errors = np.asarray(preprocessing.tuned_errors(thetas, normalise, flat(batch)))
    by_run = errors.reshape(*errors.shape[:2], *batch.y_query.shape)
    return np.moveaxis(by_run.mean(-1), 2, 0)


def references(law: LinearTask, batch: Prompt) -> np.ndarray:  # [R, B] -> [R, rules]
    """Of the rules that know the law."""
    errors = [np.asarray(rule_errors(rule, law, flat(batch))) for rule in sparse_rules.RULES]
    return np.stack([one.reshape(batch.y_query.shape).mean(1) for one in errors], axis=1)


def of_first_task(config: Config, law: LinearTask, key) -> dict:
    """Entries of the Dataset."""
    runs = list(draw(law, jax.random.fold_in(key, 0), config.runs, config.prompts))
    size = (config.tuning_prompts, config.prompts)
    tuning = draw_flat(law, jax.random.fold_in(key, 1), *size)
    batch = stacked(list(map(second_half, runs)))
    sizes, counts = np.array(config.step_sizes), preprocessing.steps(config.steps)
    shared = preprocessing.groups(config.d, config.heads)
    head_descents = preprocessing.head_descents
    by_step, best = judged([descents(run, sizes, counts) for run in runs])
    by_heads, of_heads = judged([head_descents(run, shared, config.share, counts) for run in runs])
    few = jax.tree.map(lambda leaf: leaf[: config.exact_prompts], runs[0])
    deviation = preprocessing.deviations(few, config.heads, config.depth)
    return {
        "by_step": (("run", "rule", "t"), by_step),
        "best": (("run", "rule"), best),
        "by_heads": (("run", "used", "t"), by_heads),
        "of_heads": (("run", "used"), of_heads),
        "fitted": (("run", "tuned", "depth"), with_fitted_steps(config, batch, tuning)),
        "of_rule": (("run", "reference"), references(law, batch)),
        "deviation": (("heads", "heads_missing"), deviation),
    }


def of_wide_task(config: Config, law: LinearTask, key) -> dict:
    """Entries of the Dataset; of many demonstrations only one run is kept at a time."""
    sizes, counts = np.array(config.step_sizes), preprocessing.steps(config.steps)
    runs = draw(law, key, config.wide_runs, config.wide_prompts)
    by_step, best = judged([np.asarray(descents(run, sizes, counts)) for run in runs])
    return {
        "wide_by_step": (("wide_run", "rule", "t"), by_step),
        "wide_best": (("wide_run", "rule"), best),
    }
