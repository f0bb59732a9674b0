"""How many demonstrations, chosen freely, are worth a whole prompt (2506.09048, 2507.16003)?

A trained stack answers queries x with f(x), after a prompt of n demonstrations. In masked linear
attention d + 1 virtual demonstrations, from the second moment of the prompt, give every query the
same answer, and one gives it before steps of descent. Here k virtual demonstrations are fitted to
the answers by Adam, from k demonstrations of the prompt, and compared on new queries. A patch is
the least linear map that has the answers at m queries; before one layer of linear attention it
carries the share min(m/d, 1) of the answer to a new query.
"""

import dataclasses
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from experiments.models.model import Model, prepare_prompt
from experiments.models.named import REGRESSION, NamedModels
from experiments.models.tasks import distribution, draw
from lsa_lab.analyses import patches
from lsa_lab.lab import Claim, compute_each, main, plotting, stack_rows
from lsa_lab.models.moments import layer_maps
from lsa_lab.prompts import Prompt, second_moment

NAMES = (REGRESSION[0], REGRESSION[1], REGRESSION[3])  # linear, softmax, softmax with norms and MLP
LOOKS = plotting.looks(NAMES, "osP")


@dataclass(frozen=True)
class Config(NamedModels):
    names: tuple[str, ...] = NAMES  # of trained models
    seeds: int = 16  # of each model
    sizes: tuple[int, ...] = (1, 2, 4, 7)  # virtual demonstrations; d + 1 = 7
    fitted_prompts: int = 4  # of each run, whose demonstrations are replaced
    queries: int = 64  # to whose answers they are fitted
    steps: int = 400  # of Adam
    batch: int = 8  # queries of a step
    learning_rate: float = 0.1
    patch_sizes: tuple[int, ...] = (1, 2, 3, 4, 8, 12, 24)  # queries of a patch; not d - 1 to d + 1
    patched_prompts: int = 32  # of each run
    test_queries: int = 256  # on which answers are compared
    seed: int = 1071


TIERS = {
    "smoke": Config(NAMES[:2], small=True, seeds=2, sizes=(1, 3), fitted_prompts=2, steps=3,
                    patch_sizes=(1, 4), patched_prompts=2, test_queries=8, seed=1),
    "quick": Config(NAMES[:2], seeds=9, sizes=(1, 7), fitted_prompts=2, patch_sizes=(1, 3, 12),
                    patched_prompts=16, test_queries=64, seed=2),
    "full": Config(),
}  # fmt: skip


def answers(model, x, y, queries):  # [k, d], [k], [Q, d] -> [Q]
    if model.spec.architecture.merged:  # linear in the query: one layer map serves all of them
        moment = second_moment(Prompt(x, y, queries[0], jnp.zeros_like(y[0])))
        return -queries @ layer_maps(model.params, moment)[-1, -1, :-1]
    x, y = (jnp.broadcast_to(part, (len(queries), *part.shape)) for part in (x, y))
    return model.predict(Prompt(x, y, queries, jnp.zeros_like(queries[:, 0])))


def relative_error(model, demonstrations, queries, targets):  # -> []
    errors = answers(model, *demonstrations, queries) - targets
    return jnp.sum(errors**2) / jnp.sum(targets**2)


def fit(model, start, queries, targets, key, config):  # -> x [k, d], y [k]
    schedule = optax.cosine_decay_schedule(config.learning_rate, config.steps)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))

    def step(carry, key):
        demonstrations, state = carry
        rows = jax.random.randint(key, (config.batch,), 0, len(queries))
        error = partial(relative_error, model)
        gradient = jax.grad(error)(demonstrations, queries[rows], targets[rows])
        with jax.numpy_dtype_promotion("standard"):  # Adam raises a float to an integer count
            updates, state = optimizer.update(gradient, state)
        return (optax.apply_updates(demonstrations, updates), state), None

    keys = jax.random.split(key, config.steps)
    return jax.lax.scan(step, (start, optimizer.init(start)), keys)[0][0]


@partial(jax.jit, static_argnums=(0, 4, 5))
def replace(spec, params, batch, key, size, config):  # Prompt [P] -> three errors [P]
    """Return relative errors of fitted demonstrations, of their start, and of exact ones."""
    model = Model(spec, params)

    def one(row):
        prompt, key = row
        keys = jax.random.split(key, 3)
        rows = jax.random.permutation(keys[0], prompt.x.shape[0])[:size]
        d, exact = prompt.x.shape[1], patches.moment_demonstrations(prompt)
        scale = min(size / d, 1) ** 0.5  # of few rows, whose second moment has large eigenvalues
        start = scale * prompt.x[rows], scale * prompt.y[rows]
        count = config.queries + config.test_queries
        queries = jax.random.normal(keys[1], (count, d), prompt.x.dtype)
        targets = answers(model, prompt.x, prompt.y, queries)
        split = (jnp.split(rows, [config.queries]) for rows in (queries, targets))
        (seen, new), (known, held_out) = split
        fitted = fit(model, start, seen, known, keys[2], config)
        compared = fitted, start, (exact.x, exact.y)
        return [relative_error(model, each, new, held_out) for each in compared]

    return jax.vmap(one)((batch, jax.random.split(key, len(batch.y))))


@partial(jax.jit, static_argnums=(0, 4))
def patch(spec, params, batch, key, config):  # -> [2, sizes]
    """Return the share of answers that a patch carries to new queries, mean over prompts, and that
    of the best linear map of the answers after a random projection of the patch's rank."""
    model = Model(spec, params)

    def one(row):
        prompt, key = row
        most, d = max(config.patch_sizes), prompt.x.shape[1]
        count = 2 * most + config.test_queries
        queries = jax.random.normal(key, (count, d), prompt.x.dtype)
        values = answers(model, prompt.x, prompt.y, queries)[:, None]
        inputs, others, tested = jnp.split(queries, [most, 2 * most])
        writes, _, targets = jnp.split(values, [most, 2 * most])
        best = patches.least_squares_patch(tested, targets)
        shares = []
        for size in config.patch_sizes:
            projection = jnp.linalg.pinv(others[:size]) @ others[:size]
            fitted = patches.least_squares_patch(inputs[:size], writes[:size])
            maps = fitted, best @ projection
            shares += [patches.carried_share(each, tested, targets) for each in maps]
        return jnp.reshape(jnp.stack(shares), (-1, 2)).T

    return jax.lax.map(one, (batch, jax.random.split(key, len(batch.y)))).mean(0)


def draw_prompts(spec, params, key, size):  # -> Prompt [size]
    """Draw prompts as the model reads them; refuse a model that is worse than the answer 0."""
    batch = draw(key, distribution(spec.task, dtype=jnp.float32), size)
    error = float(Model(spec, params).errors(batch).mean() / (batch.y_query**2).mean())
    if spec.training.steps > 5 and not error < 1:  # smoke tier: not trained
        raise ArithmeticError(f"a model has {error:.3g} times the error of the answer 0")
    return jax.vmap(partial(prepare_prompt, spec.architecture))(batch)[0]


def measure(config, models, item):  # -> {"share": [2, sizes], "error": [K, 3, P]} of one run
    name, seed = item
    runs = models[name]
    params = jax.tree.map(jnp.asarray, runs.models(seeds=seed).params)
    key = jax.random.fold_in(jax.random.key(config.seed), 100 * config.names.index(name) + seed)
    keys = jax.random.split(key, 3)
    batch = draw_prompts(runs.spec, params, keys[0], config.patched_prompts)
    architecture = dataclasses.replace(runs.spec.architecture, normalise_prompt=False)
    spec = dataclasses.replace(runs.spec, architecture=architecture)
    shares = patch(spec, params, batch, keys[1], config)
    few = jax.tree.map(lambda leaf: leaf[: config.fitted_prompts], batch)
    errors = [replace(spec, params, few, keys[2], size, config) for size in config.sizes]
    return {"share": np.asarray(shares, float), "error": np.asarray(errors, float)}


def compute(config, models):
    for name, runs in models.items():
        if not runs.finished[-1][: config.seeds].all():
            raise ArithmeticError(f"trainings of {name} diverged")
    items = [(name, seed) for name in config.names for seed in range(config.seeds)]
    rows = compute_each("virtual demonstrations", items, partial(measure, config, models))
    dims = {"share": ("model", "run", "kind", "queries")}
    dims["error"] = ("model", "run", "size", "source", "prompt")
    data = stack_rows(rows, dims, (len(config.names), config.seeds))
    coordinates = {"model": list(config.names), "size": list(config.sizes)}
    coordinates |= {"queries": list(config.patch_sizes), "kind": ["patch", "projection"]}
    coordinates["source"] = ["fitted", "subset", "moment"]
    task = next(iter(models.values())).spec.task
    return xr.Dataset(data | {"d": task.d, "n": max(task.lengths)}, coordinates)


def predictions(config):
    d = config.models[config.names[0]].task.d
    shares = {f"{m} queries": min(m / d, 1.0) for m in config.patch_sizes}
    linear = {"1 fitted demonstration": 0.0, f"{d + 1} of the second moment": 0.0}
    errors = {NAMES[0]: linear, NAMES[1]: {"1 fitted demonstration": 1.0}}
    return {"error": errors, "share of a patch": shares}


def error(result, model, size=None, source="fitted"):  # -> [R]
    """Return the mean relative error of each run, by default of d + 1 demonstrations."""
    size = int(result["d"]) + 1 if size is None else size
    if model not in result["model"] or size not in result["size"]:
        return None
    chosen = result["error"].sel(model=model, size=size, source=source)
    return chosen.transpose("run", "prompt").mean("prompt").values


def needed(result, model):  # -> [R]
    """Return the fewest fitted demonstrations that err by at most 1/20; n where none do."""
    sizes = [int(size) for size in result["size"]]
    if model not in result["model"]:
        return None
    near = np.stack([error(result, model, size) for size in sizes], axis=1) <= 0.05
    return np.where(near.any(1), np.take(sizes, near.argmax(1)), int(result["n"]))


def fitted_over_start(result, model, size=None):  # -> [R]
    fitted = error(result, model, size)
    return None if fitted is None else fitted / error(result, model, size, "subset")


def excess_share(result, model, queries, kind="patch"):  # -> [R]
    """Return the share that patches of m queries carry, less min(m/d, 1)."""
    if model not in result["model"] or queries not in result["queries"]:
        return None
    share = result["share"].sel(model=model, queries=queries, kind=kind).values
    return share - min(queries / float(result["d"]), 1.0)


def over_projection(result, model, queries):  # -> [R]
    patch = excess_share(result, model, queries)
    return None if patch is None else patch - excess_share(result, model, queries, "projection")


FULL = TIERS["full"]
NONLINEAR = {"model": NAMES[1:]}
PATCHES = {**NONLINEAR, "queries": (1, 3, 12)}
RELATIVE = "mean squared difference of answers over the mean square of the answers"
median = partial(Claim, statistic="median", null="gain")
CLAIMS = (
    median("one", "Dong et al. 2506.09048", "In linear attention one demonstration, fitted, gives "
           "the answers of the whole prompt", f"the {RELATIVE}",
           partial(error, model=NAMES[0], size=1), at_most=0.01,
           note="without MLPs and softmax d numbers are the answer to all queries"),
    median("one_key", "derived here", "In softmax attention one demonstration gives no part of the "
           "answers, since every query reads it with the weight 1", f"the {RELATIVE}",
           partial(error, model=NAMES[1], size=1), at_least=0.9),
    median("enough", "derived here", "In {model} models d + 1 fitted demonstrations are enough, as "
           "they are in linear attention", f"the {RELATIVE}", error, at_most=0.05, over=NONLINEAR),
    median("needed", "derived here", "In {model} models a few fitted demonstrations give all but "
           "1/20 of the answers", f"the fewest of {FULL.sizes} that do, or all of the prompt",
           needed, over={"model": NAMES}, note="an estimate"),
    Claim("gain", "derived here", "In {model} models fitting lowers the error of {size} "
          "demonstrations of the prompt", "the error of fitted demonstrations over that of as many "
          "random ones of the prompt, where the fit starts", fitted_over_start,
          statistic="ratio", over={"model": NAMES, "size": (1, 7)},
          null="none: the ratio is paired, and 1 without a difference"),
    median("moment", "derived here", "In {model} models the d + 1 demonstrations that are exact in "
           "linear attention miss a part of the answers", f"the {RELATIVE}",
           partial(error, source="moment"), over=NONLINEAR, note="an estimate"),
    Claim("share", "Dherin et al. 2507.16003", "In {model} models a patch from {queries} queries "
          "carries the share of the answer that it carries in linear attention", "the share of the "
          "squared answers to new queries that a patch from m queries carries, less min(m/d, 1)",
          excess_share, at_least=-0.05, at_most=0.05, over=PATCHES, null="projection"),
    Claim("projection", "derived here", "In {model} models a patch from {queries} queries carries "
          "what a random projection of its rank leaves of the best linear map", "the share that a "
          "patch carries less the share that is left", over_projection, at_least=-0.05,
          at_most=0.05, over=PATCHES, null="none: the difference is paired, and 0 without one"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.7, (1, 2))
    sizes = result["size"].values
    for name in result["model"].values:
        for source, style in (("fitted", {"label": name}), ("subset", {"mfc": "white", "lw": 0})):
            runs = np.stack([error(result, name, size, source) for size in sizes], axis=1)
            look = LOOKS[name] | dict(lw=0.8, capsize=2) | style
            plotting.mean_points(left, sizes, np.maximum(runs, FLOOR), statistic="median", **look)
        exact = max(np.median(error(result, name, source="moment")), FLOOR)
        left.plot(int(result["d"]) + 1, exact, "x", color=LOOKS[name]["color"], ms=6)
    left.axhline(1, color="grey", lw=0.8, ls=":")
    plotting.log_axes(left, x=True, y=True, ticks=sizes)
    left.set(xlabel="virtual demonstrations", ylabel="relative squared error")
    left.set_title("Virtual demonstrations")
    left.legend(loc=(0.02, 0.12))
    queries, d = result["queries"].values, int(result["d"])
    shares = {n: result["share"].sel(model=n, kind="patch") for n in result["model"].values}
    plotting.series(right, queries, shares, LOOKS, shift=0.3, lw=0, capsize=2)
    grid = np.linspace(0, queries.max(), 100)
    plotting.line(right, grid, np.minimum(grid / d, 1), "min(m/d, 1)")
    right.set(xlabel="queries m of a patch", ylabel="share of the answer to new queries")
    right.set_title("Patches")
    right.legend()
    d, models = int(result["d"]), result["model"].values
    few, many = (
        ", ".join(f"{np.median(error(result, name, size)):.2g} ({name})" for name in models)
        for size in result["size"].values[[0, -1]]
    )
    return figure, (
        f"One fitted demonstration has the median error {few}, in units of the mean square of the "
        f"answers, and {d + 1} have {many}. Hollow points are random demonstrations of the prompt, "
        f"where the fits start; crosses are the {d + 1} that are exact in linear attention. Points "
        f"are medians (a) and means (b) of {config.seeds} trainings, the line is theory. Errors "
        "below 1e-6 are drawn at 1e-6."
    )


FLOOR = 1e-6  # smaller errors are drawn here


if __name__ == "__main__":
    main(__file__)
