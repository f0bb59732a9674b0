"""Are deep layers worse conditioned, and do such layers tolerate clipping (A2, Figure 3)?

The condition number of a matrix is its largest singular value over its smallest. A2 finds it large
in deep layers, and clips the layer where it is largest (Algorithm 1). Models are small softmax
transformers with norms and MLPs, trained on regression or on two classes; each is compared with
its own weights before training. Each matrix, its heads joined as in A2, is clipped by itself, and
the harm is the risk after that over the risk before. Models that are worse than the answer 0 are
left out.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.stats import rankdata

from experiments.clipping import clipped
from experiments.models import tasks
from experiments.models.named import NamedModels
from lsa_lab.analyses import clipping
from lsa_lab.lab import Claim, main, plotting
from lsa_lab.models.matrices import matrices

NAMES = tuple(clipped.MODELS.values())
MODULES = {"W_q": "w_q", "W_k": "w_k", "W_v": "w_v", "W_o": "w_o"}
MODULES |= {"MLP in": "mlp_in", "MLP out": "mlp_out"}
STAGES = ("before", "after")  # training


@dataclass(frozen=True)
class Config(NamedModels):
    names: tuple[str, ...] = NAMES  # trained models
    rate: float = 0.75  # share of the singular values that is cut
    prompts: int = 4096  # for each model
    worst: float = 1.0  # a model enters below this multiple of the risk of the answer 0
    seed: int = 1411


TIERS = {
    "smoke": Config(small=True, rate=0.5, prompts=16, worst=1e9, seed=1),
    "quick": Config(NAMES[:1], prompts=512, seed=2),
    "full": Config(),
}


@jax.jit
@jax.vmap
def measure_conditions(params):  # leaves [R, ...] -> [R, L, M]
    stacks = matrices(params, list(MODULES.values()))
    numbers = [clipping.condition_number(stacks[name]) for name in MODULES.values()]
    return jnp.stack(numbers, axis=-1)


def measure(config, runs):  # -> Dataset
    spec, params = runs.spec, clipped.load_params(runs)
    initial = jax.tree.map(lambda leaf: leaf[runs.finished[0]], runs.initial)
    depth, count = spec.architecture.depth, len(params.w_q)
    places = [(layer, name) for layer in range(depth) for name in MODULES.values()]
    edits = [clipping.Edit(0, "w_q", 0.0)]  # nothing is cut
    edits += [clipping.Edit(*place, config.rate) for place in places]
    task = tasks.distribution(spec.task, dtype=jnp.float32)
    batch = tasks.draw_runs(jax.random.key(config.seed), task, count, config.prompts)
    predictions = clipped.predict_all(spec, clipped.edit_all(params, edits), batch)
    risks = clipped.compute_risks(predictions, batch)
    harm = (risks[:, 1:] / risks[:, :1]).reshape(count, depth, -1)
    stages = [np.asarray(measure_conditions(weights), float) for weights in (initial, params)]
    conditions = np.stack(stages, axis=1)
    able = clipped.find_able(risks[:, 0], batch, config.worst)
    return xr.Dataset(
        {
            "condition": (("run", "stage", "layer", "module"), conditions[able]),
            "harm": (("run", "layer", "module"), harm[able]),
            "left_out": spec.training.seeds - able.sum(),
        },
        {"stage": list(STAGES), "layer": np.arange(depth) + 1, "module": list(MODULES)},
    )


def compute(config, models):
    return xr.DataTree.from_dict({name: measure(config, runs) for name, runs in models.items()})


def select(result, model, name):  # -> (run, ...), or None
    return result[model][name].transpose("run", ...) if model in result.children else None


def compare_ends(logs):  # (run, layer, ...) -> the same without layer
    """Return the mean over the last half of the layers, less that over the first half."""
    half = logs.sizes["layer"] // 2
    deep, shallow = (logs.isel(layer=part) for part in (slice(-half, None), slice(half)))
    return deep.mean("layer") - shallow.mean("layer")


def compare_last(logs):  # (run, layer, ...) -> the same without layer
    """Return the last layer less the mean of the others."""
    return logs.isel(layer=-1) - logs.isel(layer=slice(-1)).mean("layer")


def condition_ratio(result, model, compare, trained_alone=False):  # -> [R], or None
    """Return a ratio of condition numbers of layers, after training over before."""
    values = select(result, model, "condition")
    if values is None:
        return None
    logs = compare(np.log(values)).mean("module")
    before = 0.0 if trained_alone else logs.sel(stage="before")
    return np.exp(logs.sel(stage="after") - before).values


def correlate_centred(left, right):  # (run, layer, module) twice -> [R]
    """Return rank correlations over matrices, the mean over layers subtracted for each module."""

    def rank(values):
        centred = (values - values.mean("layer")).transpose("run", "layer", "module")
        return [rankdata(row.round(12)) for row in centred.values.reshape(len(values), -1)]

    pairs = zip(rank(left), rank(right), strict=True)
    return np.array([np.corrcoef(*pair)[0, 1] for pair in pairs])


def predict_harm(result, model, predictor):  # -> [R], or None
    """Return the rank correlation of the harm with condition numbers, or with depth."""
    harm = select(result, model, "harm")
    if harm is None:
        return None
    values = harm["layer"].broadcast_like(harm)
    if predictor == "condition":
        values = np.log(select(result, model, "condition").sel(stage="after"))
    return correlate_centred(values, np.log(harm))


def condition_less_depth(result, model):  # -> [R], or None
    condition = predict_harm(result, model, "condition")
    return None if condition is None else condition - predict_harm(result, model, "depth")


def chosen_over_last(result, model):  # -> [R], or None
    """Return the harm in the layer with the largest condition number over that in the last."""
    logs = select(result, model, "harm")
    if logs is None:
        return None
    logs = np.log(logs)
    chosen = select(result, model, "condition").sel(stage="after").argmax("layer")
    return np.exp((logs.isel(layer=chosen) - logs.isel(layer=-1)).mean("module")).values


FULL = TIERS["full"]
MODELS = {"model": NAMES}
ENDS = "the condition numbers of the last half of the layers over those of the first half"
GEOMETRIC = "geometric means over layers and matrices"
PAIRED = "none: the ratio is paired, and 1 without an effect"
SEEN = "weights have no prompts to draw afresh: the pilot saw this number for regression"
figure_3 = partial(Claim, source="A2, Figure 3", over=MODELS, statistic="ratio", at_least=1.0,
                   note=SEEN)  # fmt: skip
figure_4 = partial(Claim, source="A2, Figure 4", over=MODELS)
CLAIMS = (
    figure_3("deep", statement="Training raises the condition numbers of deep layers more than "
             "those of shallow layers ({model})", quantity=f"{ENDS}, {GEOMETRIC}, after training "
             "over before", sample=partial(condition_ratio, compare=compare_ends), null=PAIRED),
    figure_3("deep_trained", statement="Deep layers have larger condition numbers than shallow "
             "layers ({model})", quantity=f"{ENDS}, {GEOMETRIC}, after training",
             sample=partial(condition_ratio, compare=compare_ends, trained_alone=True),
             null="deep"),
    figure_3("last", statement="Training raises the condition number of the last layer more than "
             "those of the other layers ({model})", quantity="the condition number of the last "
             f"layer over those of the others, {GEOMETRIC}, after training over before",
             sample=partial(condition_ratio, compare=compare_last), null=PAIRED),
    figure_4("predicts", statement="We read: the larger the condition number of a matrix, the less "
             "clipping it harms ({model})", quantity="the rank correlation of condition number and "
             "harm over all matrices, each less the mean over layers of its kind",
             sample=partial(predict_harm, predictor="condition"), at_most=0.0, null="over_depth"),
    figure_4("over_depth", statement="We read: the condition number of a matrix tells better than "
            "the depth of its layer how little clipping harms it ({model})",
            quantity="that rank correlation less the rank correlation of depth and harm",
            sample=condition_less_depth, at_most=0.0,
            null="none: the difference is paired, and 0 without an effect"),
    figure_4("chosen", statement="We read: clipping the layer with the largest condition number "
             "harms less than clipping the last layer ({model})", quantity="the harm in that layer "
             "over the harm in the last layer, geometric mean over kinds of matrices",
             sample=chosen_over_last, at_most=1.0, statistic="ratio", null=PAIRED),
)  # fmt: skip


LOOKS = plotting.looks(MODULES)


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.9, (1, 2))
    name = config.names[0]
    conditions, harm = (select(result, name, each) for each in ("condition", "harm"))
    layers, before = conditions["layer"].values, np.log(conditions.sel(stage="before")).mean("run")
    after = {module: conditions.sel(stage="after", module=module) for module in MODULES}
    plotting.series(left, layers, after, LOOKS, "ratio", 0.05, lw=0.8)
    for i, module in enumerate(MODULES):
        values, color = np.exp(before.sel(module=module)), LOOKS[module]["color"]
        plotting.line(left, layers + 0.05 * (i - 2.5), values, color=color, style=":")
    plotting.log_axes(left, y=True, y_ticks=(2, 5, 10, 20, 50, 100, 200, 500, 1000))
    left.set(xlabel="layer", xticks=layers, ylabel="condition number", title="Condition numbers")
    left.legend(ncol=2)
    plot_harm(right, conditions.sel(stage="after"), harm)
    deep, correlation, depth = (
        [float(np.mean(function(result, model))) for model in config.names]
        for function in (
            lambda *row: np.log(condition_ratio(*row, compare=compare_ends)),
            partial(predict_harm, predictor="condition"),
            partial(predict_harm, predictor="depth"),
        )
    )
    words = {name: task for task, name in clipped.MODELS.items()}
    texts = [
        f"In models of {words[model]} training multiplies the condition numbers of the last half "
        f"of the layers, relative to the first half, by {np.exp(deep[i]):.3g}; the harm of "
        f"clipping a matrix has a rank correlation of {correlation[i]:.2f} with its condition "
        f"number, and of {depth[i]:.2f} with its depth."
        for i, model in enumerate(config.names)
    ]
    left_out = sum(int(result[model]["left_out"]) for model in config.names)
    return figure, (
        f"{' '.join(texts)} The figure shows {words[name]}: a, geometric means over trainings, "
        "with 95 % intervals after training, dotted before; b, the same means, a digit being a "
        f"layer, with a share of {config.rate:g} of the singular values cut. {left_out} "
        "models are left out."
    )


def plot_harm(ax, conditions, harm):
    for module, look in LOOKS.items():
        color = look["color"]
        x, y = (np.exp(np.log(each.sel(module=module)).mean("run")) for each in (conditions, harm))
        ax.plot(x, y, color=color, lw=0.5, alpha=0.6)
        for layer, *place in zip(x["layer"].values, x.values, y.values, strict=True):
            ax.plot(*place, marker=f"${layer}$", color=color, ms=5)
        ax.plot([], [], color=color, label=module)
    ax.axhline(1, color="grey", lw=0.8, ls=":")
    ticks = (1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500)
    plotting.log_axes(ax, x=True, y=True, y_ticks=ticks)
    low, high = ax.get_xlim()
    plotting.log_axes(ax, x=True, ticks=[tick for tick in ticks if low <= tick <= high])
    ax.set(xlabel="condition number", ylabel="risk, clipped / whole", title="Harm of clipping")
    ax.legend()


if __name__ == "__main__":
    main(__file__)
