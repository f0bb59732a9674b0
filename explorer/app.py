"""Explore one model on prompts of linear regression with sliders; `make explore` serves this page.

Every slider is an argument of one compiled program: gates of zero close layers and heads, and a
prompt of n demonstrations repeats each of them N/n times, which softmax attention cannot
distinguish. Heads come in pairs,

    softmax attention with scores ε s and values v/ε, minus uniform attention with values v/ε.

As ε falls to 0 their sum tends to linear attention with scores centred over the demonstrations; at
ε = 1 it is softmax attention minus the mean of the values (derived here). With the weights of
``select_weights`` the limit is gradient descent on the prompt with its means subtracted.
"""

import marimo

app = marimo.App(width="full", app_title="lsa_lab: explorer")

with app.setup:
    from functools import partial
    from typing import Any, NamedTuple

    import marimo as mo

    from lsa_lab.lab import settings

    if mo.running_in_notebook():
        settings.configure()  # before jax is imported

    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import Array
    from matplotlib.colors import SymLogNorm
    from matplotlib.figure import Figure

    from lsa_lab import estimators, prompts
    from lsa_lab.analyses import amplification, clipping, heads
    from lsa_lab.lab import plotting
    from lsa_lab.models import transformer
    from lsa_lab.models.trace import Trace, layer_predictions
    from lsa_lab.prompts import Prompt
    from lsa_lab.tasks import linear

    D, N, LAYERS, HEADS, BATCH = 4, 12, 6, 4, 48  # N, LAYERS and HEADS are the largest sizes
    WIDTH = D + 1  # of a token
    SHARPNESS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
    RATES = [round(rate, 2) for rate in clipping.every_rate(WIDTH)]
    MATRICES = {"w_q": 0, "w_k": 1, "w_v": 2}
    PAIRED = transformer.Config(WIDTH, LAYERS, 2 * HEADS, WIDTH, kernel="softmax")
    RANDOM = transformer.Config(WIDTH, LAYERS, HEADS, WIDTH, init_scale=1.0)

    EXAMPLES: dict[str, dict[str, Any]] = {
        "Layers that are steps of gradient descent": {},
        "Clipping when steps are too large": {"scale": 1.0, "depth": 6, "matrix": 1, "rate": 0.8},
        "Depth amplifies the flow in random layers": {"random_weights": True, "depth": 6},
        "Softmax attention": {"sharpness": 1.0},
    }


@app.class_definition
class Controls(NamedTuple):
    """The values of the sliders."""

    shots: Any = N  # demonstrations n, a divisor of N
    noise_std: Any = 0.25  # of the demonstrations' labels, above 0
    seed: Any = 0  # of the prompts and the random weights
    random_weights: Any = False
    scale: Any = 0.5  # step size of gradient descent, or factor of the random weights
    depth: Any = 4  # open layers
    sharpness: Any = 0.1  # ε
    gates: Any = np.ones(HEADS)  # 0 removes a head from every layer
    matrix: Any = 0  # index in MATRICES of the clipped matrix
    layer: Any = 1  # clipped layer, from 1
    rate: Any = 0.0  # share of singular values removed


@app.function
def sample_prompts(controls: Controls) -> Prompt:  # [BATCH]
    """Draw prompts whose random numbers depend on the seed alone; the first n rows repeat."""
    task = linear.LinearTask(N, D, noise_std=controls.noise_std, weight_std=D**-0.5)
    batch = linear.sample_batch(jax.random.key(controls.seed), task, BATCH)
    rows = jnp.arange(N) % controls.shots
    return batch.replace(x=batch.x[:, rows], y=batch.y[:, rows])


@app.function
def select_weights(controls: Controls) -> transformer.Params:
    """Return random weights or those of gradient descent, before clipping.

    In the latter head h has the scores scale · x_ih x_th and subtracts Σ_i scores · y_i.
    """
    key = jax.random.fold_in(jax.random.key(controls.seed), BATCH)
    drawn = transformer.init(key, RANDOM, controls.scale.dtype)
    unit, stack = jnp.eye(WIDTH), partial(jnp.broadcast_to, shape=drawn.w_q.shape)
    covariates = unit[:HEADS, None, :] * unit[0][None, :, None]  # [HEADS, k, e]
    label = unit[0][:, None] * unit[-1][None]
    descent = transformer.Params(
        controls.scale * stack(covariates), stack(covariates), stack(label), -stack(label.T)
    )
    choose = partial(jnp.where, controls.random_weights)
    return jax.tree.map(lambda w, v: choose(controls.scale * w, v), drawn, descent)


@app.function
def pair_heads(params: transformer.Params, sharpness: Array) -> transformer.Params:
    """Return the heads at ε followed by the uniform heads that are subtracted."""
    join, values = partial(jnp.concatenate, axis=1), params.w_v / sharpness
    return transformer.Params(
        w_q=join([sharpness * params.w_q, jnp.zeros_like(params.w_q)]),
        w_k=join([params.w_k, params.w_k]),
        w_v=join([values, -values]),
        w_o=join([params.w_o, params.w_o]),
    )


@app.function
def clip_weights(params, controls: Controls, rate: Array) -> transformer.Params:
    """Clip one matrix, the rows of all heads of a layer."""
    matrices, place = jnp.stack([getattr(params, m) for m in MATRICES]), controls.layer - 1
    stacked = matrices[controls.matrix, place].reshape(-1, WIDTH)
    clipped = clipping.truncate(stacked, rate).reshape(HEADS, WIDTH, WIDTH)
    matrices = matrices.at[controls.matrix, place].set(clipped)
    return params.replace(**dict(zip(MATRICES, matrices, strict=True)))


@app.function
def predict_baselines(prompt: Prompt, controls: Controls) -> tuple[Array, Array]:
    """Return predictions of descent [LAYERS+1], on a prompt less its means, and of ridge []."""
    steps = jnp.where(jnp.arange(LAYERS) < controls.depth, controls.scale, 0)
    penalty = controls.noise_std**2 * D / controls.shots.astype(controls.noise_std.dtype)
    centred = prompt.replace(x=prompt.x - prompt.x.mean(0)[None], y=prompt.y - prompt.y.mean())
    descent, ridge = estimators.gradient_descent(centred, steps), estimators.ridge(prompt, penalty)
    return descent @ prompt.x_query, ridge @ prompt.x_query


@app.function
def compute_views(controls: Controls) -> dict[str, Array]:
    """Return the data of all panels."""
    batch, unclipped = sample_prompts(controls), select_weights(controls)
    params = clip_weights(unclipped, controls, controls.rate)
    gates = jnp.where(jnp.arange(LAYERS)[:, None] < controls.depth, controls.gates[None], 0)

    def average_squares(predictions: Array) -> Array:  # [BATCH, ...] -> [...]
        return jax.vmap(lambda answer, y: (answer - y) ** 2)(predictions, batch.y_query).mean(0)

    def forward(params: transformer.Params, tokens: Array, gates: Array = gates) -> Trace:
        # Repeated here too, so that a derivative counts every copy of a demonstration.
        repeated = tokens[jnp.append(jnp.arange(N) % controls.shots, N)]
        mask = jnp.concatenate([gates, gates], axis=1)
        return transformer.forward(pair_heads(params, controls.sharpness), repeated, PAIRED, mask)

    def risks(params: transformer.Params, gates: Array = gates) -> Array:  # [LAYERS+1]
        traces = jax.vmap(partial(forward, params, gates=gates))(jax.vmap(prompts.tokens)(batch))
        return average_squares(jax.vmap(layer_predictions)(traces))

    def risk_without(mask: Array) -> Array:  # [LAYERS, HEADS] -> []
        return risks(params, gates * mask.astype(gates.dtype))[-1]

    rates = jnp.append(controls.rate, jnp.asarray(clipping.every_rate(WIDTH)[::-1]))
    by_rate = jax.lax.map(lambda rate: risks(clip_weights(unclipped, controls, rate)), rates)
    first = jax.tree.map(lambda leaf: leaf[0], batch)
    flow = amplification.demonstration_flow(forward, params, first)
    sizes = jnp.linalg.norm(flow, axis=-1)
    descent, ridge = jax.vmap(partial(predict_baselines, controls=controls))(batch)
    return {
        "descent": average_squares(descent),  # [LAYERS+1]
        "ridge": average_squares(ridge),  # []
        "flow": sizes,  # [LAYERS, N] |∂ŷ_l/∂e_i| of the first prompt; zero beyond n
        "ratio": amplification.amplification_ratio(flow[:, jnp.argsort(-sizes[0])[:2]]),
        "risk": by_rate[0],  # [LAYERS+1]
        "clipped": by_rate[1:, -1],  # [WIDTH] risk with retained rank 1, ..., WIDTH
        "importance": heads.importance(risk_without, LAYERS, HEADS),  # [LAYERS, HEADS]
    }


@app.function
def draw_flow(ax, controls: Controls, views: dict[str, np.ndarray]) -> str:
    depth, ratio = controls.depth, views["ratio"][: controls.depth]
    flow = np.ma.masked_equal(views["flow"][:depth, : controls.shots], 0)
    ax.plot(1 + np.arange(depth), flow, "o-", color=plotting.BLUE)
    caption = "Norm of the derivative of one prompt's prediction by each demonstration."
    if not np.isfinite(ratio).all():  # fewer than two have a flow
        return caption
    return (
        f"{caption} Of the two largest after layer 1, the first has {ratio[0]:.3g} times the flow "
        f"of the second there and {ratio[-1]:.3g} times after layer {depth}."
    )


@app.function
def draw_risk(ax, controls: Controls, views: dict[str, np.ndarray]) -> str:
    layers, risk = np.arange(controls.depth + 1), views["risk"][-1]
    ax.plot(layers, views["risk"][layers], label="model", **plotting.METHOD["softmax"])
    ax.plot(layers, views["descent"][layers], "--", label="descent", **plotting.METHOD["descent"])
    ax.axhline(views["ridge"], color=plotting.BLACK, label="ridge")
    ax.legend()
    return (
        f"Mean squared error of {BATCH} prompts. After layer {controls.depth} the model has "
        f"{risk / views['ridge']:.3g} times the risk of ridge regression and "
        f"{risk / views['descent'][-1]:.3g} times that of {controls.depth} steps of descent."
    )


@app.function
def draw_importance(ax, controls: Controls, views: dict[str, np.ndarray]) -> str:
    depth, rise = controls.depth, views["importance"][: controls.depth] / views["risk"][-1]
    norm, extent = SymLogNorm(0.1, vmin=-10, vmax=10), (0.5, HEADS + 0.5, depth + 0.5, 0.5)
    image = ax.imshow(rise, cmap="RdBu_r", norm=norm, aspect="auto", extent=extent)
    bar = dict(extend="both", label="rise / risk", format="%g", ticks=[-10, -1, 0, 1, 10])
    ax.figure.colorbar(image, ax=ax, **bar)
    layer, head = np.unravel_index(rise.argmax(), rise.shape)
    return (
        "Rise of the risk when one head of one layer is removed, divided by the model's risk. "
        f"The largest is {rise.max():.3g}, for head {head + 1} of layer {layer + 1}."
    )


@app.function
def draw_clipped(ax, controls: Controls, views: dict[str, np.ndarray]) -> str:
    rank, risks = clipping.kept_rank(WIDTH, controls.rate), views["clipped"]
    ax.plot(1 + np.arange(WIDTH), risks, mfc="white", **plotting.METHOD["softmax"])
    ax.plot(rank, risks[rank - 1], **plotting.METHOD["softmax"])
    ax.axhline(views["ridge"], color=plotting.BLACK)
    return (
        "Risk of the model when this matrix keeps its largest singular values; the line is ridge. "
        f"Rank {rank} has {risks[rank - 1] / risks[-1]:.3g} times the risk of the full matrix."
    )


@app.function
def draw_panels(controls: Controls, views: dict[str, Array]) -> list[tuple[Figure, str]]:
    """Return the figure and the caption of each panel."""
    panels = [
        ("Flow of each demonstration", "layer", "|∂ŷ/∂e|", True, draw_flow),
        ("Risk by layer", "layer", "risk", True, draw_risk),
        ("Importance of each head", "head", "layer", False, draw_importance),
        ("Risk by retained rank", "retained rank", "risk", True, draw_clipped),
    ]
    drawn, data = [], jax.device_get(views)
    for title, x, y, is_log, draw in panels:
        figure, (ax,) = plotting.figure(3.4, 2.2)
        with plotting.context():
            plotting.log_axes(ax, y=is_log)
            ax.set(title=title, xlabel=x, ylabel=y)
            ax.xaxis.get_major_locator().set_params(integer=True)
            drawn.append((figure, draw(ax, controls, data)))
    return drawn


@app.cell
def _():
    example = mo.ui.dropdown(EXAMPLES, next(iter(EXAMPLES)), label="Example", full_width=True)
    return (example,)


@app.cell
def _(example):
    first = Controls(**example.value)

    def slide(name, label, *ends, **steps):
        look = {"label": label, "show_value": True, "full_width": True}
        return mo.ui.slider(*ends, value=getattr(first, name), **look, **steps)

    matrix = list(MATRICES)[first.matrix]
    sliders = mo.ui.dictionary(
        {
            "shots": slide("shots", "Demonstrations", steps=[1, 2, 3, 4, 6, 12]),
            "noise_std": slide("noise_std", "Label noise (std; signal 1)", 0.05, 1, 0.05),
            "seed": slide("seed", "Random seed", 0, 20, 1),
            "random_weights": mo.ui.checkbox(first.random_weights, label="Random weights"),
            "scale": slide("scale", "Step size, or scale of random weights", 0.1, 2, 0.05),
            "depth": slide("depth", "Layers", 1, LAYERS, 1),
            "sharpness": slide("sharpness", "ε (near 0: linear; 1: softmax)", steps=SHARPNESS),
            "removed": mo.ui.multiselect(range(1, HEADS + 1), label="Heads removed"),
            "matrix": mo.ui.dropdown(MATRICES, matrix, label="Clipped matrix"),
            "layer": slide("layer", "Clipped layer", 1, LAYERS, 1),
            "rate": slide("rate", "Share of singular values removed", steps=RATES),
        }
    )
    mo.sidebar([example, *sliders.elements.values()], width="310px")
    return (sliders,)


@app.cell
def _(sliders):
    values = dict(sliders.value)
    gates = 1.0 - np.isin(1 + np.arange(HEADS), values.pop("removed"))
    controls = Controls(**values, gates=gates)
    with mo.status.spinner("Computing; the first time compiles for about ten seconds"):
        drawn = draw_panels(controls, jax.jit(compute_views)(controls))
    panels = [mo.image(plotting.encode(figure, "png"), caption=text) for figure, text in drawn]
    grid = "display:grid; gap:1.5rem; grid-template-columns:repeat(auto-fit,minmax(16rem,1fr))"
    cells = "".join(f"<div>{panel.text}</div>" for panel in panels)
    heading = mo.md("# Which algorithm does a model run in its prompt?")
    mo.vstack([heading, mo.Html(f'<div style="{grid}">{cells}</div>')])


if __name__ == "__main__":
    app.run()
