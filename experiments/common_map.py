"""How far are softmax, causal masks, norms and MLPs from one linear map for all tokens?"""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments import style
from experiments.configs.common_map import TIERS, Config
from lsa_lab import prompts, results
from lsa_lab.analyses.common_map import best_common_map
from lsa_lab.claims import about_the_mean
from lsa_lab.models import transformer
from lsa_lab.tasks.linear import LinearTask, sample

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]

# What a model is made of, beside masked linear attention.
MODELS = {
    "linear": {},
    "linear, query a key": {"keys": "all"},
    "linear, causal": {"keys": "causal"},
    "linear, norm": {"norm": True},
    "linear, MLP": {"mlp_width": True},
    "softmax": {"kernel": "softmax"},
    "softmax, norm": {"kernel": "softmax", "norm": True},
    "softmax, norm, MLP": {"kernel": "softmax", "norm": True, "mlp_width": True},
}
DRAWN = ("w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_out")  # the rest is zero, or one


def shape(config: Config, parts: dict) -> transformer.Config:
    """The transformer of this name; an MLP has the width that the config says."""
    parts = {"kernel": "linear", **parts}
    if "mlp_width" in parts:
        parts["mlp_width"] = config.mlp_width
    return transformer.Config(
        config.d + 1, config.layers, config.heads, config.key_width, init_scale=1.0, **parts
    )


def draw(key, config):  # -> Params [R, S, ...], Prompt [R, B, ...], queries [R, B, m, d]
    """Weights of the largest model, at every scale, and prompts: the same for all models."""
    tags = [jax.random.fold_in(key, tag) for tag in range(3)]
    each = (config.runs, config.prompts)
    keys = [jax.random.split(*pair) for pair in zip(tags, (each[:1], each, each), strict=True)]
    model = shape(config, MODELS["softmax, norm, MLP"])
    weights = jax.vmap(partial(transformer.init, config=model))(keys[0])

    def scaled(factor):
        return weights.replace(**{name: factor * getattr(weights, name) for name in DRAWN})

    task = LinearTask(config.n, config.d, noise_std=config.noise_std)
    batch = jax.vmap(jax.vmap(partial(sample, task=task)))(keys[1])
    normal = partial(jax.random.normal, shape=(config.queries, config.d))
    many = jax.vmap(scaled, out_axes=1)(jnp.asarray(config.scales))
    return many, batch, jax.vmap(jax.vmap(normal))(keys[2])


def only(params: transformer.Params, model: transformer.Config) -> transformer.Params:
    """The weights that this model has."""
    expected = jax.eval_shape(partial(transformer.init, config=model), jax.random.key(0))
    names = (field.name for field in dataclasses.fields(params))
    return params.replace(**{name: None for name in names if getattr(expected, name) is None})


def streams(params, batch, queries, model):  # -> [R, S, B, 1 + m, L+1, T, e]
    """The prompts with their own query, and with each of the others."""

    def one(params, prompt, x_query):
        tokens = prompts.tokens(prompt.replace(x_query=x_query))
        return transformer.forward(params, tokens, model).stream

    asked = jnp.concatenate([batch.x_query[:, :, None], queries], axis=2)
    forward = jax.vmap(one, (None, None, 0))
    forward = jax.vmap(jax.vmap(forward, (None, 0, 0)), (0, None, None))
    return jax.vmap(forward)(only(params, model), batch, asked)


def measure(stream):  # [1 + m, L+1, T, e] -> [3, L]
    """Residual over tokens and, as in ``best_common_query_map``, over queries asked alone; and the
    share of the tokens' move that no map explains."""
    found = best_common_map(stream[0, 0], stream[0])
    asked = best_common_map(stream[1:, 0, -1], stream[1:, :, -1].swapaxes(0, 1))
    return jnp.stack([found.residual, asked.residual, found.unexplained])[:, 1:]


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    run = jax.jit(streams, static_argnums=3)

    @jax.jit
    def judge(many):  # -> [R, S, 3, L]
        return jax.vmap(jax.vmap(jax.vmap(measure)))(many).mean(2)

    drawn = jax.jit(partial(draw, config=config))(jax.random.key(config.seed))
    models = [shape(config, parts) for parts in MODELS.values()]
    found = np.stack([judge(run(*drawn, model)) for model in models])
    axes = ("model", "run", "scale", "layer")
    names, layers = ("residual", "query_residual", "unexplained"), np.arange(config.layers) + 1
    return xr.Dataset(
        {name: (axes, found[..., i, :]) for i, name in enumerate(names)},
        {"model": list(MODELS), "scale": list(config.scales), "layer": layers},
    )


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(9.0, 3.6, (1, 3))
    places, lost = np.arange(len(MODELS)), 0
    last, smallest = dataset.isel(layer=-1), np.finfo(float).eps / 10
    for ax, name in zip(axes, ("residual", "query_residual"), strict=False):
        for i, (scale, color) in enumerate(zip(settings.scales, style.COLOURS, strict=False)):
            values = last[name].sel(scale=scale).transpose("run", "model").values
            x = places + 0.2 * (i - (len(settings.scales) - 1) / 2)
            marker = style.MARKERS[i]
            shown = np.maximum(values, smallest)  # an exact zero has no logarithm
            lost += style.band(ax, x, shown, f"weights × {scale:g}", color, marker)
        for criterion in (settings.exact, settings.clear):
            ax.axhline(criterion, color="grey", lw=0.8, ls="--")
        style.log_axes(ax, y=True)
        ax.set_xticks(places, list(MODELS), rotation=40, ha="right", rotation_mode="anchor")
        ax.set_ylabel("|H - H₀Wᵀ| / |H|, last layer")
    axes[0].set_title("tokens of a prompt")
    axes[1].set_title("queries, same demonstrations")
    axes[0].legend()
    ax, middle = axes[2], dataset.isel(scale=dataset.sizes["scale"] // 2)
    inexact = [name for name in MODELS if name not in ("linear", "linear, query a key")]
    for i, name in enumerate(inexact):
        x = dataset.layer.values + 0.08 * (i - (len(inexact) - 1) / 2)
        values = middle.unexplained.sel(model=name).transpose("run", "layer").values
        lost += style.band(ax, x, values, name, style.COLOURS[i], style.MARKERS[i])
    ax.set(xlabel="layer", ylabel="share of h - h₀ not explained", ylim=(0, None))
    ax.set_xticks(dataset.layer.values)
    ax.set_title(f"tokens of a prompt, weights × {float(middle.scale):g}")
    ax.set_ylim(top=1.55 * ax.get_ylim()[1])
    ax.legend(ncols=2)
    linear, other = (float(last.residual.sel(model=m).median()) for m in ("linear", "softmax"))
    style.caption(
        drawn,
        f"What the best single matrix per layer misses, for the same random weights: {linear:.0e} "
        f"in masked linear attention, {other:.2g} with softmax (median). Median of {settings.runs} "
        f"draws and the middle 80 % of them; {lost} left out as not finite. d = {settings.d}, "
        f"n = {settings.n}. Dashed: at most {settings.exact:g} counts as a common map, at least "
        f"{settings.clear:g} as none.",
    )
    return drawn


def claims(dataset):
    settings = results.settings(dataset)
    none = "has no map common to the tokens of a prompt"
    table = (  # name, model, is the map exact, statement
        ("linear", "linear", True, "Masked linear attention: h_t = W_t h_0, one W_t for a prompt"),
        ("query_as_key", "linear, query a key", True, "With the query a key, tokens share one map"),
        (
            "query_as_key_queries",
            "linear, query a key",
            False,
            "A query that is a key changes the map",
        ),
        ("causal", "linear, causal", False, f"Causal linear attention {none}"),
        ("causal_queries", "linear, causal", True, "Causal masks keep one map for all queries"),
        ("norm", "linear, norm", False, f"Linear attention with pre-norm {none}"),
        ("mlp", "linear, MLP", False, f"Linear attention with an MLP {none}"),
        ("softmax", "softmax", False, f"Softmax attention {none}"),
    )
    found = []
    for name, model, exact, statement in table:
        measured = dataset["query_residual" if name.endswith("_queries") else "residual"]
        places = measured.sel(model=model).transpose(..., "run").values.reshape(-1, settings.runs)
        bound = settings.exact if exact else settings.clear
        criterion = f"largest over layers and scales <= {bound:g}"
        criterion = criterion if exact else f"smallest over layers and scales >= {bound:g}"
        found.append(
            about_the_mean(
                f"common_map.{name}",
                "A2 (2406.03768), Theorem 1" if name == "linear" else "derived here",
                statement,
                f"mean |H - H_0 W^T| / |H|, {criterion}",
                (max if exact else min)(places, key=np.mean),
                **{"at_most" if exact else "at_least": bound},
            )
        )
    return found
