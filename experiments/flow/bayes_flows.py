"""Do the gradients of a trained stack become those of the Bayes rule (docs/theory)?

A model with nearly the risk of the Bayes rule has nearly its gradients ("Near in risk, near in
flow"): the squared distance of the gradients by the labels, in the metric of their covariance, is
the mean square of δ, the difference of both answers, times a degree. The degree is 1 for every rule
that is linear in the labels. How unequal gradients are tells no rules apart; the correlation of
their logarithms with those of the Bayes rule does. Stacks are trained here, at several depths.
"""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.flow import measures
from experiments.models.model import Model
from experiments.models.specs import dense_spec
from lsa_lab import estimators
from lsa_lab.lab import Claim, compute_each, main, plotting, stack_rows

STACKS = tuple(
    f"{kernel}, {prior}, depth {depth}"
    for kernel in ("linear", "softmax")
    for prior, depth in (("dense", 1), ("dense", 2), ("dense", 4), ("sparse", 4))
)
DEEP = tuple(stack for stack in STACKS if not stack.endswith("depth 1"))
DENSE = tuple(stack for stack in STACKS if "dense" in stack)
MOST_LAYERS = 4


@dataclass(frozen=True)
class Config:
    stacks: tuple[str, ...] = STACKS  # kernel, prior of the task, layers
    d: int = 5  # covariates
    n: int = 16  # demonstrations of a prompt
    sparsity: int = 2  # weights that are not zero under a sparse prior
    noise_std: float = 0.8  # of the labels
    heads: int = 2
    width: int = 16  # of the stream of softmax stacks
    linear_steps: int = 8000
    softmax_steps: int = 4000
    batch: int = 64
    parts: int = 5  # equal parts of a training; a stack is compared after each
    prompts: int = 256  # for each training
    descents: tuple[int, ...] = (1, 2, 4, 8, 16)  # steps of descent, for comparison
    penalties: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0)  # of ridge, times the right one
    runs: int = 16  # trainings of each stack
    seed: int = 1202

    @property
    def models(self):
        return {name: make_spec(self, *name.split(", ")) for name in self.stacks}


SMOKE = dict(d=2, n=4, linear_steps=4, batch=4, parts=2, descents=(1, 2), penalties=())
QUICK = dict(linear_steps=1500, parts=3, prompts=64, descents=(1, 4), penalties=(10.0,))
TIERS = {
    "smoke": Config(STACKS[1:2], **SMOKE, prompts=4, runs=2, seed=1),
    "quick": Config(STACKS[1:3], **QUICK, seed=2),
    "full": Config(),
}


def make_spec(config, kernel, prior, depth):
    """Return linear attention that normalises prompts, or softmax attention in a wider stream."""
    layers, width = int(depth.split()[1]), config.width
    recipe = dict(batch=config.batch, checkpoints=config.parts, seeds=config.runs, seed=config.seed)
    if kernel == "linear":
        recipe |= dict(steps=config.linear_steps, clip=0.1, beta_2=0.99)
        recipe |= dict(learning_rate=min(0.005, 0.016 / layers))
        shape = dict(normalise_prompt=True)
    else:
        recipe |= dict(steps=config.softmax_steps, learning_rate=0.003)
        shape = dict(key_width=width // config.heads, width=width, init_scale=0.5)
    shape |= dict(heads=config.heads, noise_std=config.noise_std, training=recipe)
    spec = dense_spec(kernel, config.d, config.n, layers, **shape)
    sparsity = config.sparsity if prior == "sparse" else None
    return replace(spec, task=replace(spec.task, sparsity=sparsity))


def compare_answer(answer, gradients, prompt, task):  # -> {name: [] or [L]}
    noise_var = task.noise_std**2
    rule = partial(measures.answer_by_bayes, noise_var=noise_var, sparsity=task.sparsity)
    best, best_gradient = measures.differentiate(rule, prompt)
    g = (gradients[-1] - best_gradient)[:, -1]  # by the labels, whose covariance is XXᵀ + σ²I
    return {
        "correlation": measures.correlate_sizes(gradients, best_gradient),
        "answers": (answer - best) ** 2,
        "gradients": noise_var * g @ g + jnp.sum((prompt.x.T @ g) ** 2),
        "error": (best - prompt.y_query) ** 2,
    }


@jax.jit
def compare_stacks(model, paths, prompts):  # leaves [R, P, ...], Prompt [R, B] -> {[R, P, ...]}
    def measure(model, prompt):
        answer = model.predict(jax.tree.map(lambda leaf: leaf[None], prompt))[0]
        gradients = measures.compute_gradients(model, prompt)
        return compare_answer(answer, gradients, prompt, model.spec.task)

    def average(params, batch):
        rows = jax.vmap(partial(measure, model.replace(params=params)))(batch)
        return jax.tree.map(lambda leaf: leaf.mean(0), rows)

    def run(row):
        return jax.lax.map(partial(average, batch=row[1]), row[0])

    return jax.lax.map(run, (paths, prompts))


def list_rules(config):  # -> {name: Prompt -> []}
    """Return rules that are linear in the labels: steps of descent, and ridge regression."""
    step = 1 / (1 + (config.d / config.n) ** 0.5) ** 2  # about 1/λ_max

    def descend(prompt, steps):
        return estimators.gradient_descent(prompt, jnp.full(steps, step))[-1] @ prompt.x_query

    def ridge(prompt, factor):
        penalty = factor * config.noise_std**2 / config.n
        return estimators.ridge(prompt, penalty) @ prompt.x_query

    rules = {f"descent {k}": partial(descend, steps=k) for k in config.descents}
    return rules | {f"ridge {k:g}": partial(ridge, factor=k) for k in config.penalties}


def draw_prompts(config, spec):  # -> Prompt [R, B]
    batches = measures.draw_prompts(config.seed + 10**6, spec, config.prompts)
    return jax.tree.map(lambda leaf: leaf.astype(float), batches)


def compare_rules(config, spec):  # -> {name: [rules, R]}
    rows, batches = [], draw_prompts(config, spec)
    for rule in list_rules(config).values():

        def measure(prompt, rule=rule):
            answer, gradient = measures.differentiate(rule, prompt)
            row = compare_answer(answer, gradient[None], prompt, spec.task)
            return row | {"correlation": row["correlation"][0]}

        values = jax.jit(jax.vmap(jax.vmap(measure)))(batches)
        rows.append({name: np.asarray(x).mean(1) for name, x in values.items()})
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def compare(config, runs):  # -> {name: [R, P, ...]}
    paths = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), runs.path)
    model = Model(runs.spec, None)
    rows = jax.device_get(compare_stacks(model, paths, draw_prompts(config, runs.spec)))
    layers = rows["correlation"]
    absent = np.full((*layers.shape[:2], MOST_LAYERS - layers.shape[2]), np.nan)
    return rows | {"correlation": np.concatenate([layers, absent], axis=2)}


def compute(config, models):
    rows = compute_each("stacks", [*models.values()], partial(compare, config))
    dims = {name: ("stack", "run", "place") for name in rows[0]}
    dims["correlation"] = (*dims["correlation"], "layer")
    data = stack_rows(rows, dims)
    priors = {name.split(", ")[1]: runs.spec for name, runs in models.items()}
    rows = compute_each("rules", [*priors.values()], partial(compare_rules, config))
    rows = [{f"rule {name}": values for name, values in row.items()} for row in rows]
    data |= stack_rows(rows, dict.fromkeys(rows[0], ("prior", "rule", "run")))
    places = {"stack": list(models), "prior": list(priors), "rule": list(list_rules(config))}
    return xr.Dataset(data, places)


def select(result, stack, name="correlation"):  # -> DataArray (run, place, ...), or None
    if stack not in result["stack"]:
        return None
    return result[name].sel(stack=stack).transpose("run", "place", ...)


def find_last(correlation):  # DataArray (..., layer) -> [...]
    """Return the correlation at the last layer that a stack has."""
    depth = int(np.isfinite(correlation.values).all(tuple(range(correlation.ndim - 1))).sum())
    return correlation.values[..., depth - 1]


def last_less_descent(result, stack):  # -> [R], or None
    """Return the correlation at the last layer less that of one step on the same prompts."""
    correlation = select(result, stack)
    if correlation is None:
        return None
    prior = stack.split(", ")[1]
    descent = result["rule correlation"].sel(prior=prior, rule="descent 1").values
    return find_last(correlation.isel(place=-1)) - descent


def last_less_first(result, stack):  # -> [R], or None
    correlation = select(result, stack)
    if correlation is None:
        return None
    end = correlation.isel(place=-1)
    return find_last(end) - end.isel(layer=0).values


def nonlinear_part(result, stack):  # -> [R], or None
    squares = [select(result, stack, name) for name in ("gradients", "answers")]
    if squares[0] is None:
        return None
    gradients, answers = (each.isel(place=-1).values for each in squares)
    return gradients / answers - 1


def excess(result, stack):  # -> [R, P]
    """Return E δ² over the Bayes rule's risk, the mean over all runs."""
    return (select(result, stack, "answers") / select(result, stack, "error").mean()).values


median = partial(Claim, source="derived here", statistic="median")
CLAIMS = (
    median("closer_than_descent", statement="The gradients of trained stacks ({stack}) correlate "
           "with the Bayes rule's more than those of one step of descent do",
           quantity="the correlation of log gradients at the last layer with the Bayes rule's, "
           "less that of one step of descent on the same prompts", sample=last_less_descent,
           at_least=0.0, over={"stack": DEEP}, null="none: the difference is paired"),
    median("rises", statement="From the first layer to the last, gradients of trained stacks "
           "({stack}) come to correlate with the Bayes rule's",
           quantity="the correlation of log gradients with the Bayes rule's at the last layer less "
           "that at the first", sample=last_less_first, at_least=0.0, over={"stack": DEEP},
           null="none: the difference is paired, and 0 without an effect of depth"),
    median("nonlinear", statement="The part of the distance between the gradients of trained "
           "stacks ({stack}) and the Bayes rule's that is not linear in the labels",
           quantity="E ∇δᵀC∇δ / E δ² less 1", sample=nonlinear_part, over={"stack": DENSE},
           null="none: it is 0 for every rule that is linear in the labels"),
)  # fmt: skip

LOOKS = {"linear, dense": ("linear", "-"), "softmax, dense": ("softmax", "-")}
LOOKS |= {"linear, sparse": ("linear", ":"), "softmax, sparse": ("softmax", ":")}


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.8, (1, 2), sharey=True)
    for stack in config.stacks:
        kind, _, depth = stack.rpartition(", ")
        method, style = LOOKS[kind]
        look = plotting.METHOD[method] | dict(ls=style, ms=2 + int(depth.split()[1]), mfc="white")
        last = find_last(select(result, stack))
        left.plot(np.median(excess(result, stack), axis=0), np.median(last, axis=0), **look)
    rules = result.isel(prior=0)
    x = (rules["rule answers"] / rules["rule error"].mean()).mean("run")
    y = rules["rule correlation"].mean("run")
    for word, color in (("descent", plotting.GREEN), ("ridge", plotting.BLACK)):
        chosen = [word in rule for rule in result["rule"].values] & (x.values > 0.01)
        plotting.line(left, x[chosen], y[chosen], word, color, "--")
    left.set(xscale="log", xlabel="excess over the Bayes rule's risk", title="Along training")
    left.set_ylabel("correlation of log gradients")
    left.legend()
    for kind, (method, style) in LOOKS.items():
        stacks = [stack for stack in config.stacks if stack.startswith(kind)]
        if stacks:
            end = select(result, stacks[-1]).isel(place=-1).values
            end = end[:, np.isfinite(end).all(0)]
            look = plotting.METHOD[method] | dict(ls=style, capsize=1.5)
            plotting.mean_points(right, np.arange(end.shape[1]) + 1, end, kind, "median", **look)
    right.set(xlabel="layer", xticks=range(1, MOST_LAYERS + 1), title="By layer, after training")
    right.legend()
    ends = [np.median(find_last(select(result, x).isel(place=-1))) for x in config.stacks]
    best, worst = int(np.argmax(ends)), int(np.argmin(ends))
    parts = [x for stack in DENSE if (x := nonlinear_part(result, stack)) is not None]
    return figure, (
        f"As a stack's answers approach the Bayes rule's, so do its gradients: log gradients "
        f"correlate by {ends[best]:.2f} ({config.stacks[best]}) and {ends[worst]:.2f} "
        f"({config.stacks[worst]}). Dense stacks lie near the curve of descent, ridge "
        f"regression above it. The squared distance of the gradients is at most "
        f"{1 + max(map(np.median, parts)):.2f} times that of the answers, and equals it for rules "
        "that are linear in the labels. Larger markers are deeper stacks."
    )


if __name__ == "__main__":
    main(__file__)
