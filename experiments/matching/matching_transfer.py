"""Do subsets chosen on a small model serve larger models (A3), and why?

Subsets of a pool are chosen by the gradients of a linear model, of a prefix of one layer, and of a
prefix of a trained stack of four layers; trained models learn from them in context. A3's hypothesis
is that what teaches in fine-tuning teaches in context. Here learners are tuned on random subsets,
and their errors are ranked beside those in context. Good subsets are good for every learner, so
that ranks are correlated given the ranks of the Bayes rule, which is never tuned.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from scipy.stats import rankdata

from experiments.matching import measures
from experiments.models.named import NamedModels
from experiments.models.specs import dense_spec
from lsa_lab import estimators, prompts
from lsa_lab.lab import Claim, compute_each, main, plotting
from lsa_lab.models import constructions, moments
from lsa_lab.selection import baselines, diversity, gradient_matching, prefix
from lsa_lab.tasks import pools

TRAINED = ("linear attention", "softmax attention", "transformer")
STACK, SOFTMAX = TRAINED[:2]
ONE_LAYER, DESCENT, ONE_SOFTMAX = "one layer", "descent", "one softmax layer"
GRADIENTS = ("linear model", "prefix", "stack prefix")
RULES = (*GRADIENTS, "mismatched", "determinantal")  # the fourth mismatches the linear model's
TUNED = ("linear model", "own prefix")
# A small model, and a larger one of the same kind or of another kind.
PAIRS = ((ONE_LAYER, STACK), (ONE_SOFTMAX, SOFTMAX), (ONE_LAYER, SOFTMAX), (STACK, TRAINED[2]))


@dataclass(frozen=True)
class Config(NamedModels):
    names: tuple[str, ...] = TRAINED  # trained models; the first has a prefix
    m: int = 256  # the pool
    pools: int = 3  # for each training of the models
    tuned_pools: int = 1  # of these, those on whose random subsets learners are tuned
    queries: int = 32  # of each pool
    subsets: int = 20  # random ones of each pool
    checkpoints: int = 10  # at which gradients are matched
    depth: int = 16  # steps of descent of a constructed target
    epochs: int = 50  # of the training of a prefix on a pool
    batch: int = 64  # examples of a training step
    rate: float = 0.03  # learning rate of prefixes and of tuned learners
    tuned_steps: int = 100  # of a learner on a subset
    small_steps: int = 1000  # of the training of one softmax layer; 0 to leave it out
    seed: int = 4302

    @property
    def models(self):
        models = super().models
        if self.small_steps:
            spec = models[self.names[0]]
            training = dict(steps=self.small_steps, batch=64, learning_rate=0.003, seed=self.seed)
            training |= dict(seeds=spec.training.seeds)
            shape = dict(heads=4, key_width=6, width=24, init_scale=0.5, training=training)
            sizes = spec.task.d, max(spec.task.lengths), 1
            noise_std = spec.task.noise_std
            models[ONE_SOFTMAX] = dense_spec("softmax", *sizes, noise_std=noise_std, **shape)
        return models


SMOKE = dict(queries=2, subsets=4, checkpoints=3, depth=2, epochs=2, tuned_steps=3, small_steps=3)
TIERS = {
    "smoke": Config(small=True, m=12, pools=2, tuned_pools=1, batch=4, **SMOKE, seed=1),
    "quick": Config(TRAINED[:1], pools=2, tuned_pools=1, queries=16, subsets=16, epochs=20,
                    tuned_steps=50, small_steps=0, seed=2),
    "full": Config(),
}  # fmt: skip


@partial(moments.compiled, static_argnums=(0, 1))
def choose(config, n, *rows):  # pool, models, paths and keys [R P] -> indices [R P, S, n]
    def choose_run(row):
        pool, models, paths, key = row
        steps = jnp.full(config.checkpoints - 1, 0.3)  # from w = 0, in small steps
        whole = prompts.Prompt(pool.x, pool.y, pool.x[0], pool.y[0])
        linear = prefix.linear_gradients(estimators.gradient_descent(whole, steps), pool)
        collect = partial(prefix.example_gradients, measures.squared_error)
        others = (collect(models[rule], paths[rule], (pool.x, pool.y)) for rule in GRADIENTS[1:])
        parts = measures.pad_features(linear, *others)  # [F, m, p], as GRADIENTS
        chosen = jax.lax.map(lambda part: gradient_matching.match(part, n).indices, parts)
        mismatched = gradient_matching.match(parts[0], n, reverse=True).indices
        diverse = diversity.determinantal(pools.tokens(pool), n, ridge=1.0)
        random = baselines.random_subsets(key, config.m, n, config.subsets)
        return jnp.concatenate([chosen, jnp.stack([mismatched, diverse]), random])

    return jax.lax.map(choose_run, rows)


def draw_subsets(config, stack):  # Model [R] -> x [R, P, S, n, d], y, queries' x and y
    """Draw pools, train prefixes on them and choose subsets; return their demonstrations."""
    task, runs = stack.spec.task, jax.tree.leaves(stack.params)[0].shape[0]
    n, count = max(task.lengths), runs * config.pools
    keys = [jax.random.split(jax.random.key(config.seed + i), count) for i in range(3)]
    law = pools.PoolTask(config.m, task.d, noise_std=task.noise_std)
    pool, queries = measures.draw_pools(law, config.queries, keys[0])
    models = {
        "prefix": measures.build_one_layer(task.d, n, task.noise_std, count),
        "stack prefix": jax.tree.map(lambda leaf: np.repeat(leaf, config.pools, 0), stack),
    }
    sizes = dict(epochs=config.epochs, batch=config.batch, saves=config.checkpoints)
    recipe = prefix.Recipe(learning_rate=config.rate, **sizes)
    paths = {
        rule: measures.train_prefixes(model, pool, recipe, keys[1], rule)
        for rule, model in models.items()
    }
    chosen = np.asarray(choose(config, n, pool, models, paths, keys[2]))
    rows = np.arange(count)[:, None, None]
    parts = (np.asarray(pool.x)[rows, chosen], np.asarray(pool.y)[rows, chosen])
    parts += (np.asarray(queries.x), np.asarray(queries.y))
    return [part.reshape(runs, config.pools, *part.shape[1:]) for part in parts]


def map_subsets(function, has_model=True):
    """Map function([model,] x, y, queries' x and y) over runs, pools and subsets."""
    model = (None,) * has_model
    over_subsets = jax.vmap(function, (*model, 0, 0, None, None))
    over_pools = jax.vmap(over_subsets, (*model, 0, 0, 0, 0))
    return moments.compiled(lambda *rows: jax.lax.map(lambda row: over_pools(*row), rows))


def measure_error(model, x, y, x_queries, y_queries):  # of one subset -> []
    rows = (jnp.broadcast_to(each, (len(x_queries), *each.shape)) for each in (x, y))
    return model.errors(prompts.Prompt(*rows, x_queries, y_queries)).mean()


def measure_constructed(config, task):  # -> function of a subset -> [3]
    """Return the errors of one layer, of descent, and of the Bayes rule."""
    n = max(task.lengths)
    one = constructions.one_step_optimum(jnp.eye(task.d), n, task.noise_std**2)
    step = measures.best_step(n, task.d, task.noise_std)
    descent = constructions.gradient_descent(jnp.full(config.depth, step), task.d)

    def measure(x, y, x_queries, y_queries):
        prompt = prompts.Prompt(x, y, x[0], y[0])
        moment = prompts.second_moment(prompt)
        maps = jnp.stack([moments.layer_maps(stack, moment)[-1] for stack in (one, descent)])
        squares = (-maps[:, -1, :-1] @ x_queries.T - y_queries[None]) ** 2
        best = estimators.gaussian_posterior_mean(prompt, 1.0, task.noise_std**2)
        return jnp.append(squares.mean(1), ((x_queries @ best - y_queries) ** 2).mean())

    return measure


def tune(config, answer, start):  # -> function of a model and a subset -> []
    """Return the error of a learner after steps of Adam on a subset, all examples in each."""
    optimizer = optax.adam(config.rate)

    def measure(model, x, y, x_queries, y_queries):
        def step(carry, _):
            learner, state = carry
            slope = jax.grad(lambda z: ((answer(model, z, x) - y) ** 2).mean() / 2)(learner)
            updates, state = optimizer.update(slope, state)
            return (optax.apply_updates(learner, updates), state), None

        first = start.astype(x.dtype)
        carry, _ = jax.lax.scan(step, (first, optimizer.init(first)), length=config.tuned_steps)
        return ((answer(model, carry[0], x_queries) - y_queries) ** 2).mean()

    return measure


def tune_all(config, trained, subsets):  # -> [learner, model, R, P, S]
    d = subsets[0].shape[-1]
    start = prefix.init(jax.random.key(config.seed + 3), 4, d + 1)
    tune_linear = map_subsets(tune(config, lambda _, w, x: x @ w, jnp.zeros(d)))
    tune_prefix = map_subsets(tune(config, measures.answer_with_prefix, start))
    with jax.numpy_dtype_promotion("standard"):  # Adam raises a float to an integer count
        linear = np.asarray(tune_linear(trained[STACK], *subsets))
        models = [*trained.values()]
        rows = compute_each("tuned", models, lambda model: tune_prefix(model, *subsets))
    return np.stack([np.broadcast_to(linear, np.shape(rows)), np.stack(rows)])


def compute(config, models):
    all_models = {name: runs.models() for name, runs in models.items()}
    trained = {name: all_models[name] for name in config.names}
    task = trained[STACK].spec.task
    rows = draw_subsets(config, trained[STACK].cast_float64())
    constructed = np.moveaxis(map_subsets(measure_constructed(config, task), False)(*rows), -1, 0)
    single = [jnp.asarray(part, jnp.float32) for part in rows]
    measure = map_subsets(measure_error)
    learned = [np.asarray(measure(model, *single), float) for model in all_models.values()]
    errors = np.stack([*constructed[:2], *learned])  # [target, R, P, S]
    random = slice(len(RULES), None)
    few = [part[:, : config.tuned_pools, random] for part in single[:2]]
    few += [part[:, : config.tuned_pools] for part in single[2:]]
    axes, tuned = ("target", "run", "pool"), ("learner", "model", "run", "tuned_pool", "subset")
    data = {
        "chosen": ((*axes, "rule"), errors[..., : len(RULES)]),
        "random": ((*axes, "subset"), errors[..., random]),
        "bayes": ((*axes[1:], "subset"), constructed[2, ..., random]),
        "zero": (axes[1:], (rows[3] ** 2).mean(-1)),
        "tuned": (tuned, tune_all(config, trained, few)),
    }
    names = {"target": [ONE_LAYER, DESCENT, *all_models], "rule": list(RULES)}
    return xr.Dataset(data, names | {"learner": list(TUNED), "model": list(trained)})


def does_task(result, target):
    """Return whether the median error after random subsets is below that of the answer 0."""
    return float(result["random"].sel(target=target).median()) < float(result["zero"].median())


def error_ratio(result, rule, target, baseline="random"):  # -> [R], or None
    """Return a rule's error over a baseline's in each run's median pool."""
    if target not in result["target"] or not does_task(result, target):
        return None
    errors, chosen = result.sel(target=target), result["chosen"].sel(target=target)
    below = errors["random"].median("subset")
    if baseline != "random":
        below = chosen.sel(rule=baseline)
    return (chosen.sel(rule=rule) / below).median("pool").values


def correlate_ranks(left, right, given=None):  # arrays [..., S] -> [...]
    """Return Spearman's correlation; with ``given`` that of what its ranks leave of the others."""

    def scale(values):  # 0 where nothing is left
        return values / np.maximum(np.linalg.norm(values, axis=-1, keepdims=True), 1e-9)

    def standardise(values):
        ranks = rankdata(values, axis=-1)
        return scale(ranks - ranks.mean(-1, keepdims=True))

    left, right = standardise(left), standardise(right)
    if given is not None:
        given = standardise(given)
        left, right = (
            scale(ranks - (ranks * given).sum(-1, keepdims=True) * given) for ranks in (left, right)
        )
    return (left * right).sum(-1)


def tuned_correlation(result, learner, model, given_bayes=True):  # -> [R], or None
    """Return the rank correlation of tuned with in-context errors, the mean over pools."""
    if model not in result["model"] or not does_task(result, model):
        return None
    tuned = result["tuned"].sel(learner=learner, model=model).values
    few = slice(tuned.shape[1])
    in_context = result["random"].sel(target=model).values[:, few]
    given = result["bayes"].values[:, few] if given_bayes else None
    return correlate_ranks(tuned, in_context, given).mean(1)


def pair_correlation(result, pair, given_bayes=True):  # -> [R], or None
    """Return the rank correlation of a small and a large model's errors, the mean over pools."""
    small, large = PAIRS[PAIR_NAMES.index(pair)]
    if not {small, large} <= set(result["target"].values) or not does_task(result, large):
        return None
    errors = [result["random"].sel(target=name).values for name in (small, large)]
    given = result["bayes"].values if given_bayes else None
    return correlate_ranks(*errors, given).mean(1)


PAIR_NAMES = [f"{small} and {large}" for small, large in PAIRS]
TARGETS = (DESCENT, *TRAINED)
OVER = "the error over that of the {}, in each run's median pool"
RANDOM = OVER.format("median random subset")
CORRELATION = "the mean over pools of Spearman's correlation over random subsets"
GIVEN = f"{CORRELATION}, given the ranks of the Bayes rule's errors"
PAIRED = "none: the ratio is paired, and 1 without an effect"
NO_SHARE = "none: 0 if learners share only what the Bayes rule knows"
median = partial(Claim, statistic="median")
CLAIMS = (
    median("over_random", "A3, Abstract, transfer", "Subsets that match gradients of the {rule} "
           "help the {target} more than random subsets do", RANDOM, error_ratio, at_most=1.0,
           over={"rule": GRADIENTS, "target": TARGETS}, null="mismatched"),
    median("over_determinantal", "derived here", "Subsets that match gradients of the {rule} help "
           "the {target} more than determinantal subsets, chosen without a gradient, do",
           OVER.format("determinantal subset"), partial(error_ratio, baseline="determinantal"),
           at_most=1.0, over={"rule": GRADIENTS, "target": TRAINED}, null=PAIRED),
    median("mismatched", "A3, Figure 4", "Subsets that mismatch gradients of the linear model harm "
           "the {target}", RANDOM, partial(error_ratio, rule="mismatched"), at_least=1.0,
           over={"target": TARGETS}, null=PAIRED),
    Claim("tuned_given_bayes", "A3, Abstract, hypothesis", "Subsets that teach more when a "
          "learner ({learner}) is tuned on them teach the {model} more in context than the Bayes "
          "rule's errors tell", GIVEN, tuned_correlation, at_least=0.0,
          over={"learner": TUNED, "model": TRAINED}, null=NO_SHARE),
    Claim("sizes_given_bayes", "A3, Abstract, transfer", "The same random subsets are good for a "
          "small and a large model ({pair}) beyond what the Bayes rule's errors tell", GIVEN,
          pair_correlation, at_least=0.0, over={"pair": PAIR_NAMES}, null=NO_SHARE),
)  # fmt: skip


TUNED_NAMES = dict(zip(TUNED, ("tuned w·x", "tuned prefix"), strict=True))
LARGEST = 30.0  # ratio that is drawn
COLOURS = (plotting.BLUE, plotting.VERMILION, plotting.ORANGE, plotting.GREEN, plotting.PURPLE)
LOOKS = plotting.looks((*GRADIENTS, "determinantal", "mismatched"), "osD^v", COLOURS)


def plot(result, config):  # -> Figure, caption
    figure, axes = plotting.figure(6.75, 3.4, (1, 2))
    targets = [name for name in TARGETS if name in result["target"] and does_task(result, name)]
    ratios = {r: np.stack([error_ratio(result, r, t) for t in targets], axis=1) for r in LOOKS}
    ratios = {rule: np.minimum(ratio, LARGEST) for rule, ratio in ratios.items()}
    plotting.series(axes[0], range(len(targets)), ratios, LOOKS, "median", 0.13, rows=True)
    axes[0].axvline(1, color=plotting.GREY, lw=1.2)
    plotting.log_axes(axes[0], x=True, ticks=(0.1, 1, 10))
    axes[0].set_yticks(range(len(targets)), targets)
    axes[0].set(ylim=(len(targets) - 0.5, -0.5), xlabel="error / that of a random subset")
    axes[0].set_title("Chosen subsets")
    axes[0].legend(loc="upper center", bbox_to_anchor=(0.4, -0.17), ncols=2)
    rows = {
        f"{TUNED_NAMES[learner]}, {model}": partial(tuned_correlation, result, learner, model)
        for learner in TUNED
        for model in TRAINED
    }
    rows |= {pair: partial(pair_correlation, result, pair) for pair in PAIR_NAMES}
    rows = {name: read for name, read in rows.items() if read() is not None}
    kinds = {"all": False, "given the Bayes rule": True}
    looks = plotting.looks(kinds, "os", (plotting.GREY, plotting.BLUE))
    for kind, given in kinds.items():
        samples = np.stack([read(given_bayes=given) for read in rows.values()], axis=1)
        plotting.mean_points(axes[1], range(len(rows)), samples, kind, rows=True, **looks[kind])
    axes[1].axvline(0, color=plotting.GREY, lw=0.8)
    axes[1].set_yticks(range(len(rows)), rows)
    axes[1].set(ylim=(len(rows) - 0.5, -0.5), xlabel="rank correlation of errors")
    axes[1].set_title("Random subsets")
    axes[1].legend(loc="upper center", bbox_to_anchor=(0.3, -0.17), ncols=2)
    last = targets[-1]
    left = np.median(error_ratio(result, "prefix", last))
    raw, given = (tuned_correlation(result, TUNED[1], last, each).mean() for each in (False, True))
    zero = float(result["zero"].median())
    worst = max(float(result["random"].sel(target=name).median()) / zero for name in targets)
    return figure, (
        f"Subsets that match gradients of a one-layer prefix leave the {last} {left:.2g} of a "
        f"random subset's error. Errors of its own prefix, tuned on a random subset, correlate by "
        f"{raw:.2g} with its errors in context, and by {given:.2g} given the Bayes rule's ranks. "
        f"After random subsets every model has at most {worst:.2g} of the error of the answer 0. "
        f"Medians (a), those above {LARGEST:g} drawn at {LARGEST:g}, and means (b) of trainings."
    )


if __name__ == "__main__":
    main(__file__)
