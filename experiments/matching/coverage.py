"""Does gradient matching keep the shares of classes, and a pool's minority (A3, Table 6)?

A3 reports that matched subsets have nearly the label shares of a test set, and asks whether
matching amplifies bias. Pools have clusters of unequal shares, the last one the smallest: a cluster
is a class, or it has a regression task of its own, or all have one task. Gradients are those of
linear learners along their training on the pool, without an intercept and with one, as the prefix
of A3 has. With an intercept the shares follow from a theorem. Descent learns from the subsets. The
baselines are random subsets, and random ones with the shares of the pool (stratified).
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.matching import measures
from lsa_lab.lab import Claim, compute_each, geometric_mean, main, plotting, stack_rows
from lsa_lab.selection import baselines, gradient_matching
from lsa_lab.selection.prefix import Recipe
from lsa_lab.tasks import pools

ONE_TASK, TASKS = "one task", "a task each"
CLASSES = ("3 classes", "5 classes")
KINDS = (ONE_TASK, TASKS, *CLASSES)
MATCHED = ("no intercept", "intercept")
RULES = (*MATCHED, "random", "stratified")


@dataclass(frozen=True)
class Config:
    d: int = 10  # covariates
    m: int = 1024  # demonstrations of a pool
    n: int = 128  # demonstrations that are chosen: A3, Table 6
    decline: float = 0.5  # of the clusters' shares, in a line from 1 + this to 1 - this times 1/K
    separation: float = 2.0  # distance of each cluster's centre from 0
    noise_std: float = 0.5  # of the labels of tasks; classes have none
    learning_rate: float = 0.1  # of the linear learners
    saves: int = 10  # checkpoints of their training, whose gradients are matched
    depth: int = 32  # steps of descent on the chosen demonstrations
    step: float = 0.15  # size of a step
    draws: int = 20  # random subsets, and as many stratified ones
    queries: int = 200  # of each cluster
    test_labels: int = 1000  # of the test set to whose shares subsets are compared
    runs: int = 32  # pools of each kind
    seed: int = 1405


SMOKE = dict(d=2, m=40, n=12, saves=2, depth=4, draws=3, queries=8, test_labels=50)
TIERS = {
    "smoke": Config(**SMOKE, runs=2, seed=1),
    "quick": Config(m=512, n=64, draws=8, runs=9, seed=2),
    "full": Config(),
}


def find_shares(config, kind):  # of the clusters [K], which decline in a line
    count = int(kind[0]) if kind in CLASSES else 2
    return (1 + config.decline * np.linspace(1, -1, count)) / count


def draw_pools(config, kind, keys):  # -> Pool [R, m], Pool [R, K queries]
    regression = dict(noise_std=config.noise_std, num_weights=1 if kind == ONE_TASK else "cluster")
    law = dict(labels="cluster") if kind in CLASSES else regression
    shares = tuple(find_shares(config, kind).tolist())
    task = pools.PoolTask(config.m, config.d, shares, config.separation, **law)
    return measures.draw_pools(task, config.queries, keys)


def find_targets(config, kind, pool):  # -> [..., m, outputs]
    """Return what the outputs of a linear learner should be: indicators of classes, or labels."""
    if kind in CLASSES:
        return jax.nn.one_hot(pool.cluster, len(find_shares(config, kind)), dtype=pool.x.dtype)
    return pool.y[..., None]


def add_constant(x, value):  # [..., d] -> [..., d+1]
    return jnp.concatenate([x, jnp.full((*x.shape[:-1], 1), value, x.dtype)], axis=-1)


def learner_loss(kind, weights, x, targets):  # [O, d+1], [B, d+1], [B, O] -> []
    outputs = x @ weights.T
    if kind in CLASSES:
        return -(targets * jax.nn.log_softmax(outputs)).sum(1).mean()
    return ((outputs - targets) ** 2).sum(1).mean() / 2


def find_gradients(kind, path, x, targets):  # [C, O, d+1], [m, d+1], [m, O] -> [m, p]
    """Return (f(Wx) - t) xᵀ of each example at each checkpoint, f the softmax or the identity."""
    outputs = jnp.einsum("coe,me->mco", path, x)
    means = jax.nn.softmax(outputs) if kind in CLASSES else outputs
    missed = means - targets[:, None]
    return (missed[..., None] * x[:, None, None]).reshape(len(x), -1)


def train_learners(config, kind, pool, keys):  # -> [2, R, C, O, d+1], x [2, R, m, d+1]
    targets = find_targets(config, kind, pool)
    x = jnp.concatenate([add_constant(pool.x, value) for value in (0.0, 1.0)])
    recipe = Recipe(learning_rate=config.learning_rate, saves=config.saves)

    def loss(weights, batch, _):
        return learner_loss(kind, weights, *batch)

    starts = jnp.zeros((len(x), targets.shape[-1], x.shape[-1]), x.dtype)
    rows = x, jnp.concatenate([targets, targets])
    both = jnp.concatenate([keys, keys])
    path = measures.train_path(loss, recipe, starts, both, rows, f"linear learners, {kind}")
    return [array.reshape(2, len(keys), *array.shape[1:]) for array in (path, x)]


@partial(jax.jit, static_argnums=(0, 1))
def choose(config, kind, path, x, pool, keys):  # leaves [2, R, ...] x 2, [R, ...] -> [R, S, n]
    counts = pools.counts(tuple(find_shares(config, kind)), config.m)
    labels = np.repeat(np.arange(len(counts)), counts)

    def choose_run(row):
        path, x, pool, key = row
        targets = find_targets(config, kind, pool)
        rows = jax.vmap(partial(find_gradients, kind, targets=targets))(path, x)
        matched = jax.lax.map(lambda g: gradient_matching.match(g, config.n).indices, rows)
        key_random, key_strata = jax.random.split(key)
        random = baselines.random_subsets(key_random, config.m, config.n, config.draws)
        in_order = jnp.argsort(pool.cluster, stable=True)
        keys = jax.random.split(key_strata, config.draws)
        strata = jax.vmap(lambda key: in_order[baselines.stratified(key, labels, config.n)])(keys)
        return jnp.concatenate([matched, random, strata])

    return jax.lax.map(choose_run, (path.swapaxes(0, 1), x.swapaxes(0, 1), pool, keys))


def descend(config, kind, x, targets):  # [n, d], [n, O] -> [O, d+1]
    x = add_constant(x, float(kind in CLASSES))

    def step(weights, _):
        return weights - config.step * (x @ weights.T - targets).T @ x / len(x), None

    start = jnp.zeros((targets.shape[1], x.shape[1]), x.dtype)
    return jax.lax.scan(step, start, length=config.depth)[0]


@partial(jax.jit, static_argnums=(0, 1))
def measure_errors(config, kind, pool, queries, chosen):  # leaves [R, ...] -> [R, S, K]
    def measure(row):
        pool, queries, indices = row
        targets = find_targets(config, kind, pool)

        def errors(indices):
            weights = descend(config, kind, pool.x[indices], targets[indices])
            outputs = add_constant(queries.x, 1.0) @ weights.T
            wrong = outputs.argmax(1) != queries.cluster
            squares = (outputs[:, 0] - queries.y) ** 2
            errors = wrong.astype(squares.dtype) if kind in CLASSES else squares
            return errors.reshape(-1, config.queries).mean(1)

        return jax.lax.map(errors, indices)

    return jax.lax.map(measure, (pool, queries, chosen))


def find_divergence(counts, shares):  # [..., K], [..., K] -> [...]
    """Return KL(subset | test set) of the shares of clusters."""
    subset = counts / counts.sum(-1, keepdims=True)
    return (subset * np.log(np.where(subset > 0, subset, 1) / shares)).sum(-1)


def measure(config, kind):  # -> {name: [R, rule]}
    index = KINDS.index(kind)
    root = jax.random.fold_in(jax.random.key(config.seed), index)
    keys = [jax.random.split(jax.random.fold_in(root, tag), config.runs) for tag in range(3)]
    pool, queries = draw_pools(config, kind, keys[0])
    chosen = choose(config, kind, *train_learners(config, kind, pool, keys[1]), pool, keys[2])
    shares = find_shares(config, kind)
    clusters = np.take_along_axis(np.asarray(pool.cluster)[:, None], np.asarray(chosen), 2)
    counts = (clusters[..., None] == np.arange(len(shares))).sum(2)
    rng = np.random.default_rng([config.seed, index])
    test = rng.multinomial(config.test_labels, shares, config.runs) / config.test_labels
    errors = np.asarray(measure_errors(config, kind, pool, queries, chosen))
    values = {
        "divergence": find_divergence(counts, test[:, None]),
        "error": errors @ shares,
        "majority": errors[..., 0],
        "minority": errors[..., -1],
    }
    starts = [len(MATCHED), len(MATCHED) + config.draws]
    return {name: measures.average_draws(value, starts) for name, value in values.items()}


def compute(config, models):
    rows = compute_each("kinds of pools", KINDS, partial(measure, config))
    data = stack_rows(rows, dict.fromkeys(rows[0], ("kind", "run", "rule")))
    return xr.Dataset(data, {"kind": list(KINDS), "rule": list(RULES)})


def select(result, name, kind, *rules):  # -> [R] for each rule
    return [result[name].sel(kind=kind, rule=rule).values for rule in rules]


def subtract(result, kind, name, rule="intercept", baseline="random"):  # -> [R]
    """Return what ``name`` is for a rule less what it is for a baseline on the same pools."""
    values, others = select(result, name, kind, rule, baseline)
    return values - others


def divide(result, kind, name, baseline="random"):  # -> [R]
    """Return the error of matched subsets, with an intercept, over that of a baseline."""
    values, others = select(result, name, kind, "intercept", baseline)
    return values / others


def compare_groups(result, kind):  # -> [R]
    """Return the relative error of matching in the minority over that in the majority."""
    return divide(result, kind, "minority") / divide(result, kind, "majority")


N = TIERS["full"].n
BASELINES = {"random": "random ones", "stratified": "random ones with the shares of the pool"}
KL = "the KL divergence of the subset's shares from those of a test set"
WRONG = "the share of wrong answers after descent on the subset"
ERROR = "the squared error on the minority after descent on the subset"
REGRESSION = {"kind": (ONE_TASK, TASKS)}
NO_DIFFERENCE = "none: the difference is paired, and 0 without an effect"
NO_RATIO = "none: the ratio is paired, and 1 without an effect"


def class_claim(id, source, statement, measured, null, baseline="random", **how):
    """Return a claim on classes: matched subsets less the mean of a baseline, at most 0."""
    statement = f"{statement} better than {BASELINES[baseline]}"
    quantity = f"{measured}, matched less the mean of {BASELINES[baseline]}"
    sample = partial(subtract, baseline=baseline, **how)
    where = {"kind": CLASSES}
    return Claim(id, source, statement, quantity, sample, at_most=0.0, over=where, null=null)


def minority_claim(id, baseline, null):
    """Return a claim on the minority: a tenth of the error is what counts as worse."""
    statement = f"Matched demonstrations teach the minority no worse than {BASELINES[baseline]}"
    quantity = f"{ERROR}, matched over the mean of {BASELINES[baseline]}"
    return Claim(id, "A3, Open question 3", f"{statement} ({{kind}})", quantity,
                 partial(divide, name="minority", baseline=baseline), at_most=1.1,
                 statistic="ratio", over=REGRESSION, null=null)  # fmt: skip


KEEPS = f"{N} demonstrations matched by gradients {{}} an intercept keep the shares of {{{{kind}}}}"
TEACHES = f"{N} matched demonstrations teach {{kind}}"
CLAIMS = (
    class_claim("with_intercept", "A3, Table 6", KEEPS.format("with"), KL,
                "without_intercept", name="divergence"),
    class_claim("without_intercept", "A3, Table 6", KEEPS.format("without"), KL,
                NO_DIFFERENCE, name="divergence", rule="no intercept"),
    class_claim("class_error", "A3, Abstract, open models", TEACHES, WRONG,
                "class_error_stratified", name="error"),
    class_claim("class_error_stratified", "A3, Abstract, open models", TEACHES, WRONG,
                NO_DIFFERENCE, "stratified", name="error"),
    minority_claim("minority", "random", "minority_stratified"),
    minority_claim("minority_stratified", "stratified", NO_RATIO),
    Claim("favours", "A3, Open question 3", "What matching leaves of the minority's error, and of "
          "the majority's ({kind})", "the error of matched over that of random subsets, on the "
          "minority over the same on the majority", compare_groups, statistic="ratio",
          over=REGRESSION, null=NO_RATIO),
)  # fmt: skip

COLOURS = (plotting.VERMILION, plotting.BLUE, plotting.GREY, plotting.GREEN)
LOOKS = plotting.looks(RULES, "so^D", COLOURS)


def plot(result, config):  # -> Figure, caption
    figure, axes = plotting.figure(6.75, 3.0, (1, 2), width_ratios=(3, 2))
    values = result["divergence"].sel(kind=list(CLASSES))
    values = {rule: values.sel(rule=rule) for rule in RULES}
    plotting.series(axes[0], range(len(CLASSES)), values, LOOKS, shift=0.17, rows=True, capsize=2)
    axes[0].set_yticks(range(len(CLASSES)), CLASSES)
    axes[0].set(xlabel="KL divergence from a test set", title="Shares of classes", ylim=(1.5, -0.5))
    axes[0].set_xlim(left=0)
    axes[0].legend()
    kinds = (ONE_TASK, TASKS)
    for i, (baseline, face) in enumerate((("random", None), ("stratified", "white"))):
        for j, group in enumerate(("majority", "minority")):
            color, marker = LOOKS[baseline].values()
            values = np.stack([divide(result, kind, group, baseline) for kind in kinds], axis=1)
            places, label = np.arange(2) + 0.25 * j + 0.08 * i - 0.16, f"{group}, over {baseline}"
            look = dict(color=color, marker=marker if j else "v", mfc=face or color, ls="none")
            plotting.mean_points(axes[1], places, values, label, "ratio", capsize=2, **look)
    axes[1].axhline(1, color="grey", lw=0.8)
    plotting.log_axes(axes[1], y=True, y_ticks=(0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2))
    axes[1].set_xticks(range(2), kinds)
    axes[1].set(
        xlim=(-0.5, 1.5), ylabel="error of matched / baseline", title="Errors in regression"
    )
    figure.legend(*axes[1].get_legend_handles_labels(), ncols=4, loc="outside lower center")
    divergences = select(result, "divergence", CLASSES[-1], "intercept", "no intercept", "random")
    means = [values.mean() for values in divergences]
    ratios = [divide(result, TASKS, group) for group in ("minority", "majority")]
    left = [100 * geometric_mean(ratio) for ratio in ratios]
    return figure, (
        f"In pools of {CLASSES[-1]} matched subsets have a KL divergence of {means[0]:.2g} from "
        f"the test set's shares with an intercept and {means[1]:.2g} without, random ones "
        f"{means[2]:.2g}. Where each cluster has its own task matched subsets leave {left[0]:.0f} "
        f"% of the error of random ones on the minority and {left[1]:.0f} % on the majority. "
        f"Points are means of {result.sizes['run']} pools, geometric means in b."
    )


if __name__ == "__main__":
    main(__file__)
