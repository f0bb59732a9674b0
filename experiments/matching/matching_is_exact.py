"""To which models does a set that matches a pool's mean gradients equal the pool (A3, hypothesis)?

A set that matches the mean gradients of w·x at d + 1 checkpoints of its training has the pool's
moments XᵀX/m and Xᵀy/m, so that descent of any depth answers from the set as from the pool
(proved). Two kinds of sets are read here by descent and by trained models: twins of the pool, which
match exactly and are otherwise unlike it, and subsets that a search chooses, which match nearly. A
gap is the root mean square of ŷ(set) - ŷ(pool) over queries, over that of ŷ(pool).
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.matching import measures
from experiments.models.named import NamedModels
from lsa_lab.lab import Claim, compute_each, geometric_mean, main, plotting
from lsa_lab.models import constructions, moments
from lsa_lab.selection import baselines, gradient_matching, prefix
from lsa_lab.tasks import pools

TRAINED = ("linear attention", "softmax attention", "transformer")
GRADIENTS = ("plain", "whitened", "scaled")
LEAST = 1e-17  # a gap below this is rounding


@dataclass(frozen=True)
class Config(NamedModels):
    names: tuple[str, ...] = TRAINED  # trained models
    m: int = 128  # the pool
    n: int = 32  # demonstrations of a twin and of a subset
    spectrum: tuple[float, float] = (0.4, 2.0)  # ends of the variances of the covariates
    batch: int = 16  # examples in a step of the training of w
    rate: float = 0.1  # its learning rate
    depths: tuple[int, ...] = (1, 2, 4, 8)  # layers of constructed descent
    step: float = 0.2  # size of a step of constructed descent
    queries: int = 32  # of each pool
    draws: int = 10  # random subsets of each pool
    pools: int = 4  # for each training of the models
    seed: int = 4303


TIERS = {
    "smoke": Config(small=True, m=16, n=8, depths=(1, 2), queries=4, draws=3, pools=1, seed=1),
    "quick": Config(TRAINED[:2], queries=16, draws=5, pools=1, seed=2),
    "full": Config(),
}


def build_twins(n, pool, others, path, key):  # [m, e], [n, e], [C, d] -> [C+1, n, e]
    """Return sets with the pool's mean gradients at the first 0, 1, ..., C checkpoints.

    A set is √n Q Rᵀ with the moment R Rᵀ and orthonormal Q [n, e], otherwise unlike the pool.
    """
    moment, free = (rows.T @ rows / len(rows) for rows in (pool, others))
    turn = jnp.linalg.qr(jax.random.normal(key, (n, pool.shape[1]), pool.dtype))[0]
    noise = free[-1, -1] - free[-1, :-1] @ jnp.linalg.solve(free[:-1, :-1], free[:-1, -1])
    corners = [free]
    for count in range(1, len(path) + 1):
        h, b = match_moments(moment, free, path[:count])
        least = b @ jnp.linalg.solve(h, b)
        square = jnp.maximum(moment[-1, -1], least + noise / 10)
        corners.append(jnp.block([[h, b[:, None]], [b[None], square[None, None]]]))
    roots = jnp.linalg.cholesky(jnp.stack(corners))
    return jnp.einsum("ni,cji->cnj", turn, roots) * n**0.5


def match_moments(moment, free, path):  # [e, e] twice, [c, d] -> [d, d], [d]
    """Return moments H' of x and b' of yx with the pool's mean gradients at c checkpoints w_c.

    These fix H'v = Hv for all v = w_c - w_1, and H'w_1 - b' = Hw_1 - b (docs/theory, "Checkpoints
    determine moments"): H' is HV (VᵀHV)⁻¹ VᵀH + N with NV = 0, and N is that of the ``free`` set.
    """
    h, b, new = moment[:-1, :-1], moment[:-1, -1], free[:-1, :-1]
    if len(path) > 1:
        v = jnp.linalg.qr((path[1:] - path[:1]).T)[0]
        new = project(h, v) + new - project(new, v)
    return new, b + (new - h) @ path[0]


def project(h, v):
    """Return HV (VᵀHV)⁻¹ VᵀH."""
    return h @ v @ jnp.linalg.solve(v.T @ h @ v, v.T @ h)


@partial(jax.jit, static_argnums=0)
def build_sets(config, pool, path, keys):  # Pool [R, m + n] -> [R, S, n, e], [R, m, e]
    match = partial(gradient_matching.match, size=config.n)

    def build(row):
        both, path, key = row
        d, rows = both.x.shape[1], pools.tokens(both)
        keys = jax.random.split(key)
        pool, others = rows[: config.m], rows[config.m :]
        twins = build_twins(config.n, pool, others, path, keys[0])
        few = jax.tree.map(lambda leaf: leaf[: config.m], both)
        gradients = prefix.linear_gradients(path[: d + 1], few)
        spread = gradients.std(0)
        scaled = gradients / jnp.where(spread > 0, spread, 1)[None]
        matched = match(gradients), match(gradients, whiten=True), match(scaled)  # as GRADIENTS
        random = baselines.random_subsets(keys[1], config.m, config.n, config.draws)
        chosen = jnp.concatenate([jnp.stack([each.indices for each in matched]), random])
        return jnp.concatenate([twins, pool[chosen]]), pool

    return jax.lax.map(build, (pool, path, keys))


def draw_sets(config, task, runs):  # -> sets, pools and queries of R P pools
    covariance = jnp.diag(jnp.linspace(*config.spectrum, task.d))[None]
    sizes, noise_std = (config.m + config.n, task.d), task.noise_std
    law = pools.PoolTask(*sizes, covariances=covariance, noise_std=noise_std)
    keys = jax.random.split(jax.random.key(config.seed), (3, runs * config.pools))
    both, queries = measures.draw_pools(law, config.queries, keys[0])
    few = jax.tree.map(lambda leaf: leaf[:, : config.m], both)
    recipe = prefix.Recipe(batch=config.batch, learning_rate=config.rate, saves=task.d + 2)
    path = measures.train_linear(few, recipe, keys[1], "matching_is_exact")
    sets, rows = build_sets(config, both, path, keys[2])
    if not np.isfinite(sets).all():
        raise ValueError("a twin's second moment is not positive definite: raise n")
    return sets, rows, queries


def compare(answers, whole, targets):  # [S, Q], [1, Q], [1, Q] -> gap and error [S]
    apart = jnp.sqrt(((answers - whole) ** 2).mean(-1) / (whole**2).mean())
    return apart, ((answers - targets) ** 2).mean(-1)


@partial(jax.jit, static_argnums=0)
def measure_descents(config, sets, rows, queries):  # -> gap and error [R, S, depths]
    depths = jnp.asarray(config.depths)

    def read_weights(rows):  # [n, e] -> [depths, d]
        steps = jnp.full(max(config.depths), config.step)
        stack = constructions.gradient_descent(steps, rows.shape[1] - 1)
        maps = moments.layer_maps(stack, rows.T @ rows / len(rows))
        return -maps[depths, -1, :-1]

    def measure(row):
        sets, rows, queries = row
        whole = read_weights(rows) @ queries.x.T  # [depths, Q]
        answers = jax.lax.map(read_weights, sets) @ queries.x.T[None]
        compare_depths = jax.vmap(compare, (1, 0, None), 1)
        return compare_depths(answers, whole[:, None], queries.y[None])

    return jax.lax.map(measure, (sets, rows, queries))


@moments.compiled
def measure_model(models, sets, rows, queries):  # Model [R], [R, P, S, n, e] -> [R, P, S] twice
    def measure(model, sets, rows, queries):
        whole = measures.answer_with_prefix(model, rows, queries.x)
        answer = partial(measures.answer_with_prefix, model, x=queries.x)
        return compare(jax.lax.map(answer, sets), whole[None], queries.y[None])

    def measure_run(row):
        return jax.lax.map(lambda each: measure(row[0], *each), row[1:])

    return jax.lax.map(measure_run, (models, sets, rows, queries))


def compute(config, models):
    spec = models[config.names[0]].spec
    task, runs = spec.task, spec.training.seeds
    sets, rows, queries = draw_sets(config, task, runs)

    def split(leaf):  # [R P, ...] -> [R, P, ...]
        return np.asarray(leaf).reshape(runs, config.pools, *leaf.shape[1:])

    descents = np.stack([split(part) for part in measure_descents(config, sets, rows, queries)])
    parts = jax.tree.map(split, (sets, rows, queries))
    trained = [model.models().cast_float64() for model in models.values()]
    learned = compute_each("models", trained, lambda m: np.stack(measure_model(m, *parts)))
    values = np.concatenate([np.moveaxis(descents, -1, 0), np.stack(learned)])
    gap, error = values[:, 0], values[:, 1]  # [learner, R, P, S]
    count = task.d + 3
    axes = ("learner", "run", "pool")
    data = {
        "twin": ((*axes, "matched"), gap[..., :count]),
        "chosen": ((*axes, "gradients"), gap[..., count : count + 3]),
        "random": ((*axes, "draw"), gap[..., count + 3 :]),
        "error": ((*axes, "draw"), error[..., count + 3 :]),
        "zero": (axes[1:], (parts[2].y ** 2).mean(-1)),
    }
    learners = [f"descent, {depth}" for depth in config.depths] + list(models)
    places = {"learner": learners, "gradients": list(GRADIENTS), "matched": np.arange(count)}
    return xr.Dataset(data, places)


def does_task(result, learner):
    """Return whether the mean error after random subsets is below that of the answer 0."""
    error = result["error"].sel(learner=learner).median()
    return float(error) < float(result["zero"].median())


def average_pools(values):  # (run, pool) -> [R]
    """Return the geometric mean over the pools of each training."""
    return np.exp(np.log(values).mean("pool")).values


def twin_gaps(result, learner, matched=None):  # -> [R], or None
    if learner not in result["learner"] or not does_task(result, learner):
        return None
    if matched is None:
        matched = result.sizes["matched"] - 2  # d + 1
    gaps = result["twin"].sel(learner=learner, matched=matched)
    return average_pools(np.maximum(gaps, LEAST))


def twin_ratio(result, learner):  # -> [R], or None
    gaps = [twin_gaps(result, learner, matched) for matched in (None, 0)]
    return None if gaps[0] is None else gaps[0] / gaps[1]


def subset_ratio(result, learner, over="random", gradients="plain"):  # -> [R], or None
    """Return the gap after a chosen subset over that after others."""
    if learner not in result["learner"] or not does_task(result, learner):
        return None
    chosen = result["chosen"].sel(learner=learner)
    if over == "random":
        below = result["random"].sel(learner=learner).median("draw")
    else:
        below = chosen.sel(gradients=over)
    return average_pools(chosen.sel(gradients=gradients) / below)


FULL = TIERS["full"]
LEARNERS = (f"descent, {max(FULL.depths)}", *TRAINED)
POOLS = "in the geometric mean over a training's pools"
PAIRED = "none: the ratio is paired, and 1 without an effect"
ratio = partial(Claim, source="derived here", statistic="ratio")
whitened = partial(subset_ratio, gradients="whitened")
CLAIMS = (
    ratio("subset", statement="A subset chosen by gradients at d + 1 checkpoints is nearer to its "
          "pool than a random subset for {learner}",
          quantity=f"the gap over that of the median random subset, {POOLS}", sample=subset_ratio,
          at_most=1.0, over={"learner": LEARNERS}, null=PAIRED),
    ratio("softmax", statement="A set with the pool's moments still differs from it for {learner}",
          quantity=f"the gap, {POOLS}", sample=twin_gaps, over={"learner": TRAINED[1:]},
          null="none: for linear attention it is 0, by a theorem"),
    ratio("softmax_nearer", statement="A set with the pool's moments is nearer to it than a set "
          "without for {learner}", quantity=f"the gap over that without, {POOLS}",
          sample=twin_ratio, at_most=1.0, over={"learner": TRAINED[1:]}, null=PAIRED),
    ratio("whitened_over_plain", statement="A subset chosen by whitened gradients is nearer to its "
          "pool than one chosen by plain gradients for {learner}", quantity="the gap over that "
          f"after plain matching, {POOLS}", sample=partial(whitened, over="plain"), at_most=1.0,
          over={"learner": LEARNERS}, null=PAIRED),
    ratio("whitened_over_scaled", statement="A subset chosen by whitened gradients is nearer to "
          "its pool than one chosen by merely scaled gradients for {learner}",
          quantity=f"the gap over that after matching of gradients whose entries have one size, "
          f"{POOLS}", sample=partial(whitened, over="scaled"), at_most=1.0,
          over={"learner": LEARNERS}, null="whitened_over_plain"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, axes = plotting.figure(6.75, 3.0, (1, 2))
    matched = result["matched"].values
    shades = [3 * (shade,) for shade in np.linspace(0.65, 0.0, len(config.depths))]
    names = [f"descent, {depth}" for depth in config.depths]
    for name, look in (plotting.looks(names, "^" * len(names), shades) | LOOKS).items():
        columns = [twin_gaps(result, name, place) for place in matched]
        if columns[0] is not None:
            runs = np.stack(columns, axis=1)
            plotting.mean_points(axes[0], matched, runs, name, "median", lw=0.8, **look)
    axes[0].axvline(matched[-2], color=plotting.GREY, lw=0.8, ls="--")
    plotting.log_axes(axes[0], y=True)
    axes[0].set(xlabel="matched checkpoints (dashed: d + 1)", xticks=matched, ylim=(LEAST, 30))
    axes[0].set(ylabel="gap / size of predictions", title="Twins of the pool")
    axes[0].legend(loc="upper center", bbox_to_anchor=(0.4, -0.17), ncols=2)
    learners = [name for name in result["learner"].values if subset_ratio(result, name) is not None]
    ratios = {
        kind: np.stack([subset_ratio(result, x, gradients=kind) for x in learners], axis=1)
        for kind in GRADIENTS
    }
    looks = plotting.looks(GRADIENTS, "os^")
    plotting.series(axes[1], range(len(learners)), ratios, looks, "ratio", 0.2, rows=True)
    axes[1].axvline(1, color=plotting.GREY, lw=1.2)
    axes[1].set_yticks(range(len(learners)), learners)
    axes[1].set(ylim=(len(learners) - 0.5, -0.5), xlabel="gap / that of a random subset")
    axes[1].set_title("Subsets of the pool")
    axes[1].legend()
    far = {name: twin_gaps(result, name) for name in TRAINED[1:]}
    far = [f"{np.median(gap):.2g} for {name}" for name, gap in far.items() if gap is not None]
    deep = f"descent, {max(config.depths)}"
    left = geometric_mean(subset_ratio(result, deep))
    return figure, (
        "A set that matches the pool's mean gradients at d + 1 checkpoints equals the pool for "
        f"descent of any depth. For trained models a gap remains: {' and '.join(far)}. A subset of "
        f"{config.n} of {config.m}, chosen to match, leaves {left:.2g} of a random subset's gap "
        f"for {max(config.depths)} steps of descent. Points are medians (a) and geometric means "
        "(b) of trainings, each over its pools."
    )


METHODS = ("linear", "softmax", "softmax, norm, MLP")
LOOKS = {name: plotting.METHOD[m] for name, m in zip(TRAINED, METHODS, strict=True)}


if __name__ == "__main__":
    main(__file__)
