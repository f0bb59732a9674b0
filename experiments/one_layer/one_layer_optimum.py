"""Does one trained layer reach the optimum of theory, and where does it fail (2306.09927)?

One layer of linear attention predicts bᵀ A x_query with b = Xᵀy/n. Among all layers, of any number
of heads, A* = Γ⁻¹ has the least risk, Γ = (1 + 1/n) Λ + ((tr Λ + σ²)/n) I. Training fixes its step
size: on covariates of a larger scale a part of the risk remains for any number of demonstrations in
the test prompt (docs/theory, "The floor under shift"). Layers trained on isotropic Gaussians are
also tested at other scales and lengths and on standardised columns of three real tables.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments import training
from lsa_lab.lab import Claim, main, plotting
from lsa_lab.models.linear_attention import Params
from lsa_lab.models.moments import predictions_from_moments
from lsa_lab.tasks.linear import LinearTask, sample_moments_batch
from lsa_lab.theory import optimum

TASKS = ("isotropic", "anisotropic", "noisy")
TABLES = ("diabetes", "wine", "breast cancer")
FAR = 4.0  # the scale of covariates at which more demonstrations do not help


@dataclass(frozen=True)
class Config:
    """Risks are excess risks: the target w·x_query has no label noise."""

    d: int = 6  # covariates of the three tasks
    lengths: tuple[int, ...] = (4, 16, 64, 256)  # demonstrations n, in training and test
    heads: tuple[int, ...] = (1, 4)  # of a layer, trained with each number
    noise_var: float = 0.4  # of a label, in the task "noisy"
    shift_d: int = 10  # covariates of the layers that are tested at other scales and lengths
    shift_n: int = 12  # demonstrations in training of these layers, and of a prompt of a table
    scales: tuple[float, ...] = (0.5, 1.0, 2.0, FAR)  # c: the covariates have covariance c I
    shift_lengths: tuple[int, ...] = (6, 24, 96, 384)  # demonstrations of a test prompt
    test_prompts: int = 20_000  # for each run
    descent_steps: int = 5  # of gradient descent with each prompt's own step size
    runs: int = 16
    steps: int = 2000
    batch: int = 256
    learning_rate: float = 0.1
    seed: int = 1001


SMOKE = dict(d=2, lengths=(4,), heads=(1,), scales=(FAR,), shift_lengths=(6,), batch=16, runs=3)
QUICK = dict(lengths=(4, 16, 64), shift_lengths=(6, 24, 96), steps=1000, batch=128, runs=9)
TIERS = {
    "smoke": Config(**SMOKE, test_prompts=64, steps=20, seed=1),
    "quick": Config(**QUICK, test_prompts=4000, seed=2),
    "full": Config(),
}


predict = jax.jit(predictions_from_moments)


def train(config, tasks, n, heads):  # -> for each number of heads Params [T R, ...]
    """Train ``runs`` layers on each of T tasks (Λ, σ²), all numbers of heads on the same batches.

    Adam treats each weight by itself: the sum of the losses trains each layer as if it were alone.
    """
    count, d = len(tasks[1]) * config.runs, tasks[0].shape[-1]
    rng = np.random.default_rng([config.seed, d, n])
    shapes = [(2, count, 1, num_heads, d + 1, d + 1) for num_heads in heads]
    start = tuple(Params(*jnp.asarray(0.1 * rng.normal(size=s), jnp.float32)) for s in shapes)

    def sample(key, task):
        covariance, noise_var = task
        linear = LinearTask(n, d, noise_std=jnp.sqrt(noise_var), covariance=covariance)
        return sample_moments_batch(key, linear.replace(dtype=jnp.float32), config.batch)

    def loss(layers, batch, task):
        moment, x_query, y_query = batch
        errors = [predictions_from_moments(layer, moment, x_query) - y_query for layer in layers]
        return sum(jnp.mean(error**2) for error in errors)

    keys = jax.random.split(jax.random.key(rng.integers(2**31)), count)
    repeated = tuple(jnp.asarray(np.repeat(leaf, config.runs, 0), jnp.float32) for leaf in tasks)
    recipe = loss, sample, training.build_adam(config.learning_rate, config.steps), config.steps
    return training.train(f"d = {d}, n = {n}", *recipe, start, keys, repeated, needs_all=True)


def draw_prompts(rng, covariance, noise_var, n, size):  # -> [e, e, B], [d, B], [B]
    root = np.linalg.cholesky(covariance)
    x = rng.standard_normal((size, n + 1, len(root))) @ root.T
    y = (x @ rng.standard_normal((size, len(root), 1)))[..., 0]
    labels = y[:, :n] + noise_var**0.5 * rng.standard_normal((size, n))
    tokens = np.concatenate([x[:, :n], labels[..., None]], axis=-1)
    moments = tokens.transpose(0, 2, 1) @ tokens / n
    return moments.transpose(1, 2, 0), x[:, n].T, y[:, n]


def select_rows(params, rows):
    return jax.tree.map(lambda leaf: leaf[rows], params)


def measure_excess(layers, task, n, size, rng):  # -> [R, H, 2], []
    """Return each layer's risk and its excess over A* as a share of the last number, A*'s risk."""
    hypotheses = task[0], np.eye(len(task[0])), n, task[1]
    best = optimum.one_layer(*hypotheses)
    least, measured = float(optimum.one_layer_risk(best, *hypotheses)), []
    for r in range(len(layers[0].w_kq)):
        moment, x_query, y_query = draw_prompts(rng, *task, n, size)
        optimal = np.einsum("fb,fg,gb->b", moment[:-1, -1], best, x_query, optimize=True)
        for layer in layers:
            predictions = predict(select_rows(layer, r), moment, x_query)
            errors = (predictions - y_query) ** 2
            excess = (errors - (optimal - y_query) ** 2).mean() / least
            measured.append((errors.mean(), excess))
    return np.reshape(measured, (-1, len(layers), 2)), least


def compute_tasks(config):
    d, measured = config.d, []
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((d, d)))[0]  # the same always
    rotated = rotation * np.resize([1.0, 1.0, 0.5, 0.25, 1.0], d) @ rotation.T
    covariances = np.stack([np.eye(d), rotated, np.eye(d)])
    tasks = covariances, np.array([0.0, 0.0, config.noise_var])  # Λ and σ²
    for n in config.lengths:
        layers, rng = train(config, tasks, n, config.heads), np.random.default_rng([config.seed, n])
        for i, task in enumerate(zip(*tasks, strict=True)):
            task_layers = select_rows(layers, slice(i * config.runs, (i + 1) * config.runs))
            measured.append(measure_excess(task_layers, task, n, config.test_prompts, rng))
    risks, least = (np.stack(values) for values in zip(*measured, strict=True))
    risks = risks.reshape(len(config.lengths), len(TASKS), *risks.shape[1:])
    axes = "length", "task", "run", "heads"
    data = {"risk": (axes, risks[..., 0]), "excess": (axes, risks[..., 1])}
    data["least_risk"] = axes[:2], least.reshape(risks.shape[:2])
    lengths, heads = list(config.lengths), list(config.heads)
    return xr.Dataset(data, {"length": lengths, "task": list(TASKS), "heads": heads})


def descend(moment, x_query, steps):  # [e, e, B], [d, B] -> [B]
    """Return predictions of gradient descent from 0 with the step 1/λ_max(XᵀX/n) of each prompt."""
    gram, target = moment[:-1, :-1].transpose(2, 0, 1), moment[:-1, -1].T[..., None]
    step_sizes = 1 / np.linalg.eigvalsh(gram)[:, -1:, None]
    weights = np.zeros_like(target)
    for _ in range(steps):
        weights = weights + step_sizes * (target - gram @ weights)
    return (weights[..., 0] * x_query.T).sum(1)


def measure_shift(layer, m, config, rng):  # -> [scales], [], []
    """Return the risks / tr Λ' of a layer, of descent and of predicting 0 on the same prompts."""
    identity = np.eye(config.shift_d)
    moment, x_query, y_query = draw_prompts(rng, identity, 0.0, m, config.test_prompts)
    # A prompt of scale c is √c times one of scale 1, and descent has the same share.
    predictions = [predict(layer, c * moment, c**0.5 * x_query) / c**0.5 for c in config.scales]
    others = descend(moment, x_query, config.descent_steps), np.zeros_like(y_query)
    *risks, descent, zero = (
        np.mean((guess - y_query) ** 2) / config.shift_d for guess in (*predictions, *others)
    )
    return np.array(risks), descent, zero


def compute_shift(config, layers):
    rng, measured = np.random.default_rng([config.seed, 0]), []
    for r in range(config.runs):
        layer = select_rows(layers, r)
        rows = [measure_shift(layer, m, config, rng) for m in config.shift_lengths]
        measured.append([np.stack(values, axis=-1) for values in zip(*rows, strict=True)])
    risk, descent, zero = (np.stack(values) for values in zip(*measured, strict=True))
    identity = np.eye(config.shift_d)
    best = optimum.one_layer(identity, identity, config.shift_n, 0.0)  # Γ⁻¹ of the training
    theory = [
        [optimum.shifted_risk(best, c * identity, c * identity, identity, m, 0.0)
         / (c * config.shift_d) for m in config.shift_lengths] for c in config.scales
    ]  # fmt: skip
    data = {
        "risk": (("run", "scale", "length"), risk),
        "theory": (("scale", "length"), np.array(theory)),
        "descent": (("run", "length"), descent),
        "zero": (("run", "length"), zero),
    }
    return xr.Dataset(data, {"scale": list(config.scales), "length": list(config.shift_lengths)})


def load_table(name):  # -> [rows, e]
    """Load a table that is part of scikit-learn; standardise columns, the label last."""
    from sklearn import datasets

    if name == "diabetes":  # 442 patients; the label is the progression of the disease
        values = np.column_stack(datasets.load_diabetes(return_X_y=True, scaled=False))
    elif name == "wine":  # 178 wines; the label is the alcohol
        values = np.roll(datasets.load_wine().data, -1, axis=1)
    else:  # 569 patients, 10 mean measurements; the label is the diagnosis of a tumour
        x, y = datasets.load_breast_cancer(return_X_y=True)
        values = np.column_stack([x[:, :10], y])
    return (values - values.mean(0)) / values.std(0)


def measure_table(layers, table, config, rng):  # -> [3, G]
    """Return squared errors of the layers (their mean), of descent, and of the mean label 0."""
    size = config.shift_n + 1
    # Each row is a query once; its demonstrations are the others of its random group of n + 1.
    rotations = np.add.outer(np.arange(size), np.arange(size)) % size
    groups = rng.permutation(len(table))[: len(table) // size * size].reshape(-1, size)
    tokens = table[groups[:, rotations]].reshape(-1, size, table.shape[1])
    moment = (tokens[:, 1:].transpose(0, 2, 1) @ tokens[:, 1:] / config.shift_n).transpose(1, 2, 0)
    x_query, y_query = tokens[:, 0, :-1].T, tokens[:, 0, -1]
    runs = [select_rows(layers, r) for r in range(config.runs)]
    errors = np.mean([(predict(layer, moment, x_query) - y_query) ** 2 for layer in runs], axis=0)
    descent = (descend(moment, x_query, config.descent_steps) - y_query) ** 2
    return np.stack([errors, descent, y_query**2]).reshape(3, -1, size).mean(-1)


def compute(config, models):
    tables, learners = {name: load_table(name) for name in TABLES}, ["layer", "descent", "mean"]
    layers = {}
    for d in sorted({config.shift_d, *(table.shape[1] - 1 for table in tables.values())}):
        (layers[d],) = train(config, (np.eye(d)[None], np.zeros(1)), config.shift_n, (1,))
    shift = compute_shift(config, layers[config.shift_d])
    groups = {"tasks": compute_tasks(config), "shift": shift}
    for i, (name, table) in enumerate(tables.items()):
        rng = np.random.default_rng([config.seed, 1, i])
        errors = measure_table(layers[table.shape[1] - 1], table, config, rng)
        data = {"error": (("learner", "group"), errors)}
        groups[f"tables/{name}"] = xr.Dataset(data, {"learner": learners})
    return xr.DataTree.from_dict(groups)


def excess(result, **cell):  # -> [R]
    values = result["tasks"]["excess"]
    if any(value not in values[axis] for axis, value in cell.items()):
        return None
    return values.sel(cell).values


def risk_over_theory(result, scale, length):  # -> [R]
    shift = result["shift"]
    if scale not in shift["scale"] or length not in shift["length"]:
        return None
    return (shift["risk"] / shift["theory"]).sel(scale=scale, length=length).values


def less_than_zero(result, learner):  # -> [R]
    """Return the risk at scale FAR and the longest prompt less that of predicting 0."""
    shift = result["shift"].to_dataset().isel(length=-1)
    risk = shift["risk"].sel(scale=FAR) if learner == "layer" else shift["descent"]
    return (risk - shift["zero"]).values


def table_difference(result, table, baseline):  # -> [G]
    errors = result["tables"][table]["error"]
    return (errors.sel(learner="layer") - errors.sel(learner=baseline)).values


FULL = TIERS["full"]
NULL = "none: this claim is the null of another claim"
derived = partial(Claim, source="derived here")
CLAIMS = (
    Claim("risk", "Zhang et al. 2306.09927", "On the {task} task with n = {length} a trained layer "
          "with H = {heads} has the least risk that any layer can have", "the excess over the "
          "optimum's risk on the same prompts, as a share of that risk", excess, at_most=0.02,
          simultaneous=True, over={"task": TASKS, "length": FULL.lengths, "heads": FULL.heads},
          null="none: the optimum on the same prompts is the comparison"),
    derived("theory", statement="Theory predicts the risk of a trained layer on covariates of "
            "{scale} times the scale with {length} demonstrations",
            quantity="the measured risk over the risk that theory gives Γ⁻¹",
            sample=risk_over_theory, at_least=0.95, at_most=1.05, simultaneous=True,
            over={"scale": FULL.scales, "length": FULL.shift_lengths},
            null="none: the prediction has no free parameter"),
    derived("floor", statement=f"At {FAR:g} times the scale even the longest prompt leaves a "
            "trained layer worse than predicting zero",
            quantity="the risk less that of predicting 0 on the same prompts, as a share of tr Λ'",
            sample=partial(less_than_zero, learner="layer"), at_least=0.0, null="floor_descent"),
    derived("floor_descent", statement=f"At {FAR:g} times the scale, on the same prompts, descent "
            "with each prompt's own step size is better than predicting zero",
            quantity="the risk of descent less that of predicting 0, as a share of tr Λ'",
            sample=partial(less_than_zero, learner="descent"), at_most=0.0, null=NULL),
    derived("table", statement="A layer trained on isotropic Gaussians predicts better than the "
            "mean on the {table} table", quantity="the layer's squared error less that of the "
            "mean, over the label's variance", sample=partial(table_difference, baseline="mean"),
            at_most=0.0, over={"table": TABLES}, null="table_descent", note="columns are "
            "standardised over the whole table; a group has 13 rows of its own"),
    derived("table_descent", statement="Descent with each prompt's own step size predicts better "
            "than this layer on the {table} table",
            quantity="the layer's squared error less that of descent, over the label's variance",
            sample=partial(table_difference, baseline="descent"), at_least=0.0,
            over={"table": TABLES}, null=NULL),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, middle, right) = plotting.figure(6.75, 2.5, (1, 3))
    plot_tasks(left, result["tasks"])
    plot_shift(middle, result["shift"])
    plot_tables(right, result["tables"])
    excesses = result["tasks"]["excess"]
    typical, far = 100 * float(excesses.median()), int((excesses > 0.1).sum())
    shift = result["shift"].to_dataset().isel(length=-1)
    floor = float(shift["risk"].sel(scale=FAR).mean() / shift["zero"].mean())
    worse = [table for table in TABLES if table_difference(result, table, "mean").mean() > 0]
    return figure, (
        f"The median risk of trained layers is {typical:.2g} % above the optimum of theory (lines; "
        f"circles have one head, squares {config.heads[-1]}); {far} of {excesses.size} runs end "
        f"more than 10 % above it. At {FAR:g} times the scale of training the risk is {floor:.3g} "
        f"times that of predicting 0. On {len(worse)} of {len(TABLES)} tables a layer has a larger "
        "error than the mean."
    )


TICKS = (0.25, 0.5, 1, 2, 4)


def plot_tasks(ax, tasks):
    lengths, heads = tasks["length"].values, tasks["heads"].values
    for task, color in zip(TASKS, plotting.COLOURS[3:], strict=True):
        plotting.line(ax, lengths, tasks["least_risk"].sel(task=task), task, color)
        for number, marker, size in zip(heads, "os", (3, 5), strict=False):
            risks = tasks["risk"].sel(task=task, heads=number).transpose("length", "run")
            ax.plot(lengths, risks, marker, color=color, mfc="none", ms=size, mew=0.6)
    plotting.log_axes(ax, x=True, y=True, ticks=lengths)
    ax.set_yticks(TICKS, map(str, TICKS))
    ax.set(xlabel="demonstrations n", ylabel="excess risk", title="Trained layers")
    ax.legend()


def plot_shift(ax, shift):
    lengths, color = shift["length"].values, plotting.METHOD["linear"]["color"]
    look = {"color": color, "fontsize": 7, "va": "center", "annotation_clip": False}
    for scale in shift["scale"].values:
        risks = shift["risk"].sel(scale=scale).transpose("run", "length")
        plotting.line(ax, lengths, shift["theory"].sel(scale=scale))
        plotting.mean_points(ax, lengths, risks, fmt="o", color=color)
        end = (lengths[-1], float(risks[:, -1].mean()))
        ax.annotate(f"scale {scale:g}", end, (4, 0), textcoords="offset points", **look)
    ax.axhline(1, color="grey", lw=0.8, ls=":")
    plotting.log_axes(ax, x=True, y=True, ticks=lengths)
    ax.set(xlabel="demonstrations of the test", ylabel="risk / that of predicting 0")
    ax.set_title("Other scales")


def plot_tables(ax, tables):
    for place, learner, method in ((-0.1, "layer", "linear"), (0.1, "descent", "descent")):
        look = {**plotting.METHOD[method], "ls": "", "capsize": 2}
        for i, name in enumerate(tables):
            errors = tables[name]["error"].sel(learner=learner).values[:, None]
            plotting.mean_points(ax, [i + place], errors, learner if i == 0 else None, **look)
    ax.axhline(1, color="grey", lw=0.8, ls=":")
    plotting.log_axes(ax, y=True)
    ax.set_xticks(range(len(tables)), [name.replace(" ", "\n") for name in tables])
    ax.set_yticks(TICKS, map(str, TICKS))
    ax.set(ylabel="squared error / variance", title="Tables", ylim=(0.2, 6))
    ax.legend(loc="upper left")


if __name__ == "__main__":
    main(__file__)
