"""Do fixed demonstrations help beside those chosen for each query (A3, hybrid selection)?

A3 says that demonstrations matched once for all queries do better still together with ones that are
retrieved for the query. Here n demonstrations are divided between both kinds: the fixed ones match
the gradients of the pool, and the others have the covariates most similar to the query. Pools have
clusters, with one task or with a task of their own each; or there is one task and the pool
misleads, by labels of the wrong sign or by heavy tails. Descent, ridge regression and trained
attention answer; answers are clipped at twice the largest label, since a model explodes on a prompt
unlike those of training. Errors are on queries without noise, geometric means over pools.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.matching import measures
from experiments.models.model import clip_predictions
from experiments.models.named import NamedModels
from experiments.models.runs import refuse_divergence
from lsa_lab.lab import Claim, compute_each, geometric_mean, main, plotting
from lsa_lab.models import moments
from lsa_lab.selection import baselines, gradient_matching, prefix, scores
from lsa_lab.tasks import pools

TRAINED = ("linear attention", "softmax attention")
LEARNERS = ("descent", "ridge", *TRAINED)
ONE, EACH = "one task", "a task each"
NOISY = ("flipped labels", "heavy covariates", "heavy noise")  # with one task
KINDS = (ONE, EACH, *NOISY)  # of pools
RULES = ("matching", "random")


@dataclass(frozen=True)
class Config(NamedModels):
    names: tuple[str, ...] = TRAINED  # trained models, of one task and one length n
    fixed: tuple[int, ...] = (0, 4, 8, 12, 16)  # of the n demonstrations, the same for all queries
    m: int = 256  # demonstrations of a pool
    clusters: int = 4  # of a pool
    separation: float = 1.5  # distance of each cluster's centre from 0; E|x|² = d as in training
    flips: float = 0.2  # probability of a label's wrong sign
    tail: float = 3.0  # degrees of freedom of Student's t where tails are heavy, variance as before
    depth: int = 16  # steps of descent
    step: float = 0.15  # size of a step
    learning_rate: float = 0.1  # of the linear proxy
    saves: int = 10  # checkpoints of its training, whose gradients are matched
    draws: int = 2  # random subsets, for comparison
    queries: int = 24  # of each pool
    pools: int = 20  # of each kind, for each training of a model
    runs: int = 16  # trainings
    seed: int = 1406


SMOKE = dict(fixed=(0, 2, 4), m=24, clusters=2, separation=1.0, depth=2, saves=2, queries=4)
TIERS = {
    "smoke": Config(small=True, **SMOKE, pools=2, runs=2, seed=1),
    "quick": Config(fixed=(0, 8, 16), m=128, queries=12, pools=6, runs=9, seed=2),
    "full": Config(),
}


def draw_pools(config, task, kind, keys):  # -> Pool [N, m], Pool [N, Q]
    """Draw pools of a kind and queries of all clusters; what misleads is in the pools alone."""
    count, variance = config.clusters, 1 - config.separation**2 / task.d
    covariances = variance * jnp.broadcast_to(jnp.eye(task.d), (count, task.d, task.d))
    law = dict(noise_std=task.noise_std, covariances=covariances)
    law["num_weights"] = "cluster" if kind == EACH else 1
    clean = pools.PoolTask(config.m, task.d, (1 / count,) * count, config.separation, **law)
    changes = {"flipped labels": {"flips": config.flips}, "heavy covariates": {"tail": config.tail}}
    noisy = clean.replace(**changes.get(kind, {}))

    def draw(key):
        key_pool, key_noise, key_queries = jax.random.split(key, 3)
        pool = pools.sample(key_pool, noisy)
        queries = pools.queries(key_queries, clean, pool.population, config.queries // count)
        if kind == "heavy noise":
            scale = task.noise_std * (1 - 2 / config.tail) ** 0.5
            noise = scale * jax.random.t(key_noise, config.tail, (config.m,))
            pool = pool.replace(y=pool.clean + noise)
        return pool.replace(population=None), queries.replace(population=None)

    return jax.jit(jax.vmap(draw))(keys)


@partial(jax.jit, static_argnums=(0, 1))
def choose_fixed(draws, size, gradients, keys):  # [N, m, p], [N] -> [N, S, size]
    def choose(row):
        gradients, key = row
        random = baselines.random_subsets(key, len(gradients), size, draws)
        return jnp.concatenate([gradient_matching.match(gradients, size).indices[None], random])

    return jax.lax.map(choose, (gradients, keys))


@partial(jax.jit, static_argnums=0)
@partial(jax.vmap, in_axes=(None, 0, 0, 0))
def write_prompts(n, pool, queries, chosen):  # [N, m], [N, Q], [N, S, size] -> Prompt [N, S, Q]
    """Return prompts of the fixed demonstrations, then those most similar to the query."""
    rows = pools.tokens(pool)

    def write(chosen, x, y):
        similar = scores.similarity(rows, x).at[chosen].set(-2.0)  # below any cosine: chosen once
        others = scores.select(similar, n)[: n - len(chosen)]
        return pools.prompt(pool, jnp.concatenate([chosen, others]), x, y)

    over_queries = jax.vmap(write, (None, 0, 0))
    return jax.vmap(over_queries, (0, None, None))(chosen, queries.x, queries.clean)


# Model [R], Prompt [R, B] -> [R, B]
answer_by_model = moments.compiled(partial(jax.lax.map, lambda row: row[0].predict(row[1])))


def find_errors(config, models, batch):  # Prompt [R P, S, Q] -> [learners, R, rule]
    _, subsets, queries = batch.y_query.shape
    flat = jax.tree.map(lambda x: x.reshape(config.runs, -1, *x.shape[3:]), batch)
    single = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), flat)
    trained = [answer_by_model((model, single)) for model in models.values()]
    noise_std = next(iter(models.values())).spec.task.noise_std
    steps = jnp.full(config.depth, config.step)
    answers = [*measures.answer_by_rules(steps, noise_std, flat), *trained]
    clipped = [clip_predictions(np.asarray(each, float), flat) for each in answers]
    squared = (np.stack(clipped) - np.asarray(flat.y_query)) ** 2
    means = squared.reshape(len(answers), config.runs, -1, subsets, queries).mean(-1)
    return average_logs(measures.average_draws(means, [1], -1, average_logs), -2)


def average_logs(values, axis, keepdims=False):
    return np.exp(np.log(values).mean(axis, keepdims=keepdims))


def measure(config, models, task, kind):  # -> [learners, R, fixed, rule]
    n, shape = max(task.lengths), (3, config.runs * config.pools)
    keys = jax.random.split(jax.random.key(config.seed), shape)  # the same for all kinds
    pool, queries = draw_pools(config, task, kind, keys[0])
    recipe = prefix.Recipe(learning_rate=config.learning_rate, saves=config.saves)
    path = measures.train_linear(pool, recipe, keys[1], f"linear proxy, {kind}")
    gradients = jax.jit(jax.vmap(prefix.linear_gradients))(path, pool)
    errors = []
    for size in config.fixed:
        chosen = jnp.zeros((len(pool.y), 1 + config.draws, 0), int)
        if size:
            chosen = choose_fixed(config.draws, size, gradients, keys[2])
        errors.append(find_errors(config, models, write_prompts(n, pool, queries, chosen)))
    return np.stack(errors, axis=-2)


def compute(config, models):
    refuse_divergence(models)
    task = next(iter(models.values())).spec.task
    if (config.fixed[0], config.fixed[-1]) != (0, max(task.lengths)):
        raise ValueError("numbers of fixed demonstrations go from 0 to the length of training")
    used = {name: runs.models(seeds=slice(config.runs)) for name, runs in models.items()}
    rows = compute_each("kinds of pools", KINDS, partial(measure, config, used, task))
    places = {"kind": list(KINDS), "learner": ["descent", "ridge", *models]}
    places |= {"fixed": list(config.fixed), "rule": list(RULES)}
    return xr.Dataset({"error": (("kind", "learner", "run", "fixed", "rule"), rows)}, places)


FAR = 2.0  # times the error of ridge regression: a model above it has not learnt the task
KEPT = 1.1  # a tenth of the error


def find_logs(result, learner, kind, rule):  # -> [R, fixed]
    """Return logarithms of errors."""
    errors = result["error"].sel(learner=learner, kind=kind, rule=rule)
    return np.log(errors.transpose("run", "fixed").values)


def has_converged(result, learner):
    """Return whether a trained model is near ridge regression after random demonstrations."""
    logs = [find_logs(result, each, ONE, "random")[:, -1] for each in (learner, "ridge")]
    return learner not in TRAINED or np.exp((logs[0] - logs[1]).mean()) < FAR


def find_best(logs):  # [R, F] -> [R]
    """Return where the mean over the other runs is the least."""
    return (logs.sum(0) - logs).argmin(1)


def compare_kinds(result, learner, kind=EACH):  # -> [R], or None
    """Return the error with both kinds of demonstrations over that with the better kind alone.

    The number of fixed ones, and the better kind, are those that are best for the other runs.
    """
    if not has_converged(result, learner):
        return None
    logs = find_logs(result, learner, kind, "matching")
    rows, between, alone = np.arange(len(logs)), logs[:, 1:-1], logs[:, [0, -1]]
    return np.exp(between[rows, find_best(between)] - alone[rows, find_best(alone)])


def compare_fixed(result, learner):  # -> [R], or None
    """Return the error with matched fixed demonstrations over that with random fixed ones.

    Their number, fewer than all, is the best for the other runs with matched ones.
    """
    if not has_converged(result, learner):
        return None
    matched, random = (find_logs(result, learner, EACH, rule)[:, 1:-1] for rule in RULES)
    place = np.arange(len(matched)), find_best(matched)
    return np.exp(matched[place] - random[place])


def gain(result, learner, kind=ONE):  # -> [R], or None
    """Return the error of matched over that of random demonstrations, all of them fixed."""
    if not has_converged(result, learner):
        return None
    matched, random = (find_logs(result, learner, kind, rule)[:, -1] for rule in RULES)
    return np.exp(matched - random)


def gain_kept(result, learner, kind):  # -> [R], or None
    """Return the gain in a pool that misleads over that in a clean one."""
    clean = gain(result, learner)
    return None if clean is None else gain(result, learner, kind) / clean


PAIRED = "none: the ratio is paired, and 1 without an effect"
below = partial(Claim, statistic="ratio", at_most=1.0, null=PAIRED, over={"learner": LEARNERS})
CLAIMS = (
    below("both", "A3, Hybrid selection", "Where clusters have tasks of their own, matched "
          "demonstrations together with those chosen for the query teach {learner} better than "
          "either kind alone", "the error with both kinds over that with the better kind alone, "
          "with as many demonstrations; numbers are chosen by the other runs", compare_kinds,
          null="matched_part"),
    below("matched_part", "A3, Hybrid selection", "Beside demonstrations chosen for the query, "
          "matched fixed ones teach {learner} better than random fixed ones", "the error with "
          "matched over that with random fixed demonstrations, at the number that is best for the "
          "other runs", compare_fixed),
    below("gain", "A3, Abstract, open models", "Matched demonstrations of a clean pool with "
          "one task teach {learner} better than random ones", "the error of matched over that of "
          "random demonstrations", gain),
    below("gain_kept", "derived here", "Matching gains as much for {learner} in pools that mislead "
          "as in clean ones ({kind})", "the error of matched over that of random demonstrations, "
          "over the same in clean pools", gain_kept, at_most=KEPT,
          over={"learner": LEARNERS, "kind": NOISY}),
)  # fmt: skip

COLOURS = (plotting.GREEN, plotting.BLACK, plotting.BLUE, plotting.VERMILION)
LOOKS = plotting.looks(LEARNERS, "^Dos", COLOURS)


def plot(result, config):  # -> Figure, caption
    figure, axes = plotting.figure(6.75, 3.0, (1, 2))
    learners = [name for name in LEARNERS if has_converged(result, name)]
    for kind, style in ((ONE, "--"), (EACH, "-")):
        for i, learner in enumerate(learners):
            logs = [find_logs(result, learner, kind, rule) for rule in RULES]
            look = dict(ls=style, lw=0.8, capsize=1.5) | ({"mfc": "white"} if kind == ONE else {})
            places, ratios = np.array(config.fixed) + 0.2 * (i - 1.5), logs[0] - logs[1][:, -1:]
            look |= LOOKS[learner]
            plotting.mean_points(axes[0], places, np.exp(ratios), None, "ratio", **look)
        axes[0].plot([], [], style, color="grey", label=kind)
    axes[0].set_xticks(config.fixed)
    axes[0].set(xlabel=f"fixed, of {config.fixed[-1]} demonstrations", title="Fixed and per query")
    axes[0].set_ylabel("error / all random")
    kinds = (ONE, *NOISY)
    runs = {x: np.stack([gain(result, x, kind) for kind in kinds], axis=1) for x in learners}
    plotting.series(axes[1], range(4), runs, LOOKS, "ratio", 0.15, ls="none", capsize=1.5)
    axes[1].set_xticks(range(4), ["clean", *(kind.replace(" ", "\n") for kind in NOISY)])
    axes[1].set(ylabel="error of matched / random", title="Pools that mislead")
    for ax in axes:
        ax.axhline(1, color="grey", lw=0.8, ls=":")
        plotting.log_axes(ax, y=True, y_ticks=(0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5))
    axes[0].legend()
    figure.legend(*axes[1].get_legend_handles_labels(), ncols=4, loc="outside lower center")
    each, one = (
        [geometric_mean(compare_kinds(result, name, kind)) for name in learners]
        for kind in (EACH, ONE)
    )
    left = [100 * geometric_mean(gain(result, name)) for name in learners]
    return figure, (
        f"Where each cluster has its own task, prompts with both kinds of demonstrations leave "
        f"{min(each):.2f} to {max(each):.2f} times the error of the better kind alone; where all "
        f"have one task, {min(one):.2f} to {max(one):.2f} times. In clean pools with one task "
        f"matched demonstrations leave {min(left):.0f} to {max(left):.0f} % of the error of random "
        f"ones. Points are geometric means of {config.runs} runs."
    )


if __name__ == "__main__":
    main(__file__)
