"""Risks of descent on covariates by rules and by heads, in one Dataset."""

import jax
import numpy as np

from experiments.heads import rule_names
from experiments.heads.preprocess_then_optimise import descents
from experiments.heads.preprocess_then_optimise.config import RULES, TUNED, Config
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    counts = 2 ** np.arange(int(np.log2(config.steps)) + 1)
    return xr.Dataset(
        variables(config, counts, jax.random.fold_in(jax.random.key(config.seed), 0)),
        {
            "heads": list(config.heads),
            "rule": list(RULES),
            "t": counts,
            "used": ["raw", *map(str, config.heads)],
            "tuned": list(TUNED),
            "depth": np.arange(1, config.depth + 1),
            "reference": list(rule_names.RULES),
        },
    )


def variables(config: Config, counts, key) -> dict:
    """Variables of the Dataset."""
    s, d, sizes = config.sparsity, config.d, np.array(config.step_sizes)
    task = LinearTask(config.n, d, s, config.noise_var**0.5, weight_std=s**-0.5)
    key_runs, key_tuning = (jax.random.fold_in(key, tag) for tag in range(2))
    runs = list(descents.draw(task, key_runs, config.runs, config.prompts))
    tuning = descents.draw_flat(task, key_tuning, config.tuning_prompts, config.prompts)
    by_step, best = descents.chosen([descents.rule_risks(run, sizes, counts) for run in runs])
    parameters = descents.sums(d, config.heads), config.share, counts
    by_heads, of_heads = descents.chosen([descents.head_risks(run, *parameters) for run in runs])
    batch = descents.judged_on(runs)
    return {
        "by_step": (("run", "rule", "t"), by_step),
        "best": (("run", "rule"), best),
        "by_heads": (("run", "used", "t"), by_heads),
        "of_heads": (("run", "used"), of_heads),
        "fitted": (("run", "tuned", "depth"), with_fitted_steps(config, batch, tuning)),
        "of_rule": (("run", "reference"), descents.references(task, batch)),
    }


def with_fitted_steps(config: Config, batch: Prompt, tuning: Prompt) -> np.ndarray:
    """Risks after 1, 2, ... steps, each of a size of its own: [R, TUNED, depths]."""
    depths = range(1, config.depth + 1)
    thetas = descents.tune(tuning, np.ones(len(tuning.y)), TUNED, depths)
    kinds = descents.normalised(TUNED)
    errors = np.asarray(descents.tuned_errors(thetas, kinds, descents.flat(batch)))
    by_run = errors.reshape(*errors.shape[:2], *batch.y_query.shape)
    return np.moveaxis(by_run.mean(-1), 2, 0)
