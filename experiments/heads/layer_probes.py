"""What can be read after each layer, and do later layers descend on the first (A4, Figure 5)?

After every layer a linear reader of the query's token is fitted to the answer; the null is the same
model before its training, whose weights are random. A4's mechanism is tested twice: does the first
layer hold the preprocessed covariates r_j x_j, r = Xᵀy/n, and is a model as good as descent on the
tokens that its first layer writes? Models of three layers with four heads are trained on sparse
regression. A token of the first layer is that of a query at the same x: it has seen its label as
one of many. Predictions are clipped at twice the largest label. A training that diverged, or is
worse than the answer 0, is left out. All risks are excess risks.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.models import tasks
from experiments.models.model import clip_predictions, compilation_key, transformer_config
from experiments.models.named import NamedModels
from lsa_lab import estimators, prompts
from lsa_lab.analyses import probes
from lsa_lab.lab import Claim, compute_each, geometric_mean, main, plotting, stack_rows
from lsa_lab.models import transformer
from lsa_lab.models.moments import compiled

NAMES = ("sparse", "two non-zeros", "sparse softmax")
STATES = ("trained", "untrained")
FEATURES = ("layer 1", "untrained layer 1", "raw covariates", "r_j x_j")


@dataclass(frozen=True)
class Config(NamedModels):
    names: tuple[str, ...] = NAMES  # trained models; the variant with the most heads is read
    n: int = 20  # demonstrations
    prompts: int = 2048  # of a run, to fit readers, and as many to judge them
    left_out: float = 0.02  # share of prompts not fitted: those with the longest tokens explode
    descents: int = 1024  # prompts of a run to descend on: half choose the step, half judge
    steps: int = 256  # of descent, at most
    share: float = 0.5  # of the largest step size that converges, in each prompt
    runs: int = 20  # trainings of each model, at most
    seed: int = 1821


TIERS = {
    "smoke": Config(("sparse",), True, n=8, prompts=256, descents=16, steps=4, seed=1),
    "quick": Config(("sparse",), prompts=512, descents=256, steps=64, runs=9, seed=2),
    "full": Config(),
}


def draw_prompts(config, task, run, tag, count):  # -> Prompt [count]
    key = jax.random.fold_in(jax.random.key(config.seed), 100 * run + tag)
    return tasks.draw(key, tasks.distribution(task, config.n), count)


def read_tokens(model, batch):
    """Return the query's token after each layer [B, L+1, D], its unit [B], and r_j x_j [B, d]."""

    def read(prompt):
        normal, unit = prompts.normalise(prompt)
        return model.forward(prompt).stream[:, -1], unit, probes.preprocess(normal)[-1]

    return jax.lax.map(read, batch, batch_size=min(512, len(batch.y)))


def keep_shortest(tokens, count):  # [B, L+1, D] -> [count], by the length after the last layer
    return jnp.argsort(jnp.linalg.norm(tokens[:, -1], axis=-1))[:count]


@partial(jax.jit, static_argnames="count")
def measure_readers(model, batch, fresh, count):  # -> {name: [L+1]}
    """Return the risk of the best linear reader after each layer, and R² of r_j x_j there."""
    tokens, unit, targets = read_tokens(model, batch)
    new, new_unit, new_targets = read_tokens(model, fresh)
    kept, new_kept = keep_shortest(tokens, count), keep_shortest(new, count)

    def read_layer(layer):
        states, new_states = layer  # [B, D]
        reader = probes.fit((unit[:, None] * states)[kept], batch.y_query[kept, None])
        answers = clip_predictions(new_unit * (new_states @ reader)[:, 0], fresh)
        probe = probes.fit(states[kept], targets[kept])
        held = probes.r_squared(probe, new_states[new_kept], new_targets[new_kept]).mean()
        return {"reader": ((answers - fresh.y_query) ** 2).mean(), "held": held}

    return jax.lax.map(read_layer, (tokens.swapaxes(0, 1), new.swapaxes(0, 1)))


@compiled
def measure_risks(model, batch, penalty):  # Prompt [B] -> [3]
    ridge = jax.vmap(lambda prompt: estimators.ridge(prompt, penalty) @ prompt.x_query)(batch)
    answers = jnp.stack([model.predict(batch), 0 * ridge, ridge])
    answers = jax.vmap(clip_predictions, (0, None))(answers, batch)
    return ((answers - batch.y_query[None]) ** 2).mean(1)


def forward_one_layer(model, tokens):
    config = transformer_config(model.spec)
    return transformer.forward(model.factored(), tokens, config, model.gates)


def list_features(models, prompt):  # -> [[n+1, D]] for FEATURES
    """Return the features of a prompt in its own units; ``models`` are the two first layers."""
    wide = prompts.pad_covariates(prompt, models[0].spec.architecture.padding_slots)
    slot = jnp.eye(wide.x.shape[1] + 1)[-1:]
    tokens = [probes.embed_as_queries(forward_one_layer, model, wide) for model in models]
    raw = jnp.concatenate([prompt.x, prompt.x_query[None]])
    return [*(probes.project_out(rows, slot) for rows in tokens), raw, probes.preprocess(prompt)]


def whiten(features):  # [2B, T, D] -> [2B, T, D]
    """Return tokens whose second moment, over the first half, is 1 in each of their directions.

    A linear map of the stream's padding changes descent on tokens, but not on white ones.
    """
    first = features[: len(features) // 2].reshape(-1, features.shape[-1])
    values, basis = jnp.linalg.eigh(first.T @ first / len(first))
    kept = values > 1e-9 * values[-1]
    gains = jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, values, 1)), 0)
    return features @ (basis * gains[None])


@partial(jax.jit, static_argnames=("steps", "share"))
def measure_descents(models, batch, steps, share):  # -> [features]
    """Return the risk of descent on FEATURES with the number of steps best on other prompts."""
    normal, unit = jax.vmap(prompts.normalise)(batch)
    features = jax.lax.map(partial(list_features, models), normal, batch_size=min(64, len(unit)))

    def descend(rows):  # [B, n+1, D] -> []
        descent = partial(probes.descend, num_steps=steps, share=share)
        answers = unit[:, None] * jax.vmap(descent)(rows, normal.y)  # [B, steps+1]
        clipped = jax.vmap(clip_predictions, (1, None), 1)(answers, batch)
        errors = (clipped - batch.y_query[:, None]) ** 2
        first, second = errors.reshape(2, -1, steps + 1).mean(1)
        return second[jnp.argmin(first)]

    return jnp.stack([descend(whiten(rows) if i < 2 else rows) for i, rows in enumerate(features)])


def measure_run(config, runs, run):  # -> {name: array}
    spec = runs.spec
    trained = runs.models(seeds=run).cast_float64().replace(spec=compilation_key(spec))
    params = jax.tree.map(lambda leaf: np.asarray(leaf[run], float), runs.initial)
    models = trained, trained.replace(params=params)
    batch, fresh = (draw_prompts(config, spec.task, run, tag, config.prompts) for tag in (1, 2))
    count = config.prompts - int(config.left_out * config.prompts)
    readers = [measure_readers(model, batch, fresh, count) for model in models]
    values = {name: np.stack([row[name] for row in readers]) for name in readers[0]}
    signal_var = (spec.task.sparsity or spec.task.d) * spec.task.weight_std**2
    penalty = spec.task.noise_std**2 * spec.task.d / (config.n * signal_var)
    values["risk"] = np.asarray(measure_risks(trained, fresh, penalty))
    descents = draw_prompts(config, spec.task, run, 3, config.descents)
    first = tuple(model.first(1) for model in models)
    values["descent"] = np.asarray(measure_descents(first, descents, config.steps, config.share))
    return values


def compute(config, models):
    data, dims = {}, {"risk": ("run", "rule"), "descent": ("run", "feature")}
    dims |= dict.fromkeys(("reader", "held"), ("run", "state", "layer"))
    for name, runs in models.items():
        finished = np.flatnonzero(runs.finished[-1])[: config.runs]
        rows = compute_each(name, finished.tolist(), partial(measure_run, config, runs))
        rows = [row for row in rows if row["risk"][0] < row["risk"][1]]  # better than the answer 0
        if not rows:
            raise ArithmeticError(f"no training of {name} is better than the answer 0")
        left_out = min(config.runs, runs.spec.training.seeds) - len(rows)
        data[name] = xr.Dataset(stack_rows(rows, dims), attrs={"left_out": left_out})
    coordinates = {"state": list(STATES), "rule": ["model", "0", "ridge"]}
    root = xr.Dataset(coords=coordinates | {"feature": list(FEATURES)})
    return xr.DataTree.from_dict({"/": root, **data})


def select(result, model, name):  # -> DataArray (run, ...), or None
    return result[model][name].transpose("run", ...) if model in result.children else None


def reader_ratio(result, model, layer=None):  # -> [R]
    """Return the factor of a reader's risk by one layer, trained over untrained.

    Without ``layer`` it is the geometric mean over layers.
    """
    reader = select(result, model, "reader")
    if reader is None:
        return None
    logs = np.log(reader.sel(state="trained") / reader.sel(state="untrained")).values
    factors = np.diff(logs, axis=1)  # [R, L]
    return np.exp(factors.mean(1) if layer is None else factors[:, layer - 1])


def descent_ratio(result, model, over):  # -> [R]
    """Return the risk of descent on the first layer's tokens over that on other features."""
    risk = select(result, model, "descent")
    if risk is None:
        return None
    return (risk.sel(feature="layer 1") / risk.sel(feature=over)).values


def model_over_descent(result, model):  # -> [R]
    """Return the model's risk over that of descent on its first layer's tokens."""
    if model not in result.children:
        return None
    risk = select(result, model, "risk").sel(rule="model")
    return (risk / select(result, model, "descent").sel(feature="layer 1")).values


def held_gain(result, model):  # -> [R]
    """Return R² of r_j x_j after layer 1, trained less untrained."""
    held = select(result, model, "held")
    if held is None:
        return None
    return (held.sel(state="trained") - held.sel(state="untrained")).values[:, 1]


OVER = {"model": NAMES}
PAIRED = "none: the ratio is paired, and 1 without an effect"
ratio = partial(Claim, statistic="ratio", null=PAIRED, over=OVER)
CLAIMS = (
    ratio("readable", "A4, Figure 5", "We read: each layer of {model} models makes the answer more "
          "readable than a layer with random weights", "the factor by which a layer changes the "
          "risk of a linear reader, trained over untrained, the geometric mean over layers",
          reader_ratio, at_most=1.0),
    ratio("readable_after", "A4, Figure 5", "We read: layer {layer} of {model} models makes the "
          "answer more readable than a layer with random weights", "the factor by which the layer "
          "changes the risk of a linear reader, trained over untrained", reader_ratio,
          at_most=1.0, over=OVER | {"layer": (1, 2, 3)}),
    ratio("later_layers", "A4, Mechanism", "The later layers of {model} models are as good as "
          "descent on what the first layer writes", "the model's risk over that of descent on the "
          "white tokens of its first layer, with the best number of steps", model_over_descent,
          at_least=0.8, at_most=1.25),
    ratio("over_untrained", "A4, Mechanism", "Descent on what the first layer of {model} models "
          "writes has a lower risk than on what a layer with random weights writes",
          "the risk of descent on white tokens, trained over untrained",
          partial(descent_ratio, over="untrained layer 1"), at_most=1.0),
    ratio("over_raw", "A4, Mechanism", "Descent on what the first layer of {model} models writes "
          "has a lower risk than on the raw covariates", "the risk of descent on white tokens over "
          "that on the raw covariates", partial(descent_ratio, over="raw covariates"), at_most=1.0),
    Claim("held", "A4, Mechanism", "The first layer of {model} models holds more of the "
          "preprocessed covariates than a layer with random weights", "R² of r_j x_j, read "
          "linearly from the query's token after layer 1, trained less untrained", held_gain,
          at_least=0.0, over=OVER, null="none: the difference is paired, and 0 without an effect"),
)  # fmt: skip

LOOKS = plotting.looks(NAMES, "o^s", (plotting.BLUE, plotting.GREEN, plotting.VERMILION))
PLACES = ("the\nmodel", "layer 1", "layer 1,\nuntrained", "raw\ncovariates", "$r_j x_j$")


def plot(result, config):  # -> Figure, caption
    figure, axes = plotting.figure(6.75, 2.9, (1, 2))
    descents = {}
    for model in config.names:
        risk, reader = select(result, model, "risk"), select(result, model, "reader")
        ridge, layers = risk.sel(rule="ridge"), np.arange(reader.sizes["layer"])
        for state, look in zip(STATES, (dict(label=model), dict(ls=":", mfc="white")), strict=True):
            runs, look = reader.sel(state=state) / ridge, dict(lw=0.9) | LOOKS[model] | look
            plotting.mean_points(axes[0], layers, runs, statistic="ratio", **look)
        risks = [risk.sel(rule=["model"]).values, select(result, model, "descent").values]
        descents[model] = np.concatenate(risks, axis=1) / ridge.values[:, None]
    plotting.series(axes[1], range(len(PLACES)), descents, LOOKS, "ratio", 0.2, ls="")
    axes[0].set_xticks(layers)
    axes[0].legend()
    for ax in axes:
        ax.axhline(1, color=plotting.BLACK, lw=0.8)
        plotting.log_axes(ax, y=True, y_ticks=(0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10))
    axes[0].set(xlabel="layer", ylabel="risk / ridge's", title="Linear reader of the query's token")
    axes[1].set_xticks(range(len(PLACES)), PLACES)
    axes[1].set_title("Descent on features")
    factors, gaps = (
        [geometric_mean(function(result, model)) for model in config.names]
        for function in (reader_ratio, model_over_descent)
    )
    left = sum(result[model].attrs["left_out"] for model in config.names)
    return figure, (
        f"A layer multiplies the risk of a linear reader by {min(factors):.2f} to "
        f"{max(factors):.2f} times the factor of a layer before training (dotted). Models have "
        f"{min(gaps):.2f} to {max(gaps):.2f} times the risk of descent on what their first layer "
        f"writes. Points are geometric means of trainings, over ridge's risk; {left} trainings "
        "that diverged or are worse than the answer 0 are left out."
    )


if __name__ == "__main__":
    main(__file__)
