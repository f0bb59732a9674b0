"""Which algorithm does the last layer of trained attention follow (2212.07677; A2, A.2)?

Layer t of a trained model answers a query x with ŷ_t, whose sensitivity ∂ŷ_t/∂x is the weights of a
linear rule: exactly in linear attention, locally in softmax attention. Five rules are fitted to the
answers of the last layer of each trained model: gradient descent (GD), GD++, GD with a matrix
for each step, Newton's iteration, and ridge regression, which takes no steps and has a penalty for
each layer. The distance of layer t to step t of a rule is |∂ŷ_t/∂x - w_t| on fresh prompts, over
the mean of |∂ŷ_t/∂x|. As a control the rules are fitted to GD++ itself, as it was fitted to the
linear models: a stack that runs GD++ would be as near to GD++, and as far from the others.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from experiments import training
from experiments.models.model import forward, prepare_prompt
from experiments.models.named import choose_models
from experiments.models.tasks import distribution, draw
from lsa_lab import estimators
from lsa_lab.analyses import alignment
from lsa_lab.analyses.implicit_gd import implied_weights
from lsa_lab.lab import Claim, main, plotting
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import tokens

MODELS = ("linear attention", "softmax attention")
CONTROL = "GD++ as control"
PATHS = {  # rule: (prompt, parameters) -> [L+1, d]
    "GD": estimators.gradient_descent,
    "GD++": alignment.descent_plus_plus,
    "preconditioned GD": alignment.preconditioned_descent,
    "Newton": lambda prompt, logs: alignment.newton(prompt, len(logs), jnp.exp(logs[0])),
    "ridge": lambda prompt, logs: jnp.pad(alignment.ridge_path(prompt, logs), ((1, 0), (0, 0))),
}


@dataclass(frozen=True)
class Config:
    """Each run has prompts of its own, of the task that its model was trained on."""

    small: bool = False  # models that train in seconds
    seeds: int = 16  # of each model
    fitting_steps: int = 1000
    fitting_batch: int = 128  # prompts of a step
    fitting_prompts: int = 4096
    test_prompts: int = 1000
    seed: int = 1047

    @property
    def models(self):
        return choose_models(MODELS, small=self.small)


TIERS = {
    "smoke": Config(True, 2, fitting_steps=5, fitting_batch=8, fitting_prompts=16,
                    test_prompts=16, seed=1),
    "quick": Config(seeds=9, fitting_steps=250, fitting_batch=32, fitting_prompts=1024,
                    test_prompts=100, seed=2),
    "full": Config(),
}  # fmt: skip


@partial(jax.jit, static_argnums=(0, 3))
def collect_answers(spec, params, keys, size):  # -> Prompt, ŷ [R, B, L+1], ∂ŷ/∂x [R, B, L+1, d]
    """Draw prompts, as the models read them, and the answers and sensitivities of all layers."""
    model, task = forward(spec), distribution(spec.task, dtype=jnp.float32)

    def answer(prompt, params):
        read, _ = prepare_prompt(spec.architecture, prompt)
        answers = layer_predictions(model(params, tokens(read)))
        return read, answers, implied_weights(model, params, read)

    def answer_run(row):
        return jax.vmap(answer, (0, None))(draw(row[1], task, size), row[0])

    return jax.lax.map(answer_run, (params, keys))


@jax.jit
def answer_as_control(prompts, parameters):  # Prompt [R, B], of GD++ [R, ...] -> as above
    def answer(prompt, parameters):
        path = PATHS["GD++"](prompt, parameters)
        return prompt, path @ prompt.x_query, path

    return jax.vmap(jax.vmap(answer, (0, None)))(prompts, parameters)


def list_starts(depth, d):  # -> {rule: parameters}
    steps = jnp.linspace(0.3, 0.9, depth, dtype=jnp.float32)  # equal ones are a saddle
    return {
        "GD": steps,
        "GD++": (steps, jnp.full_like(steps, 0.1)),
        "preconditioned GD": jnp.einsum("l,ij->lij", steps, jnp.eye(d, dtype=jnp.float32)),
        "Newton": jnp.zeros_like(steps),
        "ridge": -jnp.arange(depth, dtype=jnp.float32),
    }


def choose(answers, config, *, fitting):
    part = slice(config.fitting_prompts) if fitting else slice(config.fitting_prompts, None)
    return jax.tree.map(lambda rows: rows[:, part], answers)


def fit_rules(config, answers, label):  # Prompt [R, B] and answers -> parameters [R, ...]
    """Return the parameters with which each rule predicts most like the last layer of each run."""
    prompts, targets, weights = choose(answers, config, fitting=True)
    runs, size, depth, d = weights.shape

    def sample(key, leaves):
        chosen = jax.random.randint(key, (config.fitting_batch,), 0, size)
        return jax.tree.map(lambda rows: rows[chosen], leaves)

    def loss(parameters, batch, _):
        prompts, targets = batch
        ridge = partial(PATHS["ridge"], logs=parameters["ridge"])  # fitted to every layer
        by_layer = jax.vmap(lambda prompt: ridge(prompt) @ prompt.x_query)(prompts)  # [B, L+1]
        total = ((by_layer - targets) ** 2).mean(0).sum()
        for name in [*PATHS][:-1]:
            total += alignment.mismatch(PATHS[name], parameters[name], prompts, targets[:, -1])
        return total

    steps = config.fitting_steps
    optimizer = optax.adam(optax.cosine_decay_schedule(0.05, steps))
    starts = jax.tree.map(lambda x: jnp.stack([x] * runs), list_starts(depth - 1, d))
    keys = jax.random.split(jax.random.key(config.seed + 1), runs)
    recipe = loss, sample, optimizer, steps, starts, keys, (prompts, targets)
    return training.fit_runs(label, *recipe, needs_all=True).params


@jax.jit
def measure_distances(parameters, answers):  # -> [R, rules, L], [R], [R]
    """Return relative distances of layer t to step t, and the risks of the last layer and ridge."""

    def compare(prompt, predictions, weights, parameters):
        paths = jnp.stack([path(prompt, parameters[name]) for name, path in PATHS.items()])
        apart = jnp.linalg.norm(weights[None] - paths, axis=-1)[:, 1:]  # [rules, L]
        answers = predictions[-1], paths[-1, -1] @ prompt.x_query
        risks = [(answer - prompt.y_query) ** 2 for answer in answers]
        return apart, jnp.linalg.norm(weights, axis=-1)[1:], *risks

    def compare_run(row):
        parameters, answers = row
        rows = jax.vmap(partial(compare, parameters=parameters))(*answers)
        apart, size, risk, ridge = jax.tree.map(lambda values: values.mean(0), rows)
        return apart / size[None], risk, ridge

    return jax.lax.map(compare_run, (parameters, answers))


def compute(config, models):
    answers, rules = {}, {}
    keys = jax.random.split(jax.random.key(config.seed), (len(MODELS), config.seeds))
    for name, key in zip(MODELS, keys, strict=True):
        seeds = np.flatnonzero(models[name].finished[-1])[: config.seeds]
        params = jax.tree.map(jnp.asarray, models[name].models(seeds=seeds).params)
        size = config.fitting_prompts + config.test_prompts
        answers[name] = collect_answers(models[name].spec, params, key[: len(seeds)], size)
        rules[name] = fit_rules(config, answers[name], f"rules of {name}")
    answers[CONTROL] = answer_as_control(answers[MODELS[0]][0], rules[MODELS[0]]["GD++"])
    rules[CONTROL] = fit_rules(config, answers[CONTROL], f"rules of {CONTROL}")
    fresh = {name: choose(rows, config, fitting=False) for name, rows in answers.items()}
    measured = [measure_distances(rules[name], rows) for name, rows in fresh.items()]
    distance, risk, ridge = (np.stack(rows, dtype=float) for rows in zip(*measured, strict=True))
    data = {
        "distance": (("model", "run", "rule", "layer"), distance),
        "risk": (("model", "run"), risk),
        "ridge_risk": (("model", "run"), ridge),
    }
    coordinates = {"model": list(answers), "rule": list(PATHS)}
    return xr.Dataset(data, coordinates | {"layer": np.arange(1, distance.shape[-1] + 1)})


def last_distance(result, model, rule):  # -> [R]
    return result["distance"].sel(model=model, rule=rule).isel(layer=-1).values


def ridge_less_plus_plus(result, model):  # -> [R]
    return last_distance(result, model, "ridge") - last_distance(result, model, "GD++")


def distance_to_nearest(result, model):  # -> [R]
    """Return each run's distance to the rule that is nearest to the other runs on average."""
    values = np.stack([last_distance(result, model, rule) for rule in PATHS], axis=1)
    others = values.sum(0) - values
    return values[np.arange(len(values)), others.argmin(1)]


DISTANCE = "the distance of the last layer to"
CLAIMS = (
    Claim("nearer_to_plus_plus", "von Oswald et al. 2212.07677",
          "The last layer of trained {model} is nearer to GD++ than to ridge regression",
          f"{DISTANCE} ridge regression less that to GD++, as shares of its sensitivity",
          ridge_less_plus_plus, at_least=0.0, over={"model": MODELS}, null="control"),
    Claim("control", "derived here", "The distances recognise GD++: a rule that is GD++ is nearer "
          "to it than to ridge regression", f"{DISTANCE} ridge regression less that to GD++, where "
          "the layers are GD++ as it was fitted to linear attention",
          partial(ridge_less_plus_plus, model=CONTROL), at_least=0.0,
          null="none: this claim is the null of another claim"),
    Claim("near", "von Oswald et al. 2212.07677", "The last layer of trained {model} is within 10 "
          "% of one of five known rules", f"{DISTANCE} the rule that is nearest to the other runs, "
          "as a share of its sensitivity", distance_to_nearest, at_most=0.1, over={"model": MODELS},
          null="none: a rule without relation to the layer has a distance near 1"),
)  # fmt: skip

LOOKS = {
    "GD": plotting.METHOD["descent"],
    "GD++": plotting.METHOD["GD++"],
    "preconditioned GD": plotting.METHOD["preconditioned descent"],
    "Newton": {"color": plotting.VERMILION, "marker": "X"},
    "ridge": plotting.METHOD["ridge"] | {"marker": "_"},
}


def plot(result, config):  # -> Figure, caption
    figure, (left, middle, right) = plotting.figure(6.75, 2.6, (1, 3), sharey=True)
    layers = result["layer"].values
    for ax, model in zip((left, middle, right), result["model"].values, strict=True):
        runs = {rule: result["distance"].sel(model=model, rule=rule) for rule in LOOKS}
        plotting.series(ax, layers, runs, LOOKS, shift=0.05, lw=0.8, capsize=2)
        plotting.log_axes(ax, y=True)
        ax.set(xlabel="layer, or step", title=model[0].upper() + model[1:], xticks=layers)
    left.set_ylabel("relative distance of ∂ŷ/∂x")
    left.legend()
    texts = []
    for model in MODELS:
        ridge, plus_plus = (100 * last_distance(result, model, x).mean() for x in ("ridge", "GD++"))
        texts.append(f"that of {model} is {ridge:.2g} % and {plus_plus:.2g} %")
    ratio = np.exp(np.log(result["risk"] / result["ridge_risk"]).mean("run"))
    linear, softmax = (float(ratio.sel(model=model)) for model in MODELS)
    return figure, (
        f"Distances of the last layer from ridge regression and GD++: {'; '.join(texts)}. The "
        f"models have {linear:.3g} and {softmax:.3g} times the risk of the ridge regression fitted "
        f"to them. In c the layers are GD++ itself. Points are means of {config.seeds} seeds."
    )


if __name__ == "__main__":
    main(__file__)
