"""Which learning curve does a trained recurrent layer follow, and which do two (derived here)?

One and two layers of linear attention, LMS, DeltaNet, gated DeltaNet and mesa are trained to
predict after every demonstration of short prompts. Theory gives the learning curve of the rule that
each layer is known for, in closed form (lsa_lab.theory.learning_curves): with the constant step and
scale of the labels that are best in training, and for linear attention with the best scale at every
length. Ridge regression with the right penalty, mesa's rule, is the Bayes rule.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.optimize import minimize

from experiments import training
from lsa_lab import estimators
from lsa_lab.lab import Claim, main, plotting, stack_rows
from lsa_lab.models import prefixes, recurrent
from lsa_lab.prompts import Prompt, bound_tokens
from lsa_lab.tasks.linear import LinearTask, sample_batch
from lsa_lab.theory import learning_curves as theory

RULES = ("linear attention", "LMS", "DeltaNet", "ridge")
RULE = {"additive": "linear attention", "lms": "LMS", "delta": "DeltaNet"}
RULE |= {"gated_delta": "DeltaNet", "mesa": "ridge"}  # where the task stays the best gate is 1
NAMES = RULE | {"gated_delta": "gated DeltaNet", "mesa": "mesa"}


@dataclass(frozen=True)
class Config:
    kinds: tuple[str, ...] = tuple(RULE)  # layers
    d: int = 4  # covariates; E 1/|x|² is infinite at 2
    n: int = 12  # demonstrations of a prompt in training
    times: tuple[int, ...] = (2, 8)  # longer prompts, in units of n
    noise_var: float = 0.16  # of a label, whose signal has variance 1
    stream: int = 12  # width of the residual stream; keys are d wide
    steps: int = 1500
    batch: int = 32
    learning_rate: float = 0.01
    test_prompts: int = 1000  # of each run, the same for every layer
    runs: int = 16  # trainings of each kind and depth
    seed: int = 1061


TIERS = {
    "smoke": Config(("delta",), 3, 4, stream=8, steps=4, batch=4, test_prompts=8, runs=3, seed=1),
    "quick": Config(("delta",), n=8, times=(2,), steps=1000, test_prompts=300, runs=6, seed=2),
    "full": Config(),
}


def make_forward(kind, depth, config):
    widths = dict(key_width=config.d, width=config.stream)
    shape = recurrent.Config(kind, 2 * config.d + 1, depth, **widths, layout="bound")
    return partial(recurrent.forward, config=shape), shape


def train(config, kind, depth):  # -> Params [R, ...]
    forward, shape = make_forward(kind, depth, config)
    spread = dict(noise_std=config.noise_var**0.5, weight_std=config.d**-0.5)
    task = LinearTask(config.n, config.d, **spread, dtype=jnp.float32)
    sample = partial(sample_batch, task=task, size=config.batch)

    def loss(params, batch):
        return jax.vmap(partial(prefixes.loss, forward, params))(batch).mean()

    key = jax.random.fold_in(jax.random.key(config.seed), 10 * list(RULE).index(kind) + depth)
    init = jax.vmap(partial(recurrent.init, config=shape, dtype=jnp.float32))
    recipe = init, loss, sample, config, config.runs
    return training.train_layers(name_stack(kind, depth), key, *recipe)


def draw_prompts(config, run):  # -> Prompt [B] of the longest prompts, targets [B, T]
    rng = np.random.default_rng([config.seed, run])
    count, length, d = config.test_prompts, config.times[-1] * config.n, config.d
    x = rng.standard_normal((count, length + 1, d))
    targets = np.einsum("btd,bd->bt", x, rng.standard_normal((count, d)) / d**0.5)
    y = targets[:, :-1] + config.noise_var**0.5 * rng.standard_normal((count, length))
    return Prompt(*map(jnp.asarray, (x[:, :-1], y, x[:, -1], targets[:, -1]))), targets


def find_constants(config, curve):  # -> [2]
    """Return the step and the scale with the least mean risk over 1 to n demonstrations."""

    @jax.jit
    @jax.value_and_grad
    def mean_risk(theta):
        step, scale = jax.nn.sigmoid(theta[0]), jnp.exp(theta[1])
        return curve(config.n, config.d, config.noise_var, step, 1.0, scale)[1:].mean()

    theta = minimize(mean_risk, np.array([-2.0, 0.0]), method="L-BFGS-B", jac=True).x
    return np.array([1 / (1 + np.exp(-theta[0])), np.exp(theta[1])])


def closed_curves(config, constants):  # -> [rules, T]
    """Return E |ŵ_t - w|² of every rule; ``constants`` are the step and scale of two of them."""
    sizes = config.times[-1] * config.n, config.d, config.noise_var
    (lms, lms_scale), (delta, delta_scale) = constants
    curves = [theory.additive(*sizes), theory.lms(*sizes, lms, 1.0, lms_scale)]
    curves += [theory.gated_delta(*sizes, delta, 1.0, delta_scale), theory.ridge(*sizes)]
    return np.stack(curves)


def curve_of_step(config, step):  # -> [T]
    """Return the closed curve of DeltaNet with this step and the scale that is best in training."""
    # At scale c the risk is c²q - 2cm + 1; the risks at 1 and at -1 give q and m.
    sizes = config.d, config.noise_var, step, 1.0
    plus, minus = (theory.gated_delta(config.n, *sizes, sign)[1:] for sign in (1.0, -1.0))
    scale = (minus - plus).mean() / (2 * (plus + minus - 2).mean())
    return theory.gated_delta(config.times[-1] * config.n, *sizes, scale)


def predict_by_rules(prompt, config, constants):  # -> [rules, T]
    x, y, d = prompt.x, prompt.y, config.d

    def recursion(keys, step, scale):  # -> [n, d]
        def write(w, row):
            w = w + step * (scale * row[1] - w @ row[0]) * row[0]
            return w, w

        return jax.lax.scan(write, jnp.zeros(d), (keys, y))[1]

    shrunk = 1 / (jnp.arange(1.0, len(y) + 1) + d + 1 + d * config.noise_var)
    weights = jnp.stack([
        shrunk[:, None] * jnp.cumsum(y[:, None] * x, axis=0),
        recursion(x, *constants[0]),
        recursion(x / jnp.linalg.norm(x, axis=1, keepdims=True), *constants[1]),
        estimators.recursive_ridge(prompt, d * config.noise_var)[1:],
    ])  # fmt: skip
    weights = jnp.pad(weights, ((0, 0), (1, 0), (0, 0)))
    return jnp.einsum("rtd,td->rt", weights, jnp.concatenate([x, prompt.x_query[None]]))


@partial(jax.jit, static_argnames=("kind", "depth", "config"))
def measure(params, prompts, targets, by_rules, kind, depth, config):
    """Return a run's risk after each prefix [T], and its distance to each rule [rules].

    Predictions are clipped at twice the largest label: a state that explodes would be the mean.
    """
    forward, _ = make_forward(kind, depth, config)
    answers = jax.lax.map(partial(prefixes.predictions, forward, params), prompts, batch_size=100)
    most = 2 * jnp.abs(prompts.y).max(1, keepdims=True)
    answers = jnp.clip(jnp.where(jnp.isfinite(answers), answers, most), -most, most)
    trained = slice(1, config.n + 1)
    gaps = answers[:, None, trained] - by_rules[..., trained]
    return {"risk": ((answers - targets) ** 2).mean(0), "distance": (gaps**2).mean((0, 2))}


def mean_step(params, prompts):  # -> []
    rows = jax.vmap(bound_tokens)(prompts)[:, 1:] @ params.read_in.T
    raw = rows @ params.w_step[0, 0, 0] + params.b_step[0, 0, 0]
    return jax.nn.sigmoid(raw).mean()


def compute(config, models):
    constants = [find_constants(config, curve) for curve in (theory.lms, theory.gated_delta)]
    tests = [draw_prompts(config, run) for run in range(config.runs)]
    answer = jax.jit(jax.vmap(partial(predict_by_rules, config=config, constants=constants)))
    by_rules = [answer(prompts) for prompts, _ in tests]
    steps, rows = [], []
    for kind, depth in list_stacks(config):
        params = train(config, kind, depth)
        for run, test in enumerate(tests):
            stack = jax.tree.map(lambda leaf, run=run: leaf[run], params)
            rows.append(measure(stack, *test, by_rules[run], kind, depth, config))
            if (kind, depth) == ("delta", 1):
                steps.append(mean_step(stack, test[0]))
    dims = {"risk": ("stack", "run", "prefix"), "distance": ("stack", "run", "rule")}
    data = stack_rows(rows, dims, (-1, config.runs))
    data["closed"] = (("rule", "prefix"), closed_curves(config, constants))
    data["closed_of_step"] = (("run", "prefix"), [curve_of_step(config, step) for step in steps])
    coordinates = {"stack": [name_stack(*stack) for stack in list_stacks(config)]}
    return xr.Dataset(data, coordinates | {"rule": list(RULES)}, {"n": config.n})


def list_stacks(config):  # -> [(kind, depth)]
    """Return one and two layers of each kind; one layer of mesa is ridge regression already."""
    stacks = [(kind, depth) for kind in config.kinds for depth in (1, 2)]
    return [stack for stack in stacks if stack != ("mesa", 2)]


def name_stack(kind, depth):
    return f"{NAMES[kind]}, {depth} layer{'s' * (depth > 1)}"


def select(result, name, kind, depth):  # -> DataArray (run, ...), or None
    stack = name_stack(kind, depth)
    return result[name].sel(stack=stack) if stack in result["stack"] else None


def find_mean(risk, result, times=1):  # DataArray (..., prefix) -> (...)
    """Return the mean over 1 to n demonstrations, or over the last n/2 of a longer prompt."""
    n = result.attrs["n"]
    first = 1 if times == 1 else times * n - n // 2 + 1
    return risk.isel(prefix=slice(first, times * n + 1)).mean("prefix")


def curve_ratio(result, kind, depth=1):  # -> [R]
    """Return the risk over 1 to n demonstrations over that of the rule's closed curve."""
    risk, closed = select(result, "risk", kind, depth), result["closed"].sel(rule=RULE[kind])
    return None if risk is None else (find_mean(risk, result) / find_mean(closed, result)).values


def has_learned(result, kind, depth):  # -> [R] of 0 and 1
    """Return whether a run's risk is nearer to its closed curve than to that of the answer 0."""
    ratio = curve_ratio(result, kind, depth)
    if ratio is None:
        return None
    closed = float(find_mean(result["closed"].sel(rule=RULE[kind]), result))
    return (ratio * closed < (1 + closed) / 2).astype(float)


def own_over_others(result, kind):  # -> [R]
    """Return the distance of one layer to its own rule over that to the nearest other rule."""
    distance = select(result, "distance", kind, 1)
    if distance is None:
        return None
    others = distance.drop_sel(rule=RULE[kind]).min("rule")
    return (distance.sel(rule=RULE[kind]) / others).values


def ridge_over_rule(result, kind):  # -> [R]
    """Return the distance of two layers to ridge over that to one pass of the layers' rule."""
    distance = select(result, "distance", kind, 2)
    if distance is None:
        return None
    return (distance.sel(rule="ridge") / distance.sel(rule=RULE[kind])).values


def floor_ratio(result, times):  # -> [R]
    """Return DeltaNet's risk over the closed curve of its mean step, at longer prompts."""
    risk = select(result, "risk", "delta", 1)
    if risk is None or times * result.attrs["n"] >= result.sizes["prefix"]:
        return None
    closed = result["closed_of_step"]
    return (find_mean(risk, result, times) / find_mean(closed, result, times)).values


FULL = TIERS["full"]
derived = partial(Claim, source="derived here", statistic="median")
CLAIMS = (
    derived("curve", statement="One trained {kind} layer reaches the closed learning curve of its "
            "rule or does better", quantity=f"the mean risk over 1 to {FULL.n} demonstrations over "
            "that of the closed curve, of all runs", sample=curve_ratio, at_most=1.05,
            over={"kind": FULL.kinds}, null="none: the prediction has no free parameter"),
    derived("floor", statement="On prompts {times} times as long as in training one layer of "
            "DeltaNet has the risk that the closed curve of its mean step gives",
            quantity=f"the mean risk over the last {FULL.n // 2} prefixes over that of the curve",
            sample=floor_ratio, at_least=0.9, at_most=1.1, over={"times": FULL.times},
            null="none: the scale of the labels is fixed by theory, the step by the layer"),
    derived("own_rule", statement="One trained {kind} layer is nearer to its own rule than to the "
            "rules of the other layers", quantity="the mean squared distance of predictions to "
            "the own rule over that to the nearest other rule", sample=own_over_others, at_most=1.0,
            over={"kind": FULL.kinds}, null="none: the ratio is paired, and 1 between two rules"),
    derived("two_layers", statement="Two trained {kind} layers are nearer to ridge regression than "
            "to one pass of their rule", quantity="the mean squared distance of predictions to "
            "ridge over that to the rule", sample=ridge_over_rule, at_most=1.0,
            over={"kind": FULL.kinds[:-1]}, null="none: the ratio is paired, and 1 half-way"),
    Claim("learned", "derived here", "The share of trainings that learn: {kind}, depth {depth}",
          "1 for a run whose risk is nearer to the closed curve than to that of the answer 0, else "
          "0", has_learned, over={"kind": FULL.kinds, "depth": (1, 2)}, null="none: an estimate"),
)  # fmt: skip

LOOKS = dict(zip(RULE, zip(plotting.COLOURS, "osD^p", strict=False), strict=True))


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.8, (1, 2), width_ratios=(1.2, 1))
    for kind in [kind for kind in config.kinds if kind in ("delta", "mesa")]:
        color, marker = LOOKS[kind]
        closed = result["closed"].sel(rule=RULE[kind]).values[1:]
        plotting.line(left, range(1, 1 + len(closed)), closed, f"{RULE[kind]}, closed form", color)
        places = np.unique(np.geomspace(1, len(closed), 10).round().astype(int))
        runs = select(result, "risk", kind, 1).isel(prefix=places)
        look = dict(label=name_stack(kind, 1), color=color, marker=marker, ls="", mfc="white")
        plotting.mean_points(left, places, runs, statistic="median", **look)
    left.axvline(config.n, color=plotting.GREY, lw=0.8, ls="--")
    ticks = sorted({1, config.n // 4, config.n, *(config.n * k for k in config.times)})
    plotting.log_axes(left, x=True, y=True, ticks=ticks)
    left.set(xlabel="demonstrations", ylabel="excess risk", title="Learning curves")
    left.legend()
    for kind, depth in list_stacks(config):
        color, marker = LOOKS[kind]
        ratios, face = np.sort(curve_ratio(result, kind, depth)), (color, "white")[depth - 1]
        x = config.kinds.index(kind) + 0.4 * (depth - 1.5) + np.linspace(-0.12, 0.12, len(ratios))
        right.plot(x, ratios, marker, color=color, mfc=face, ms=3, mew=0.6)
    right.axhline(1, color=plotting.BLACK, lw=0.8)
    plotting.log_axes(right, y=True, y_ticks=(0.5, 1, 2, 5, 10, 20, 50))
    right.set_xticks(range(len(config.kinds)), [NAMES[k].replace(" ", "\n") for k in config.kinds])
    right.set(ylabel="risk / closed form's", title="Seeds: one layer, two (open)")
    ratios = [np.median(curve_ratio(result, kind)) for kind in config.kinds]
    two = [np.median(ridge_over_rule(result, kind)) for kind in config.kinds if kind != "mesa"]
    learned = [has_learned(result, *stack) for stack in list_stacks(config)]
    return figure, (
        f"The median layer of each kind has {min(ratios):.2f} to {max(ratios):.2f} times the risk "
        f"of its rule's closed curve (lines in a). The distance of two layers to ridge is "
        f"{min(two):.2g} to {max(two):.2g} times that to one pass of their rule. "
        f"{np.sum(learned):.0f} of {np.size(learned)} trainings learned. Points in a are medians "
        "of seeds, those in b seeds; the dashed line is the length in training."
    )


if __name__ == "__main__":
    main(__file__)
