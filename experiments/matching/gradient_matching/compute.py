"""Choose by every rule, let the stack learn from the chosen, and compare."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching import checkpoints as matching
from experiments.matching import subsets
from experiments.matching.gradient_matching import curriculum, learners, rules
from experiments.matching.gradient_matching.config import MATCHING, OTHERS, RULES, Config
from lsa_lab.models import constructions
from lsa_lab.store import parts
from lsa_lab.tasks import pools

ONCE = len(MATCHING) + len(OTHERS)  # rules with one subset of each size


def sample(config, keys, key_noise):  # -> Pool [R, m, ...], queries [R, Q, ...], validation
    task = pools.PoolTask(config.m, config.d, noise_std=config.noise_std)
    pool, both = matching.sample_pools(task, config.queries + config.validation, keys)
    queries = jax.tree.map(lambda leaf: leaf[:, : config.queries], both)
    validation = jax.tree.map(lambda leaf: leaf[:, config.queries :], both)
    noise = jax.random.normal(key_noise, validation.y.shape)
    return pool, queries, validation.replace(y=validation.y + config.noise_std * noise)


@partial(jax.jit, static_argnums=0)
def errors(config, pool, queries, validation, gradients, chosen):  # [S, m] of one run
    """Squared errors [S, Q] after every subset, the error on the validation, and the objective."""
    stack = constructions.gradient_descent(jnp.full(config.depth, config.step), config.d)
    weights = subsets.taught_weights(stack, pools.tokens(pool), chosen)
    return (
        (weights @ queries.x.T - queries.y[None]) ** 2,
        ((weights @ validation.x.T - validation.y[None]) ** 2).mean(1),
        subsets.gaps(gradients, chosen),
    )


def judge(config, *rows):  # -> a function: indices [R, S, n] -> [R, S, Q], [R, S], [R, S]
    """``errors`` of all runs, for any number of subsets of any size in one compiled computation:
    they are filled up with whole pools to one S."""
    of_run = partial(errors, config)

    @jax.jit
    def measure_runs(*rows):  # some at a time, for the memory
        return jax.lax.map(lambda row: of_run(*row), rows, batch_size=32)

    most = ONCE + config.tries + config.random_draws + config.queries

    def judge_subsets(indices):
        chosen = subsets.members(indices, config.m)
        rest = np.ones((config.runs, most - chosen.shape[1], config.m))
        measured = jax.device_get(measure_runs(*rows, np.concatenate([chosen, rest], axis=1)))
        return [values[:, : chosen.shape[1]] for values in measured]

    return judge_subsets


def rule_errors(config, squares, validated):  # -> [R, rule]
    """The try of the least validation error, the median of random subsets, and the mean over
    queries of what is chosen for each alone."""
    tries, random, each = np.cumsum([ONCE, config.tries, config.random_draws])
    best = validated[:, tries:random].argmin(1)[:, None]
    own = np.diagonal(squares[:, each:], axis1=1, axis2=2)

    errors = squares.mean(2)
    tried = np.take_along_axis(errors[:, tries:random], best, axis=1)
    median = np.median(errors[:, random:each], axis=1)[:, None]
    return np.concatenate([errors[:, :tries], tried, median, own.mean(1)[:, None]], axis=1)


def ablations(config, judged, linear, prefixes):
    """Errors and objectives with fewer checkpoints, other prefixes, fewer swaps, and no choice."""

    chosen = jax.lax.map(lambda row: rules.ablate(config, *row), (linear, prefixes), batch_size=16)
    squares, _, gap = judged(chosen)
    ends = np.cumsum([len(config.used), len(config.prefix_lengths)])
    by_used, by_length, _ = np.split(squares.mean(2), ends, axis=1)
    everyone = judged(np.tile(np.arange(config.m), (config.runs, 1, 1)))[0]
    return {
        "by_used": (("run", "used"), by_used),
        "by_length": (("run", "length"), by_length),
        "gap_by_swaps": (("run", "swaps"), gap[:, ends[1] :]),
        "pool_error": ("run", everyone.mean((1, 2))),
    }


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    root = jax.random.key(config.seed)
    keys = [jax.random.split(jax.random.fold_in(root, tag), config.runs) for tag in range(5)]
    pool, queries, validation = sample(config, keys[0], jax.random.fold_in(root, 5))
    linear, prefixes, features = learners.gradients(config, pool, keys[1], keys[2][0], progress)
    judged = judge(config, pool, queries, validation, features[:, 0])
    ranked = jax.vmap(partial(rules.rank_all, config))(pool, queries.x, keys[4])
    rows = pool, features, ranked
    by_size = [
        rule_errors(config, *judged(rules.choose(config, size, *rows, keys[3]))[:2])
        for size in config.sizes
    ]
    error = np.stack(by_size, axis=1)
    data = {"error": (("run", "n", "rule"), error)}
    places = {"n": config.sizes, "rule": RULES, "length": config.prefix_lengths}
    places |= {"used": config.used, "swaps": config.budgets}
    data |= ablations(config, judged, linear, prefixes)
    main = xr.Dataset(data, {axis: list(values) for axis, values in places.items()})
    return parts.join(main, curriculum=curriculum.measure(config, progress))
