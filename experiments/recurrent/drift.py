"""Which gate does a layer learn when the task drifts, and with which risk (derived here)?

The weights of the task move along the prompt, w_{t+1} = ρ w_t + √((1 - ρ²)/d) z_t. For linear
attention with a constant gate (RetNet), DeltaNet and gated DeltaNet theory gives the best gate,
step and risk in closed form (lsa_lab.theory.drift). One layer of each kind is trained on such
prompts. The gate of GLA sees the token, which theory says gains little. A mesa layer has no closed
form here; the Kalman filter is the Bayes rule (close prior work: Qin et al. 2604.10946).
"""

import itertools
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments import training
from lsa_lab import estimators
from lsa_lab.lab import Claim, main, plotting
from lsa_lab.models import prefixes, recurrent
from lsa_lab.prompts import Prompt, bound_tokens
from lsa_lab.tasks.linear import LinearTask, sample_batch
from lsa_lab.theory import drift as theory

PREDICTED = {  # kind: its closed form
    "retention": theory.additive,
    "gla": theory.additive,
    "delta": theory.delta,
    "gated_delta": theory.gated_delta,
}
NAMES = {"retention": "RetNet", "gla": "GLA", "delta": "DeltaNet", "gated_delta": "gated DeltaNet"}
NAMES |= {"mesa": "mesa"}
GATED = ("retention", "gated_delta")


@dataclass(frozen=True)
class Config:
    kinds: tuple[str, ...] = tuple(NAMES)  # layers
    widths: tuple[int, ...] = (4, 6)  # values of d
    drifts: tuple[float, ...] = (0.85, 0.9, 0.97)  # values of ρ
    noise_var: float = 0.25  # of a label, whose signal has variance 1
    length: int = 48  # demonstrations of a prompt; risks are of its second half
    stream: int = 20  # width of the residual stream
    steps: int = 3000
    batch: int = 32
    learning_rate: float = 0.01
    test_prompts: int = 10_000  # of each run, the same for every layer
    runs: int = 9  # trainings of each kind, width and drift
    seed: int = 1022


SMOKE = dict(kinds=("retention", "gated_delta"), widths=(3,), drifts=(0.9,), length=8, runs=3)
QUICK = dict(kinds=("retention", "gated_delta"), widths=(4,), drifts=(0.9, 0.97))
TIERS = {
    "smoke": Config(**SMOKE, stream=8, steps=10, batch=8, test_prompts=50, seed=1),
    "quick": Config(**QUICK, steps=1200, test_prompts=1000, runs=5, seed=2),
    "full": Config(),
}


def make_shape(kind, d, config):
    width = config.stream
    if width < 2 * d + 1:
        raise ValueError(f"stream = {width}: a token at d = {d} has {2 * d + 1} entries")
    return recurrent.Config(kind, 2 * d + 1, 1, key_width=d, width=width, layout="bound")


def answer(params, prompt, kind, d, config):  # -> [n+1]
    forward = partial(recurrent.forward, config=make_shape(kind, d, config))
    return prefixes.predictions(forward, params, prompt)


def train(config, item):  # -> params [drifts R, ...] as a dictionary of leaves
    kind, d = item
    half = config.length // 2
    spread = dict(noise_std=config.noise_var**0.5, weight_std=d**-0.5, dtype=jnp.float32)

    def sample(key, rho):
        task = LinearTask(config.length, d, drift=rho, **spread)
        return sample_batch(key, task, config.batch)

    def loss(params, batch, rho):
        def error(prompt):
            labels = jnp.append(prompt.y, prompt.y_query)
            return jnp.mean((answer(params, prompt, kind, d, config) - labels)[half:] ** 2)

        return jax.vmap(error)(batch).mean()

    key = jax.random.fold_in(jax.random.key(config.seed), 100 * d + list(NAMES).index(kind))
    init = partial(recurrent.init, config=make_shape(kind, d, config), dtype=jnp.float32)
    rhos = jnp.repeat(jnp.asarray(config.drifts, jnp.float32), config.runs)
    recipe = jax.vmap(init), loss, sample, config, len(rhos), rhos
    return training.train_layers(f"{kind}, d = {d}", key, *recipe)


def draw_prompts(rng, config, d, rho):  # -> Prompt [B], targets [B, n+1]
    size, count = config.test_prompts, config.length + 1
    w = np.empty((count, size, d))
    w[0] = rng.standard_normal((size, d)) / d**0.5
    for t in range(1, count):
        w[t] = rho * w[t - 1] + ((1 - rho**2) / d) ** 0.5 * rng.standard_normal((size, d))
    x = rng.standard_normal((size, count, d))
    targets = np.einsum("tbd,btd->bt", w, x)
    y = targets[:, :-1] + config.noise_var**0.5 * rng.standard_normal((size, count - 1))
    return Prompt(*map(jnp.asarray, (x[:, :-1], y, x[:, -1], targets[:, -1]))), targets


@partial(jax.jit, static_argnames=("kind", "d", "config"))
def measure(params, prompts, targets, kind, d, config):  # -> [], []
    """Return a run's risk over the second half of its prompts, and its mean gate."""
    half = config.length // 2
    predictions = partial(answer, params, kind=kind, d=d, config=config)
    errors = jax.lax.map(predictions, prompts, batch_size=100) - targets
    gate = jnp.ones(())
    if getattr(params, "b_gate", None) is not None:
        raw = params.b_gate[0, 0]
        if params.w_gate is not None:
            rows = jax.vmap(bound_tokens)(prompts)[:200, half:]
            raw = raw[None, None] + rows @ params.read_in.T @ params.w_gate[0, 0].T
        gate = jax.nn.sigmoid(raw).mean()
    return jnp.mean(errors[:, half:] ** 2), gate


@partial(jax.jit, static_argnames="config")
def kalman_risk(prompts, targets, rho, config):  # -> []
    def errors(prompt):
        states = estimators.kalman_filter(prompt, config.noise_var, rho)
        return (states * jnp.concatenate([prompt.x, prompt.x_query[None]])).sum(1)

    answers = jax.lax.map(errors, prompts, batch_size=100)
    return jnp.mean((answers - targets)[:, config.length // 2 :] ** 2)


def compute(config, models):
    drifts, runs = config.drifts, config.runs
    shape = (len(config.kinds), len(config.widths), len(drifts), runs)
    risk, gate, kalman = np.empty(shape), np.empty(shape), np.empty(shape[1:])
    places = [(k, r) for k in range(len(drifts)) for r in range(runs)]
    for j, d in enumerate(config.widths):
        rngs = [np.random.default_rng([config.seed, d, *place]) for place in places]
        tests = [draw_prompts(rngs[i], config, d, drifts[k]) for i, (k, _) in enumerate(places)]
        for (k, r), test in zip(places, tests, strict=True):
            kalman[j, k, r] = kalman_risk(*test, drifts[k], config)
        for i, kind in enumerate(config.kinds):
            params = train(config, (kind, d))
            for row, ((k, r), test) in enumerate(zip(places, tests, strict=True)):
                own = jax.tree.map(lambda leaf, row=row: leaf[row], params)
                risk[i, j, k, r], gate[i, j, k, r] = measure(own, *test, kind, d, config)
    axes = ("kind", "d", "rho", "run")
    coordinates = {"kind": list(config.kinds), "d": list(config.widths), "rho": list(drifts)}
    risk = np.where(np.isfinite(risk), risk, np.inf)
    data = {"risk": (axes, risk), "gate": (axes, gate), "kalman": (axes[1:], kalman)}
    return xr.Dataset(data, coordinates)


def predict(kind, d, rho):
    return PREDICTED[kind](d, FULL.noise_var, rho)


def predictions(config):
    found = {}
    for kind, d, rho in itertools.product(PREDICTED, config.widths, config.drifts):
        values = PREDICTED[kind](d, config.noise_var, rho)._asdict()
        named = {name: float(value) for name, value in values.items() if value is not None}
        found[f"{kind}, d = {d}, rho = {rho}"] = named
    return found


def learned(result, kind, d, rho):  # -> [R] of truth values, or None
    """Return which runs have less than the risk half-way between the prediction and the answer 0.

    Layers without a prediction are compared with the Kalman filter in its place.
    """
    place = {"kind": kind, "d": d, "rho": rho}
    if any(value not in result[axis] for axis, value in place.items()):
        return None
    best = result["kalman"].sel(d=d, rho=rho).values
    best = float(predict(kind, d, rho).risk) if kind in PREDICTED else best
    return result["risk"].sel(place).values < (1 + best) / 2


def select(result, name, kind, d, rho):  # -> [R] of the runs that learned, or None
    kept = learned(result, kind, d, rho)
    return None if kept is None or not kept.any() else result[name].sel(
        kind=kind, d=d, rho=rho).values[kept]  # fmt: skip


def risk_ratio(result, kind, d, rho):
    values = select(result, "risk", kind, d, rho)
    return None if values is None else values / float(predict(kind, d, rho).risk)


def gate_difference(result, kind, d, rho):
    values = select(result, "gate", kind, d, rho)
    return None if values is None else values - float(predict(kind, d, rho).gate)


def gla_ratio(result, d, rho):  # -> [R]
    """Return the risk of GLA over that of RetNet on the same prompts, where both learned."""
    both = [learned(result, kind, d, rho) for kind in ("gla", "retention")]
    if both[0] is None or both[1] is None or not (both[0] & both[1]).any():
        return None
    gla, retention = (result["risk"].sel(kind=k, d=d, rho=rho).values for k in ("gla", "retention"))
    return (gla / retention)[both[0] & both[1]]


def kalman_ratio(result, kind, d, rho):
    kept = learned(result, kind, d, rho)
    if kept is None or not kept.any():
        return None
    ratios = result["risk"].sel(kind=kind) / result["kalman"]
    return ratios.sel(d=d, rho=rho).values[kept]


def share_learned(result, kind):  # -> [D K R]
    if kind not in result["kind"]:
        return None
    places = [(d, rho) for d in result["d"].values for rho in result["rho"].values]
    return np.concatenate([learned(result, kind, *place) for place in places]).astype(float)


FULL = TIERS["full"]
PLACES = {"d": FULL.widths, "rho": FULL.drifts}
derived = partial(Claim, source="derived here")
CLAIMS = (
    derived("risk", statement="A trained {kind} layer has the risk that theory predicts at d = {d} "
            "and drift {rho}", quantity="the risk of a run that learned over its prediction",
            sample=risk_ratio, statistic="ratio", at_least=0.99, at_most=1.01,
            over={"kind": ("retention", "delta", "gated_delta"), **PLACES}, simultaneous=True,
            null="none: the prediction has no free parameter"),
    derived("gate", statement="A trained {kind} layer has the gate that theory predicts at d = {d} "
            "and drift {rho}", quantity="the mean gate less its prediction", sample=gate_difference,
            at_least=-0.005, at_most=0.005, over={"kind": GATED, **PLACES}, simultaneous=True,
            null="none: the prediction has no free parameter"),
    derived("gla", statement="A gate that sees the token lowers the risk by less than 1 % at d = "
            "{d} and drift {rho}", quantity="the risk of GLA over that of RetNet on the same "
            "prompts, where both learned", sample=gla_ratio, statistic="ratio", at_least=0.99,
            over=PLACES, simultaneous=True, null="none: the ratio is paired, and 1 without a gain"),
    derived("kalman", statement="The risk of a trained {kind} layer beside that of the Kalman "
            "filter, at d = {d} and drift {rho}", quantity="the risk of a run that learned over "
            "that of the Kalman filter", sample=kalman_ratio, statistic="ratio",
            over={"kind": tuple(NAMES), **PLACES}, null="none: an estimate"),
    derived("learned", statement="The share of trainings of a {kind} layer that learn",
            quantity="1 for a run whose risk is nearer to its prediction than to that of the "
            "answer 0, else 0", sample=share_learned, over={"kind": tuple(NAMES)},
            null="none: an estimate"),
)  # fmt: skip

LOOKS = {"retention": ("#0072B2", "o"), "delta": ("#009E73", "^"), "gated_delta": ("#D55E00", "s")}


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.7, (1, 2))
    d, grid = config.widths[0], np.linspace(0.7, 0.995, 60)
    for kind, (color, marker) in LOOKS.items():
        if kind in config.kinds:
            for ax, name in zip((left, right), ("risk", "gate"), strict=True):
                if name == "risk" or kind in GATED:
                    draw(ax, result, config, kind, name, d, grid, (color, marker))
    left.plot(result["rho"], result["kalman"].sel(d=d).mean("run"), "k_", ms=9, label="Kalman")
    left.set(xlabel="drift ρ", ylabel="risk", title="Risk")
    right.set(xlabel="drift ρ", ylabel="gate", title="Gate")
    for ax in (left, right):
        ax.legend()
    ratios = [risk_ratio(result, kind, d, rho) for kind in LOOKS for rho in config.drifts]
    off = [abs(np.exp(np.log(x).mean()) - 1) for x in ratios if x is not None]
    gates = [gate_difference(result, kind, d, rho) for kind in GATED for rho in config.drifts]
    gate_off = [abs(x.mean()) for x in gates if x is not None]
    taught = np.concatenate([share_learned(result, kind) for kind in config.kinds])
    return figure, (
        f"Closed forms (lines) and trained layers (points: means of the runs that learned) at "
        f"d = {d}. The mean risk is at most {100 * max(off, default=0):.2g} % from its "
        f"prediction, the mean gate at most {max(gate_off, default=0):.2g}. "
        f"{int(taught.sum())} of {len(taught)} trainings of all kinds learned."
    )


def draw(ax, result, config, kind, name, d, grid, look):
    color, marker = look
    lines = [float(getattr(predict(kind, d, rho), name)) for rho in grid]
    plotting.line(ax, grid, lines, NAMES[kind], color)
    for rho in config.drifts:
        runs = select(result, name, kind, d, rho)
        if runs is not None:
            plotting.mean_points(ax, [rho], runs[:, None], fmt=marker, color=color, mfc="white")


if __name__ == "__main__":
    main(__file__)
