"""Do gradients of many demonstrations become the Bayes rule's by depth (A1, Open question 3)?

How unequal the gradients are at the last layer tells no rule from another: ridge regression with
100 times the right penalty has the same inequality. What tells rules apart is the correlation of
log gradients with those of the Bayes rule on the same prompts. A near-duplicate in the prompt takes
a part of a demonstration's gradient away, in ridge regression too. Last, A1 encodes demonstrations
once for all queries (its Eq. 2, one layer, each demonstration alone); the alternative is the
gradient at the last layer with the whole pool in the prompt, made online for each query.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.flow import measures
from experiments.models.named import NamedModels
from lsa_lab import prompts
from lsa_lab.analyses.amplification import log_sizes, moment_flow
from lsa_lab.lab import Claim, compute_each, main, plotting, stack_rows
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt
from lsa_lab.selection import scores

LINEAR = "linear attention"
TRAINED = (LINEAR, "softmax attention", "transformer")
RULES = ("Eq. 2", "online", "random")


@dataclass(frozen=True)
class Config(NamedModels):
    names: tuple[str, ...] = TRAINED  # trained models, linear attention among them
    prompts: int = 512  # for each trained model
    test_prompts: int = 4096  # for each trained model, for its risk
    closeness: float = 0.9  # correlation of a near-duplicate with its original
    pool: int = 64  # demonstrations of which as many are selected as a model reads
    pools: int = 32  # for each trained model, each of one task
    queries: int = 32  # for each pool
    large: int = 4096  # demonstrations of the pool in which operations are counted
    seed: int = 1204


SMALL = dict(prompts=4, test_prompts=16, pool=8, pools=2, queries=4, large=16)
TIERS = {
    "smoke": Config((LINEAR,), True, **SMALL, seed=1),
    "quick": Config((LINEAR,), prompts=64, test_prompts=1024, pools=4, queries=16, seed=2),
    "full": Config(),
}


def draw_prompts(config, spec):  # -> two Prompts [R, B]
    """Draw prompts as in training, and the same where demonstration 1 is a near-duplicate of 0."""
    task, rng = spec.task, np.random.default_rng(config.seed)
    many, n, c = (spec.training.seeds, config.prompts), max(task.lengths), config.closeness
    x, w = rng.standard_normal((*many, n + 1, task.d)), rng.standard_normal((*many, 1, task.d))
    noise = task.noise_std * rng.standard_normal((*many, n))
    near = x.copy()
    near[:, :, 1] = c * x[:, :, 0] + (1 - c**2) ** 0.5 * x[:, :, 1]

    def make(x):
        y = (x * w).sum(-1)
        return Prompt(x[:, :, :-1], y[:, :, :-1] + noise, x[:, :, -1], y[:, :, -1])

    return make(x), make(near)


@jax.jit
def compare_gradients(models, batches, near_batches):  # Model [R], Prompt [R, B] x 2
    """Return correlations with the Bayes rule's log gradients, and the changes of the log gradient
    of demonstration 0 by a near-duplicate."""

    def measure(model, prompt, near):
        bayes = partial(measures.answer_by_bayes, noise_var=model.spec.task.noise_std**2)
        gradients = measures.compute_gradients(model, prompt)
        best = measures.differentiate(bayes, prompt)[1]
        # One step of descent, up to a factor that no correlation sees.
        step = measures.differentiate(lambda p: (p.y @ p.x) @ p.x_query, prompt)[1]
        pair = measures.compute_gradients(model, near), measures.differentiate(bayes, near)[1]
        changes = [log_sizes(x)[:, 0] for x in (gradients, pair[0], best[None], pair[1][None])]
        return {
            "correlation": measures.correlate_sizes(gradients, best),
            "descent": measures.correlate_sizes(step[None], best)[0],
            "change": changes[1] - changes[0],
            "bayes_change": (changes[3] - changes[2])[0],
        }

    measure_all = jax.vmap(measure, (None, 0, 0))
    rows = jax.lax.map(lambda row: measure_all(*row), (models, batches, near_batches))
    return {
        name: values.mean(1) if name in ("correlation", "descent") else jnp.median(values, axis=1)
        for name, values in rows.items()
    }


def compare_model(config, runs):  # -> {name: [R, ...]}
    models = runs.models()
    rows = compare_gradients(models.cast_float64(), *draw_prompts(config, runs.spec))
    test = measures.draw_prompts(config.seed + 10**6, runs.spec, config.test_prompts)
    return jax.device_get(rows) | {"risk": measures.compare_risks(models, test)}


def draw_pool(key, config, task):  # -> Prompt of the pool, x [Q, d] and y [Q] of queries
    keys, d = jax.random.split(key, 4), task.d
    w = jax.random.normal(keys[0], (d,))
    x, queries = jax.random.normal(keys[1], (config.pool, d)), (config.queries, d)
    y = x @ w + task.noise_std * jax.random.normal(keys[3], (config.pool,))
    x_queries = jax.random.normal(keys[2], queries)
    return Prompt(x, y, x_queries[0], x_queries[0] @ w), x_queries, x_queries @ w


def encode(params, pool):  # what Eq. 2 needs of the first layer
    return scores.encode(params.w_kq[0, 0], params.w_pv[0, 0], pool)


def score_online(params, pool, query_token):  # -> [m]
    """Return |∂ŷ/∂e_i| at the last layer with the whole pool in the prompt."""
    prompt = Prompt(pool[:, :-1], pool[:, -1], query_token[:-1], query_token[-1])
    return scores.flow_norm(moment_flow(params, prompt)[-1])


def select_from_pool(config, model, key):  # -> [rules]
    task = model.spec.task
    pool, x_queries, targets = draw_pool(key, config, task)
    read, _ = prompts.normalise(pool)  # the model reads prompts in their own units
    rows = jnp.concatenate([read.x, read.y[:, None]], axis=1)
    encoded, unit = encode(model.params, rows), jnp.sqrt(jnp.mean(pool.x**2))

    def measure(x_query, target, key):
        token = jnp.pad(x_query / unit, (0, 1))
        online = score_online(model.params, rows, token)
        random = scores.random(rows, token[:-1], key)
        by_rule, shots = (scores.grads(encoded, token), online, random), max(task.lengths)
        chosen = jnp.stack([scores.select(each, shots).astype(int) for each in by_rule])
        queries = [jnp.stack([value] * len(RULES)) for value in (x_query, target)]
        return (model.predict(Prompt(pool.x[chosen], pool.y[chosen], *queries)) - target) ** 2

    keys = jax.random.split(jax.random.fold_in(key, 1), config.queries)
    return jax.lax.map(lambda row: measure(*row), (x_queries, targets, keys)).mean(0)


def count_operations(params, pool, query_token):  # -> {rule: float}
    """Return the operations of one query as the compiler counts them before it optimises."""
    calls = (scores.grads, (encode(params, pool), query_token))
    online = (score_online, (params, pool, query_token))
    lowered = [jax.jit(call).lower(*arguments) for call, arguments in (calls, online)]
    return [each.cost_analysis()["flops"] for each in lowered]


def compute_offline(config, runs):  # -> Dataset (rule, run)
    models = jax.tree.map(jnp.asarray, runs.models().cast_float64())
    keys = jax.random.split(jax.random.key(config.seed), (len(models.params.w_kq), config.pools))

    def run(row):
        model, keys = row
        return jax.lax.map(partial(select_from_pool, config, model), keys).mean(0)

    errors = moments.compiled(partial(jax.lax.map, run))((models, keys))
    first = jax.tree.map(lambda leaf: leaf[0], models.params)
    large = jax.random.normal(jax.random.key(0), (config.large + 1, runs.spec.token_width))
    counts = count_operations(first, large[:-1], large[-1].at[-1].set(0))
    data = {"error": (("run", "rule"), np.asarray(errors)), "operations": ("way", counts)}
    return xr.Dataset(data, {"rule": list(RULES), "way": list(RULES[:2])})


def compute(config, models):
    rows = compute_each("models", [*models.values()], partial(compare_model, config))
    dims = {name: ("model", "run", "layer") for name in ("correlation", "change")}
    dims |= {name: ("model", "run") for name in ("descent", "bayes_change")}
    data = stack_rows(rows, dims | {"risk": ("model", "rule", "run")})
    many = xr.Dataset(data, {"model": list(models), "rule": ["model", "Bayes rule"]})
    offline = compute_offline(config, models[LINEAR])
    return xr.DataTree.from_dict({"many": many, "offline": offline})


FAR = 1.5  # times the Bayes rule's excess risk: a model above it has not converged


def find_risk_ratio(result, model):
    risk = result["many"]["risk"].sel(model=model).mean("run")
    return float(risk.sel(rule="model") / risk.sel(rule="Bayes rule"))


def select(result, name, model):  # -> [R, ...], or None if the model is not there or not converged
    if model not in result["many"]["model"] or find_risk_ratio(result, model) > FAR:
        return None
    return result["many"][name].sel(model=model).transpose("run", ...).values


def agreement_rises(result, model):  # -> [R], or None
    values = select(result, "correlation", model)
    return None if values is None else values[:, -1] - values[:, 0]


def closer_than_descent(result, model):  # -> [R], or None
    values = select(result, "correlation", model)
    return None if values is None else values[:, -1] - select(result, "descent", model)


def explained_away(result, model):  # -> [R], or None
    values = select(result, "change", model)
    return None if values is None else values[:, -1] - select(result, "bayes_change", model)


def offline_ratio(result):  # -> [R]
    error = result["offline"]["error"]
    return (error.sel(rule="Eq. 2") / error.sel(rule="online")).values


def operations_ratio(result):
    counts = result["offline"]["operations"]
    return float(counts.sel(way="Eq. 2") / counts.sel(way="online"))


FULL = TIERS["full"]
CORRELATION = "the correlation of log gradients with the Bayes rule's at the last layer, less that "
median = partial(Claim, statistic="median")
CLAIMS = (
    median("agreement_rises", "A1, Open question 3", "From the first layer to the last, gradients "
           "of trained {model} come to correlate with the Bayes rule's",
           f"{CORRELATION}at the first", agreement_rises, at_least=0.0, over={"model": TRAINED},
           null="none: the difference is paired, and 0 without an effect of depth"),
    median("closer_than_descent", "derived here", "Gradients of trained {model} correlate with the "
           "Bayes rule's more than those of one step of descent do",
           f"{CORRELATION}of one step of descent on the same prompts", closer_than_descent,
           at_least=0.0, over={"model": TRAINED}, null="none: the difference is paired"),
    median("explained_away", "A1, Open question 3", "A near-duplicate changes the gradient of a "
           "demonstration in trained {model} as it does in the Bayes rule",
           "the median change of the log gradient by a near-duplicate, less the Bayes rule's",
           explained_away, at_least=-0.1, at_most=0.1, over={"model": TRAINED},
           null="none: the difference is paired, and 0 for the Bayes rule"),
    Claim("offline_risk", "A1, Critical path", "What Eq. 2 selects from an encoded pool is as good "
          "as what the last layer's gradients select online",
          "the excess risk of the choice of Eq. 2 over that of the choice online", offline_ratio,
          at_most=1.1, statistic="ratio", null="none: the ratio is paired, and 1 without a loss"),
    Claim("offline_operations", "A1, Critical path", "The operations of a query on a pool that is "
          "encoded for Eq. 2, over those of the last layer's gradients online",
          f"operations before optimisation, in a pool of {FULL.large}", operations_ratio,
          statistic="value", null="none: a count, 1 without a saving"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.7, (1, 2))
    looks = dict(zip(TRAINED, ("linear", "softmax", "softmax, norm, MLP"), strict=True))
    many = result["many"].to_dataset().transpose("run", ...)
    layers = np.arange(many.sizes["layer"])
    for i, model in enumerate(config.names):
        look = plotting.METHOD[looks[model]] | dict(capsize=1.5)
        for ax, name in zip((left, right), ("correlation", "change"), strict=True):
            values = many[name].sel(model=model).values
            plotting.mean_points(ax, layers + 1 + 0.05 * i, values, model, "median", **look)
    descent, bayes = (float(many[name].median()) for name in ("descent", "bayes_change"))
    left.axhline(descent, color=plotting.GREEN, ls="--", lw=1, label="one step of descent")
    right.axhline(bayes, color=plotting.BLACK, ls="--", lw=1, label="Bayes rule")
    left.set(title="Gradients beside the Bayes rule's", ylabel="correlation of log gradients")
    right.set(title="Effect of a near-duplicate", ylabel="change of log gradient")
    for ax in (left, right):
        ax.set(xlabel="layer", xticks=layers + 1)
    left.legend(loc="upper left")
    right.legend(loc="upper right")
    medians = many["correlation"].median("run").values  # [models, L]
    return figure, (
        f"The correlation of log gradients with the Bayes rule's is at most "
        f"{medians[:, 0].max():.2f} after one layer and at least {medians[:, -1].min():.2f} at the "
        f"last. Demonstrations encoded for "
        f"Eq. 2 take {operations_ratio(result):.1%} of the operations of gradients online, and "
        f"what Eq. 2 selects has {np.exp(np.log(offline_ratio(result)).mean()):.2f} times the "
        f"excess risk. Medians over {many.sizes['run']} trainings."
    )


if __name__ == "__main__":
    main(__file__)
