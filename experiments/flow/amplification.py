"""Does depth amplify the ratio of two demonstrations' gradients (A1, Theorem 1)?

The disparity of two gradients is the median |log ratio| of their sizes; it has no orientation, so
that layers which only reshuffle do not lower it. A1's own setting comes first: linear attention,
each demonstration alone in a prompt with the query. Then come trained models that read many
demonstrations, and random stacks, with and without softmax. The gain of a random stack is the size
of what a layer writes over that of a token.
"""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.flow import measures
from experiments.models.named import NamedModels
from lsa_lab.analyses import disparity
from lsa_lab.analyses.amplification import log_sizes, token_flow
from lsa_lab.lab import Claim, compute_each, main, plotting, stack_rows
from lsa_lab.models import constructions, linear_attention, transformer
from lsa_lab.prompts import Prompt

LINEAR = "linear attention"
TRAINED = (LINEAR, "softmax attention", "transformer")
NAMES = {"linear": "linear", "softmax": "softmax", "norm": "softmax, norm"}
NAMES |= {"MLP": "softmax, norm, MLP"}  # kinds of random stacks: method in figures
TYINGS = ("untied", "tied")


@dataclass(frozen=True)
class Config(NamedModels):
    names: tuple[str, ...] = TRAINED  # trained models
    prompts: int = 128  # for each trained model
    test_prompts: int = 4096  # for each trained model, for its risk
    kinds: tuple[str, ...] = tuple(NAMES)  # of random stacks, the linear one among them
    d: int = 6  # covariates of random stacks
    depth: int = 6  # layers of random stacks
    gains: tuple[float, ...] = (0.1, 1.0, 3.0)  # of linear stacks; others have 1
    skip: float = 0.5  # the weight of a weak residual connection, otherwise 1
    mlp_width: int = 24
    runs: int = 64  # random stacks of each kind
    pairs: int = 128  # of demonstrations, for each random stack
    seed: int = 1201


SMOKE = dict(kinds=("linear", "norm"), d=2, depth=2, gains=(0.1, 1.0), mlp_width=4, runs=6, pairs=8)
TIERS = {
    "smoke": Config((LINEAR,), True, prompts=4, test_prompts=16, **SMOKE, seed=1),
    "quick": Config((LINEAR,), prompts=32, test_prompts=1024, runs=16, pairs=64, seed=2),
    "full": Config(),
}


def draw_pairs(rng, runs, count, d):  # -> Prompt [R, B] of two demonstrations
    """Draw tasks w ~ N(w_0, I/2) with w_0 ~ N(0, I/2) the same for a run."""
    prior = rng.normal(size=(runs, d)) / 2**0.5
    w = prior[:, None] + rng.normal(size=(runs, count, d)) / 2**0.5
    x = rng.normal(size=(runs, count, 3, d))
    y = np.einsum("rbid,rbd->rbi", x, w)
    return Prompt(x[:, :, :2], y[:, :, :2], x[:, :, 2], y[:, :, 2])


def draw_linear(rng, runs, depth, d):  # -> Params [R, L, ...]
    """Draw stacks of gain 1 for tokens of squared length 2d."""
    weights = rng.normal(size=(2, runs, depth, 1, d + 1, d + 1))
    return linear_attention.Params(*weights / (2 * d * (d + 1) ** 0.5) ** 0.5)


def scale_matrices(params, factor):
    """Multiply every matrix, but nothing of a norm and no bias."""

    def scale(path, leaf):
        name = jax.tree_util.keystr(path)
        return leaf if "norm" in name or "bias" in name else factor * leaf

    return jax.tree_util.tree_map_with_path(scale, params)


def draw_stacks(config, rng):  # yields name, forward, Params [R, L, ...]
    """Draw every kind, untied and tied, at its gains; two also with a weak residual connection."""
    e, runs, depth = config.d + 1, config.runs, config.depth
    for tag, kind in enumerate(config.kinds):
        if kind == "linear":
            forward = partial(linear_attention.forward, keys="all")  # A1: the query is a key
            base, gains = draw_linear(rng, runs, depth, config.d), config.gains
        else:
            norm, mlp_width = kind != "softmax", config.mlp_width if kind == "MLP" else None
            more = dict(keys="all", norm=norm, mlp_width=mlp_width, init_scale=1.0)
            shape = transformer.Config(e, depth, 1, e, **more)
            forward, gains = partial(transformer.forward, config=shape), (1.0,)
            key = jax.random.fold_in(jax.random.key(config.seed), tag - 1)
            deep = replace(shape, num_layers=runs * depth)  # all are independent
            layers = jax.jit(partial(transformer.init, config=deep))(key)
            base = jax.tree.map(lambda leaf: leaf.reshape(runs, -1, *leaf.shape[1:]), layers)
        for gain in gains:
            untied = scale_matrices(base, gain**0.5)
            tied = jax.tree.map(lambda leaf: np.broadcast_to(leaf[:, :1], leaf.shape), untied)
            yield f"{kind}, untied, {gain:g}", forward, untied
            yield f"{kind}, tied, {gain:g}", forward, tied
        if kind in ("linear", "softmax"):
            weak = jax.vmap(partial(constructions.scale_skip, weight=config.skip))
            yield f"{kind}, weak residual", forward, weak(base)


def split(prompt):  # -> two Prompts of one demonstration each
    return [prompt.replace(x=prompt.x[i : i + 1], y=prompt.y[i : i + 1]) for i in range(2)]


@partial(jax.jit, static_argnames="forward")
def measure_random(forward, params, pairs):  # Params [R, ...], Prompt [R, B] -> {name: [R, ...]}
    """Return the disparity of the query's whole token (A1, Eq. 2), and the share that grow."""

    def log_ratio(params, prompt):  # -> [L]
        gradients = [token_flow(forward, params, one) for one in split(prompt)]
        logs = [log_sizes(each.reshape(len(each), 1, -1))[:, 0] for each in gradients]
        return logs[0] - logs[1]

    def run(row):
        logs = jax.vmap(partial(log_ratio, row[0]))(row[1])  # [B, L]
        spread, _ = disparity.median_of_finite(jnp.abs(logs))
        return {"disparity": spread, "grows": disparity.summarise(logs).larger}

    return jax.lax.map(run, (params, pairs), batch_size=16)


def compute_random(config):  # -> Dataset (stack, run, layer)
    rng = np.random.default_rng(config.seed)
    pairs = draw_pairs(rng, config.runs, config.pairs, config.d)
    stacks = list(draw_stacks(config, rng))
    rows = compute_each("random stacks", stacks, lambda s: measure_random(*s[1:], pairs))
    dims = {"grows": ("stack", "run"), "disparity": ("stack", "run", "layer")}
    return xr.Dataset(stack_rows(rows, dims), {"stack": [name for name, *_ in stacks]})


@partial(jax.jit, static_argnames="alone")
def measure_logs(models, prompts, alone):  # Model [R], Prompt [R, B] -> [R, B, L, n]
    """Return log |∂ŷ_l/∂e_i|: of the first two demonstrations, each alone, or of all together."""

    def measure(model, prompt):
        parts = split(prompt) if alone else [prompt]
        logs = [log_sizes(measures.compute_gradients(model, part)) for part in parts]
        return jnp.concatenate(logs, axis=1)

    measure_all = jax.vmap(measure, (None, 0))
    return jax.lax.map(lambda row: measure_all(*row), (models, prompts))


def compute_trained(config, runs):  # -> {name: [R, ...]}
    models, prompts = runs.models(), measures.draw_prompts(config.seed, runs.spec, config.prompts)
    exact = jax.tree.map(lambda leaf: np.asarray(leaf, float), prompts)
    rows = {}
    for mode in ("alone", "together"):
        logs = np.asarray(measure_logs(models.cast_float64(), exact, mode == "alone"))
        i, j = np.triu_indices(logs.shape[-1], 1)
        rows[mode] = np.median(np.abs(logs[..., i] - logs[..., j]), axis=(1, 3))
    test = measures.draw_prompts(config.seed + 10**6, runs.spec, config.test_prompts)
    return rows | {"risk": measures.compare_risks(models, test)}


def compute(config, models):
    rows = compute_each("trained models", [*models.values()], partial(compute_trained, config))
    dims = {mode: ("model", "run", "layer") for mode in ("alone", "together")}
    data = stack_rows(rows, dims | {"risk": ("model", "rule", "run")})
    trained = xr.Dataset(data, {"model": list(models), "rule": ["model", "Bayes rule"]})
    return xr.DataTree.from_dict({"trained": trained, "random": compute_random(config)})


FAR = 1.5  # times the Bayes rule's excess risk: a model above it has not converged


def find_risk_ratio(result, model):
    risk = result["trained"]["risk"].sel(model=model).mean("run")
    return float(risk.sel(rule="model") / risk.sel(rule="Bayes rule"))


def trained_growth(result, mode, model=LINEAR):  # -> [R], or None
    """Return the disparity at the last layer over that at the first; None if not converged."""
    if model not in result["trained"]["model"] or find_risk_ratio(result, model) > FAR:
        return None
    values = result["trained"][mode].sel(model=model).transpose("run", "layer").values
    return values[:, -1] / values[:, 0]


def select(result, stack, name):  # -> [R, ...], or None
    if stack not in result["random"]["stack"]:
        return None
    return result["random"][name].sel(stack=stack).transpose("run", ...).values


def random_growth(result, stack):  # -> [R], or None
    values = select(result, stack, "disparity")
    return None if values is None else values[:, -1] / values[:, 0]


def weak_residual(result, kind):  # -> [R], or None
    weak, usual = (random_growth(result, f"{kind}, {x}") for x in ("weak residual", "untied, 1"))
    return None if weak is None else weak / usual


FULL = TIERS["full"]
GROWTH = "the disparity at the last layer over that at the first"
LINEAR_STACKS = [f"linear, {tying}, {gain:g}" for tying in TYINGS for gain in FULL.gains]
SOFTMAX_STACKS = [f"{kind}, {tying}, 1" for kind in FULL.kinds[1:] for tying in TYINGS]
DEPTH = "none: the ratio is paired, and 1 if depth does nothing"
median = partial(Claim, statistic="median")
grows = partial(median, statement="In random stacks ({stack}) the ratio of two gradients is "
                "typically larger at the last layer than at the first",
                quantity="the share of pairs, each demonstration alone, whose ratio grows",
                sample=partial(select, name="grows"), at_least=0.5,
                null="none: by chance 1/2")  # fmt: skip
CLAIMS = (
    median("trained_alone", "A1, Theorem 1", "With one demonstration, trained linear attention "
           "makes two gradients more unequal from the first layer to the last", GROWTH,
           partial(trained_growth, mode="alone"), at_least=1.0, null=DEPTH),
    median("trained_together", "A1, Figures on depth", "With many demonstrations, trained {model} "
           "makes two gradients more unequal from the first layer to the last", GROWTH,
           partial(trained_growth, mode="together"), at_least=1.0, over={"model": TRAINED},
           null=DEPTH),
    grows("grows", "A1, Theorem 1", over={"stack": LINEAR_STACKS}),
    grows("grows_softmax", "A1, Open question 2", over={"stack": SOFTMAX_STACKS}),
    median("random", "A1, Theorem 1", "The growth of the disparity in random stacks ({stack})",
           GROWTH, random_growth, over={"stack": LINEAR_STACKS + SOFTMAX_STACKS}, null=DEPTH),
    median("residual", "A1, Limitation, residual connection", "A residual connection dampens the "
           "growth of the disparity in random {kind} stacks",
           f"{GROWTH}, with a residual weight of {FULL.skip:g} over that with 1", weak_residual,
           at_least=1.0, over={"kind": ("linear", "softmax")},
           null="none: the ratio is paired, and 1 without an effect"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.7, (1, 2))
    for i, kind in enumerate(config.kinds):
        draw(left, select(result, f"{kind}, tied, 1", "disparity"), NAMES[kind], i)
    left.set(ylabel="disparity / that of layer 1", title="Random tied stacks, alone")
    looks = dict(zip(TRAINED, ("linear", "softmax", "softmax, norm, MLP"), strict=True))
    trained = result["trained"].to_dataset().transpose("run", ...)
    alone = trained["alone"].sel(model=LINEAR).values
    draw(right, alone, "linear", 0, "linear attention, alone", ls="--", mfc="white")
    for i, model in enumerate(config.names):
        draw(right, trained["together"].sel(model=model).values, looks[model], i, model)
    right.set(title="Trained models", ylabel="disparity / that of layer 1")
    plotting.log_axes(left, y=True, y_ticks=(1, 2, 5, 10, 20, 50, 100, 200))
    plotting.log_axes(right, y=True, y_ticks=(1, 1.5, 2, 3, 4, 5, 6))
    for ax in (left, right):
        ax.legend()
    growth = np.median(alone[:, -1] / alone[:, 0])
    many = trained["together"].isel(layer=-1) / trained["together"].isel(layer=0)
    many = many.median("run").values
    shares = [x for stack in LINEAR_STACKS if (x := select(result, stack, "grows")) is not None]
    shares = [100 * np.median(x) for x in shares]
    far = max(find_risk_ratio(result, model) for model in config.names)
    return figure, (
        f"With one demonstration the layers of trained linear attention make two gradients "
        f"{growth:.2g} times as unequal; with many demonstrations trained models make them at most "
        f"{max(many):.3g} times as unequal. In random linear stacks the ratio grows for "
        f"{min(shares):.0f} to {max(shares):.0f} % of pairs. Trained models have at most "
        f"{far:.2f} times the Bayes rule's risk. Medians over stacks."
    )


def draw(ax, values, method, shift, label=None, **more):  # values [R, L]
    layers = np.arange(values.shape[1]) + 1
    look = plotting.METHOD[method] | dict(label=label or method, capsize=1.5) | more
    places = layers + 0.06 * shift * (layers > 1)
    plotting.mean_points(ax, places, values / values[:, :1], statistic="median", **look)
    ax.set(xlabel="layer", xticks=layers)


if __name__ == "__main__":
    main(__file__)
