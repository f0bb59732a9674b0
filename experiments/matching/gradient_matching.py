"""Do demonstrations that match the pool's gradients teach better than others (A3)?

Subsets of a pool are chosen by their mean gradient along the training of a small learner, w·x or a
prefix of one layer, and by other rules. A constructed stack of linear attention, which descends,
learns from each subset. At few demonstrations its steps are too long for some subsets and its
answers explode; no size is left out, and answers worse than 0 count as 0. A3's text does not define
its latent-concept ranker. Here it ranks demonstrations by the posterior density log P(w | x, y)
that a demonstration alone gives to the pool's concept, the trained w. Times are processor times of
the selection by a prefix of a transformer.
"""

import time
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from experiments.matching import measures
from experiments.models.named import NamedModels
from lsa_lab.lab import Claim, compute_each, geometric_mean, main, plotting
from lsa_lab.models import moments
from lsa_lab.selection import baselines, diversity, gradient_matching, prefix, scores
from lsa_lab.tasks import pools

# One subset of each size by each of these rules, then several: the best on validation or
# the median is taken, then one for each query.
MATCHED = ("matching", "prefix", "early checkpoints", "mismatched")
OTHERS = ("k-means", "determinantal", "stratified", "latent concept")
SEVERAL = ("best of 5", "random", "similarity")
RULES = (*MATCHED, *OTHERS, *SEVERAL)
BASELINES = (*OTHERS, "best of 5", "similarity")
TRIES = 5  # random subsets of "best of 5"
STRATA = 4  # of the labels' ranks
PARTS = ("tuning", "gradients", "search")


@dataclass(frozen=True)
class Config(NamedModels):
    d: int = 6  # covariates
    m: int = 256  # the pool
    noise_std: float = 0.7  # of its labels; w ~ N(0, I)
    sizes: tuple[int, ...] = (4, 8, 16, 32, 64, 128)  # demonstrations that are chosen
    depth: int = 12  # layers of the stack that learns: steps of descent
    step: float = 0.25  # size of such a step
    epochs: int = 10  # of the training of w and of the prefix
    batch: int = 64  # examples of a training step
    saves: int = 10  # checkpoints at which gradients are matched
    linear_rate: float = 0.1  # learning rate of w
    prefix_rate: float = 0.03  # learning rate of the prefix
    random_draws: int = 20  # random subsets
    validation: int = 32  # noisy examples that choose the best of five
    queries: int = 64  # of each pool
    runs: int = 48  # pools
    names: tuple[str, ...] = ("transformer",)  # the model whose prefix is timed
    timed_pool: int = 1024  # candidates
    timed_size: int = 128  # of them chosen
    timed: int = 16  # trainings of the model that are timed
    seed: int = 4301


TIERS = {
    "smoke": Config(d=2, m=64, sizes=(4, 8), depth=2, saves=3, random_draws=4, queries=4, runs=2,
                    small=True, timed_pool=64, timed_size=4, timed=2, seed=1),
    "quick": Config(sizes=(8, 32), random_draws=10, queries=32, runs=16, timed_pool=256,
                    timed_size=64, timed=4, seed=2),
    "full": Config(),
}  # fmt: skip


def build_recipe(config, learning_rate, m, every_step=False):
    sizes = dict(epochs=config.epochs, batch=config.batch, learning_rate=learning_rate)
    recipe = prefix.Recipe(saves=config.saves, **sizes)
    return prefix.Recipe(saves=recipe.steps(m), **sizes) if every_step else recipe


def draw(config, key):  # -> Pool [R, m], queries [R, Q] without noise, validation [R, V]
    task = pools.PoolTask(config.m, config.d, noise_std=config.noise_std)
    keys = jax.random.split(key, config.runs)
    pool, both = measures.draw_pools(task, config.queries + config.validation, keys)
    parts = slice(config.queries), slice(config.queries, None)
    queries, validation = (jax.tree.map(lambda x, s=s: x[:, s], both) for s in parts)
    noise = jax.random.normal(jax.random.fold_in(key, 1), validation.y.shape)
    return pool, queries, validation.replace(y=validation.y + config.noise_std * noise)


def collect_features(config, pool, key):  # -> [R, F, m, p], w at the end [R, d]
    """Return the gradients of w along its training, of a prefix, and of w's first checkpoints."""
    keys = jax.random.split(key, config.runs)
    recipe = build_recipe(config, config.linear_rate, config.m, every_step=True)
    path = measures.train_linear(pool, recipe, keys, "linear proxy")
    sparse = path[:, :: recipe.saves // config.saves]
    model = measures.build_one_layer(config.d, config.m, config.noise_std, config.runs)
    recipe = build_recipe(config, config.prefix_rate, config.m)
    tokens = measures.train_prefixes(model, pool, recipe, keys, "prefix")

    @jax.jit
    def collect(row):
        pool, sparse, early, model, tokens = row
        examples = partial(prefix.example_gradients, measures.squared_error, model, tokens)
        linear = [prefix.linear_gradients(weights, pool) for weights in (sparse, early)]
        return measures.pad_features(linear[0], examples((pool.x, pool.y)), linear[1])

    rows = pool, sparse, path[:, : config.saves], model, tokens
    return jax.lax.map(collect, rows), path[:, -1]


def score_by_concept(pool, weights, noise_var):  # Pool [m], [d] -> [m]
    """Return log P(w | x, y) less log P(w), w ~ N(0, I), of each demonstration alone.

    By Bayes' rule it is log N(y; w·x, σ²) - log N(y; 0, |x|² + σ²).
    """
    spread = (pool.x**2).sum(1) + noise_var
    missed = (pool.y - pool.x @ weights) ** 2 / noise_var
    return (pool.y**2 / spread - missed + jnp.log(spread / noise_var)) / 2


@partial(jax.jit, static_argnums=0)
def rank_all(config, pool, weights, x_queries, key):  # of one run -> [1 + tries + draws + Q, m]
    """Return the orders whose first n are chosen: by concept, at random, and by similarity."""
    rows, m = pools.tokens(pool), config.m
    concept = score_by_concept(pool, weights, config.noise_std**2)
    random = baselines.random_subsets(key, m, m, TRIES + config.random_draws)
    similar = jax.vmap(lambda x: scores.select(scores.similarity(rows, x), m))(x_queries)
    return jnp.concatenate([scores.select(concept, m)[None], random, similar])


@partial(jax.jit, static_argnums=(0, 1))
def choose(config, size, pool, features, ranked, keys):  # of R runs -> indices [R, S, n]
    match = partial(gradient_matching.match, size=size)
    strata = np.arange(config.m) * STRATA // config.m

    def choose_run(row):
        pool, features, ranked, key = row
        keys, rows = jax.random.split(key), pools.tokens(pool)
        matched = jax.vmap(lambda gradients: match(gradients).indices)(features)
        once = [
            match(features[0], reverse=True).indices,
            diversity.medoids(rows, size, keys[0]),
            diversity.determinantal(rows, size, ridge=1.0),
            jnp.argsort(pool.y)[baselines.stratified(keys[1], strata, size)],
        ]
        return jnp.concatenate([matched, jnp.stack(once), ranked[:, :size]])

    return jax.lax.map(choose_run, (pool, features, ranked, keys))


@partial(jax.jit, static_argnums=0)
def measure_errors(config, pool, queries, validation, chosen):  # of R runs -> [R, S, Q], [R, S]
    def measure(row):
        pool, queries, validation, chosen = row
        members = measures.mark_members(chosen, config.m)
        squares, validated = measures.squared_errors(config, pool, members, queries, validation)
        return squares, validated.mean(1)

    return jax.lax.map(measure, (pool, queries, validation, chosen), batch_size=16)


def compute_errors(config):  # -> Dataset (run, n, rule)
    keys = jax.random.split(jax.random.key(config.seed), 4)
    pool, queries, validation = draw(config, keys[0])
    features, weights = collect_features(config, pool, keys[1])
    key_runs = jax.random.split(keys[2], config.runs)
    ranked = jax.vmap(partial(rank_all, config))(pool, weights, queries.x, key_runs)

    ends = np.cumsum([len(MATCHED) + len(OTHERS), TRIES, config.random_draws])

    def measure(size):  # -> [R, rule]
        key_runs = jax.random.split(keys[3], config.runs)
        chosen = choose(config, size, pool, features, ranked, key_runs)
        measured = measure_errors(config, pool, queries, validation, chosen)
        squares, validated = jax.device_get(measured)
        once, tries, random, _ = np.split(squares.mean(2), ends, axis=1)
        best = validated[:, ends[0] : ends[1]].argmin(1)[:, None]
        by_query = np.diagonal(squares[:, ends[2] :], axis1=1, axis2=2).mean(1)
        tried = np.take_along_axis(tries, best, axis=1)[:, 0]
        return np.column_stack([once, tried, np.median(random, axis=1), by_query])

    by_size = compute_each("sizes", config.sizes, measure)
    data = {"error": (("run", "n", "rule"), np.stack(by_size, axis=1))}
    data["zero_error"] = ("run", np.asarray((queries.y**2).mean(1)))
    return xr.Dataset(data, {"n": list(config.sizes), "rule": list(RULES)})


def time_selection(config, runs):  # -> Dataset (training, part), seconds
    """Return the processor seconds of each part of a selection, for each training of the model."""
    m, d = config.timed_pool, runs.spec.task.d
    recipe = build_recipe(config, config.prefix_rate, m)
    optimizer = recipe.optimizer(m)
    task = pools.PoolTask(m, d, noise_std=runs.spec.task.noise_std, dtype=jnp.float32)

    @moments.compiled
    def tune(model, pool, key):  # -> [C, k, e]
        def step(carry, key):
            tokens, state = carry
            batch = prefix.sample_batch(key, (pool.x, pool.y), recipe.batch)
            loss = partial(prefix.mean_loss, measures.squared_error, model, examples=batch)
            updates, state = optimizer.update(jax.grad(loss)(tokens), state, tokens)
            return (optax.apply_updates(tokens, updates), state), tokens

        tokens = prefix.init(key, recipe.prefix_length, d + 1).astype(pool.x.dtype)
        keys = jax.random.split(key, recipe.steps(m))
        return jax.lax.scan(step, (tokens, optimizer.init(tokens)), keys)[1][:: recipe.chunk(m)]

    collect = moments.compiled(partial(prefix.example_gradients, measures.squared_error))

    def measure(i):
        model = jax.tree.map(lambda leaf: jnp.asarray(leaf[i]), runs.models())
        key = jax.random.fold_in(jax.random.key(config.seed + 1), i)
        pool = pools.sample(key, task)
        times = [time.process_time()]
        path = jax.block_until_ready(tune(model, pool, key))
        times.append(time.process_time())
        gradients = jax.block_until_ready(collect(model, path, (pool.x, pool.y)))
        times.append(time.process_time())
        jax.block_until_ready(gradient_matching.match(gradients, config.timed_size).indices)
        return np.diff([*times, time.process_time()])

    with jax.numpy_dtype_promotion("standard"):  # AdamW raises a float to an integer count
        measure(0)  # compiles
        rows = compute_each("times", range(config.timed), measure)
    return xr.Dataset({"seconds": (("training", "part"), np.stack(rows))}, {"part": list(PARTS)})


def compute(config, models):
    (runs,) = models.values()
    groups = {"errors": compute_errors(config), "times": time_selection(config, runs)}
    return xr.DataTree.from_dict(groups)


def error_ratios(result, rule="matching", baseline="random"):  # -> [R, N]
    """Return a rule's error over a baseline's; an error above that of the answer 0 is cut to it."""
    errors = result["errors"]
    error = np.minimum(errors["error"], errors["zero_error"]).transpose("run", "n", "rule")
    return (error.sel(rule=rule) / error.sel(rule=baseline)).values


def average_ratio(result, rule="matching", baseline="random"):  # -> [R]
    """Return the geometric mean over sizes of a rule's error over a baseline's."""
    return np.exp(np.log(error_ratios(result, rule, baseline)).mean(1))


def ratio_at(result, n, rule="matching", baseline="random"):  # -> [R], or None
    sizes = list(result["errors"]["n"].values)
    return error_ratios(result, rule, baseline)[:, sizes.index(n)] if n in sizes else None


def time_ratio(result):  # -> [R]
    seconds = result["times"]["seconds"]
    return (seconds.sum("part") / seconds.sel(part="tuning")).values


SIZES = TIERS["full"].sizes
OVER = "the error, at most that of the answer 0, over that of {}, "
RANDOM = OVER.format("the median random subset of as many")
ALL = "in the geometric mean over sizes"
PAIRED = "none: the ratio is paired, and 1 without an effect"
ratio, median = partial(Claim, statistic="ratio"), partial(Claim, statistic="median")
CLAIMS = (
    ratio("over_random", "A3, Abstract, open models", "Subsets whose mean gradients match those of "
          "the pool teach better than random subsets", RANDOM + ALL, average_ratio, at_most=1.0,
          null="mismatched"),
    median("by_size", "A3, Abstract, open models", "{n} demonstrations whose mean gradients match "
           "those of the pool teach better than {n} random ones", RANDOM + "at one size", ratio_at,
           at_most=1.0, over={"n": SIZES}, null="mismatched_by_size", simultaneous=True),
    ratio("mismatched", "A3, Figure 4", "Subsets whose gradients mismatch the pool's teach worse "
          "than random subsets", RANDOM + ALL, partial(average_ratio, rule="mismatched"),
          at_least=1.0, null=PAIRED),
    median("mismatched_by_size", "A3, Figure 4", "{n} mismatched demonstrations teach worse than "
           "{n} random ones", RANDOM + "at one size", partial(ratio_at, rule="mismatched"),
           at_least=1.0, over={"n": SIZES}, null=PAIRED, simultaneous=True),
    ratio("over_baseline", "A3, Tables, baselines", "Matched subsets teach better than those of "
          "another rule ({baseline})", OVER.format("that rule's subset of as many") + ALL,
          average_ratio, at_most=1.0, over={"baseline": BASELINES}, null="over_random"),
    median("over_determinantal", "derived here", "{n} matched demonstrations teach better than a "
           "determinantal choice of {n}, which sees no gradient",
           OVER.format("the determinantal subset") + "at one size",
           partial(ratio_at, baseline="determinantal"), at_most=1.0, over={"n": SIZES},
           null=PAIRED),
    ratio("early_checkpoints", "A3, Curriculum", "We read: gradients along the whole training "
          "choose better than as many from its first steps",
          OVER.format("as many checkpoints along the training") + ALL,
          partial(average_ratio, rule="early checkpoints", baseline="matching"), at_least=1.0,
          null=PAIRED),
    ratio("time", "A3, Run time", "Selection takes three to four times as long as the tuning of "
          "the prefix", "processor time of tuning, gradients, greedy choice and swaps over that of "
          "tuning", time_ratio, null="none: A3 reports 3 to 4 for language models"),
)  # fmt: skip


SHOWN = ("matching", "mismatched", "determinantal", "k-means", "latent concept")
COLOURS = (plotting.BLUE, plotting.PURPLE, plotting.GREEN, plotting.ORANGE, plotting.VERMILION)
LOOKS = plotting.looks(SHOWN, "ov^sD", COLOURS)


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 3.0, (1, 2))
    sizes = result["errors"]["n"].values
    left.axhline(1, color=plotting.GREY, lw=1.2, label="random")
    for i, rule in enumerate(SHOWN):
        places, ratios = sizes * 1.04 ** (i - 2), error_ratios(result, rule)
        plotting.mean_points(left, places, ratios, rule, "median", lw=0.8, **LOOKS[rule])
    plotting.log_axes(left, x=True, y=True, ticks=sizes)
    left.set(xlabel="demonstrations n", ylabel="error / that of random subsets")
    left.set_title("Error by size")
    left.legend(loc="upper center", bbox_to_anchor=(0.45, -0.18), ncols=3)
    ratios = {rule: average_ratio(result, rule) for rule in RULES if rule != "random"}
    order = sorted(ratios, key=lambda rule: np.log(ratios[rule]).mean())
    for i, rule in enumerate(order):
        look = LOOKS.get(rule, dict(color=plotting.BLACK, marker="o"))
        plotting.mean_points(right, [i], ratios[rule][:, None], None, "ratio", rows=True, **look)
    right.axvline(1, color=plotting.GREY, lw=1.2)
    plotting.log_axes(right, x=True, ticks=(0.2, 0.5, 1))
    right.set_yticks(range(len(order)), order)
    right.set(ylim=(len(order) - 0.5, -0.5), xlabel="error / that of random subsets")
    right.set_title("All rules")
    centre, times = geometric_mean(average_ratio(result)), geometric_mean(time_ratio(result))
    diverse = [np.median(ratio_at(result, n, baseline="determinantal")) for n in config.sizes]
    least = config.sizes[0]
    worse = (result["errors"]["error"] > result["errors"]["zero_error"]).isel(n=0).sum("run")
    exploded = worse.sel(rule=["matching", "mismatched", "random"]).values
    return figure, (
        f"Matched subsets leave {centre:.2g} of the error of random subsets in the geometric mean "
        f"over sizes, and {min(diverse):.2g} to {max(diverse):.2g} of that of determinantal "
        f"subsets by size. At n = {least} answers explode in {exploded[0]} of {config.runs} pools "
        f"after the matched subset, in {exploded[1]} after the mismatched one, and in "
        f"{exploded[2]} after the median random one. Selection takes {times:.2g} times as long as "
        "tuning. Points are medians (a) and geometric means over sizes and pools (b)."
    )


if __name__ == "__main__":
    main(__file__)
