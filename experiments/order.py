"""To which models does the order of the demonstrations matter, and how much?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments import style
from experiments.configs.order import TIERS, Config
from lsa_lab import prompts, results
from lsa_lab.claims import about_the_mean
from lsa_lab.models import constructions, linear_attention, transformer
from lsa_lab.models.trace import layer_predictions
from lsa_lab.tasks.linear import LinearTask, sample, sample_weights

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]

KINDS = ("linear", "softmax", "descent")  # random, random, and constructed linear attention
MASKS = {"non-causal": "demonstrations", "causal": "causal"}


def draw(key, config):  # -> Params [R, ...], tokens [R, B, O, T, e] twice
    """Random weights, prompts in many orders, and prompts with other demonstrations of the same
    task and the same query. The first order is the one that was drawn."""
    runs, count, orders = config.runs, config.prompts, config.orders
    keys = [jax.random.fold_in(key, tag) for tag in range(4)]
    model = attention(config, "softmax", "demonstrations")
    init = partial(transformer.init, config=model)
    task = LinearTask(config.n, config.d, noise_std=config.noise_std)

    def similar(key_weights, key_prompts):  # prompts of one task that ask one thing
        same = task.replace(prior_mean=sample_weights(key_weights, task), weight_std=0.0)
        many = jax.vmap(partial(sample, task=same))(jax.random.split(key_prompts, orders))
        query = jnp.broadcast_to(many.x_query[:1], many.x_query.shape)
        return jax.vmap(prompts.tokens)(many.replace(x_query=query))

    def shuffled(key, tokens):
        return jnp.concatenate([jax.random.permutation(key, tokens[:-1]), tokens[-1:]])

    pairs = [jax.random.split(k, (runs, count)) for k in keys[1:3]]
    fresh = jax.vmap(jax.vmap(similar))(*pairs)
    first = fresh[:, :, :1]
    again = jnp.broadcast_to(first, (runs, count, orders - 1, *first.shape[3:]))
    shuffle = jax.vmap(jax.vmap(jax.vmap(shuffled)))
    permuted = shuffle(jax.random.split(keys[3], (runs, count, orders - 1)), again)
    ordered = jnp.concatenate([first, permuted], axis=2)
    return jax.vmap(init)(jax.random.split(keys[0], runs)), ordered, fresh


def attention(config, kernel, keys):
    return transformer.Config(
        config.d + 1,
        config.depth,
        config.heads,
        config.key_width,
        kernel=kernel,
        keys=keys,
        init_scale=config.scale,
    )


def predictions(params, tokens, config, kind, keys):  # [T, e] -> [L]
    """ŷ after each layer. The descent is one stack for all runs, with the one-layer best step."""
    if kind != "descent":
        trace = transformer.forward(params, tokens, attention(config, kind, keys))
    else:
        step = 1 / (1 + (1 + config.d + config.noise_std**2) / config.n)
        stack = constructions.gradient_descent(jnp.full(config.depth, step), config.d)
        trace = linear_attention.forward(stack, tokens, keys=keys)
    return layer_predictions(trace)[1:]


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    @partial(jax.jit, static_argnums=(3, 4))
    def measure(params, ordered, fresh, kind, keys):  # -> [2, R, L]
        one = partial(predictions, config=config, kind=kind, keys=keys)
        over_prompts = jax.vmap(jax.vmap(one, (None, 0)), (None, 0))
        # [R, B, 2 O, L]
        both = jax.vmap(over_prompts)(params, jnp.concatenate([ordered, fresh], axis=2))
        reordered, redrawn = both[:, :, : config.orders], both[:, :, config.orders :]
        size = jnp.sqrt((reordered[:, :, 0] ** 2).mean(1))
        change = jnp.abs(reordered - reordered[:, :, :1]).max((1, 2)) / size
        spread = [some.std(2, ddof=1) for some in (reordered, redrawn)]  # [R, B, L]
        return jnp.stack([change, jnp.median(spread[0] / spread[1], axis=1)])

    drawn = jax.jit(partial(draw, config=config))(jax.random.key(config.seed))
    found = [[measure(*drawn, kind, keys) for keys in MASKS.values()] for kind in KINDS]
    axes = ("kind", "mask", "run", "depth")
    return xr.Dataset(
        {name: (axes, np.array(found)[:, :, i]) for i, name in enumerate(("effect", "share"))},
        {"kind": list(KINDS), "mask": list(MASKS), "depth": np.arange(1, config.depth + 1)},
    )


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(8.0, 3.4, (1, 2))
    lost, smallest = 0, np.finfo(float).eps / 10
    for i, (kind, color) in enumerate(zip(KINDS, style.COLOURS, strict=False)):
        for mask, marker in zip(MASKS, style.MARKERS, strict=False):
            there = dataset.sel(kind=kind, mask=mask).transpose("run", "depth")
            x = dataset.depth.values + 0.08 * (i - 1)
            shown = np.maximum(there.effect, smallest)  # an exact zero has no logarithm
            lost += style.band(axes[0], x, shown, f"{kind}, {mask}", color, marker)
            if mask == "causal":
                lost += style.band(axes[1], x, there.share, kind, color, marker)
    axes[0].axhspan(smallest, settings.exact, color="grey", alpha=0.12, lw=0)
    axes[0].axhline(settings.clear, color="grey", lw=0.8, ls="--")
    axes[0].set_ylim(smallest, None)
    style.log_axes(axes[0], y=True)
    axes[0].set(ylabel="largest change / size of predictions")
    axes[0].set_title("effect of a new order")
    axes[1].set(ylabel="spread over orders / over other draws")
    axes[1].set_title("causal: against other demonstrations")
    for ax in axes:
        ax.set(xlabel="layers", xticks=dataset.depth.values)
    axes[0].legend(ncols=2, loc="center", bbox_to_anchor=(0.55, 0.46))
    axes[1].legend()
    share = dataset.share.sel(mask="causal").isel(depth=-1).median("run")
    style.caption(
        drawn,
        f"Without a causal mask, and in one causal layer, the order has no effect (shaded: below "
        f"{settings.exact:g}, rounding; dashed: what counts as an effect). With {settings.depth} "
        f"causal layers it spreads predictions {float(share.min()):.2g} to "
        f"{float(share.max()):.2g} times as much as other demonstrations of the same task do. "
        f"Median of {settings.runs} runs and the middle 80 % of them; {lost} left out as not "
        f"finite. d = {settings.d}, n = {settings.n}.",
    )
    return drawn


def worst(measured, badness):  # -> [R]
    """The runs at the kind and depth where they are worst."""
    samples = measured.transpose(..., "run").values.reshape(-1, measured.sizes["run"])
    return max(samples, key=badness)


def claims(dataset):
    settings = results.settings(dataset)
    free, causal = (dataset.effect.sel(mask=mask) for mask in MASKS)
    random = ["linear", "softmax"]
    most = "mean over runs of the largest change, relative, at the "
    none, some = f"<= {settings.exact:g}", f">= {settings.clear:g}"
    return [
        about_the_mean(
            "order.free",
            "derived here; A3's open question on order",
            "Where all tokens read all demonstrations, their order has no effect at any depth",
            f"{most}worst depth and kernel {none}",
            worst(free, np.mean),
            at_most=settings.exact,
        ),
        about_the_mean(
            "order.one_causal_layer",
            "derived here",
            "One causal layer does not see the order: its query reads all demonstrations",
            f"{most}worst kernel {none}",
            worst(causal.sel(depth=1), np.mean),
            at_most=settings.exact,
        ),
        about_the_mean(
            "order.two_causal_layers",
            "derived here",
            "Two causal layers see the order, linear or softmax, random or constructed",
            f"{most}kernel with the least {some}",
            worst(causal.sel(depth=2), lambda runs: -runs.mean()),
            at_least=settings.clear,
        ),
        about_the_mean(
            "order.batches_of_one",
            "A2 (2406.03768), Remark 1",
            "The order matters as in descent with batches of one, in the paper's own masked model",
            f"{most}depth and kernel with the most {some}",
            worst(free.sel(kind=random), np.mean),
            at_least=settings.clear,
        ),
    ]
