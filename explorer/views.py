"""What the explorer shows of one model, on one prompt and on a batch: arrays of fixed shapes.

Every slider is an argument of one compiled program: layers and heads are closed by gates, clipping
is a rate, and a prompt of n demonstrations is one of N in which each stands N/n times: a softmax
reads both alike. Heads come in pairs,

    softmax attention with scores ε s and values v/ε, minus uniform attention with values v/ε,

whose sum tends to linear attention, its scores centred over the demonstrations, as ε falls to 0,
and is softmax attention less the mean of the values at ε = 1 (derived here). With the weights of
``_descending`` the limit is gradient descent on the prompt less its means.
"""

import contextlib
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from lsa_lab import estimators, prompts
from lsa_lab.analyses import amplification, clipping, heads
from lsa_lab.models import transformer
from lsa_lab.models.trace import Trace, layer_predictions
from lsa_lab.prompts import Prompt
from lsa_lab.tasks import linear
from lsa_lab.tasks.linear import LinearTask
from lsa_lab.theory import learning_curves

D, N, LAYERS, HEADS = 4, 12, 6, 4  # covariates, demonstrations, layers and heads at most
WIDTH, BATCH = D + 1, 48
HORIZON = 40  # demonstrations of the learning curves
SHOTS = tuple(n for n in range(1, N + 1) if N % n == 0)
WEIGHTS = ("descent", "random")
MATRICES = ("w_q", "w_k", "w_v")  # that read the stream; a layer's heads are stacked

SHARPNESS = (0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0)
RANGES: dict[str, tuple[float, float]] = {  # first and last place of every slider
    **{"shots": (1, N), "noise_std": (0.05, 1), "sparsity": (1, D), "seed": (0, 20)},
    **{"weights": (0, 1), "scale": (0.1, 2), "depth": (1, LAYERS), "softmax": (0.01, 1)},
    **{"gates": (0, 1), "matrix": (0, 2), "layer": (1, LAYERS), "rate": (0, 1), "step": (0.1, 1.9)},
}

PAIRED = transformer.Config(WIDTH, LAYERS, 2 * HEADS, WIDTH, kernel="softmax")  # of ``pairs``
_RANDOM = transformer.Config(WIDTH, LAYERS, HEADS, WIDTH, init_scale=1.0)


class Controls(flax.struct.PyTreeNode):
    """What the reader moves, as arrays: another value is not another program."""

    depth: Array  # [] layers that are open
    shots: Array  # [] n, one of SHOTS
    noise_std: Array  # [] of the demonstrations' labels, above 0: ridge needs a penalty
    sparsity: Array  # [] non-zeros of w, 1 to D
    softmax: Array  # [] ε
    weights: Array  # [] place in WEIGHTS
    scale: Array  # [] of random weights; of descent the step size
    gates: Array  # [HEADS]
    matrix: Array  # [] place in MATRICES, of what is clipped
    layer: Array  # [] that is clipped, the first is 1
    rate: Array  # [] the share of its singular values that is cut
    seed: Array  # [] of the prompts and the random weights
    step: Array  # [] β of the delta rule, whose learning curve stands beside the best steps'


START: dict[str, Any] = {  # where every slider begins
    **{"depth": 4, "shots": N, "noise_std": 0.25, "sparsity": D, "softmax": 0.1},
    **{"weights": 0, "scale": 0.5, "gates": [1.0] * HEADS, "matrix": 0, "layer": 1, "rate": 0.0},
    **{"seed": 0, "step": 1.0},
}
_REAL = ("noise_std", "softmax", "scale", "gates", "rate", "step")
PRESETS: dict[str, dict[str, Any]] = {  # what is worth a look, and the sliders that differ there
    "Layers that are steps of descent": {},
    "Steps that are too large": {"scale": 1.6, "depth": 6},
    "Depth amplifies a random stack": {"weights": 1, "depth": 6},
    "Softmax instead of linear attention": {"softmax": 1.0},
    "Clipping tames steps that are too large": {"scale": 1.0, "depth": 6, "matrix": 1, "rate": 0.8},
    "A delta rule that keeps the noise": {"noise_std": 0.5, "step": 1.5},
}


def address(values: Mapping[str, Any]) -> dict[str, str]:
    """What differs from START, as a query of an address has it."""
    moved = {n: value for n, value in values.items() if not np.array_equal(value, START[n])}
    return {name: json.dumps(np.asarray(value).tolist()) for name, value in moved.items()}


def addressed(query: Mapping[str, Any]) -> dict[str, Any]:
    """START with what an address says; a name or a value that is no slider's changes nothing."""
    values = dict(START)
    for name in values.keys() & query.keys():
        with contextlib.suppress(ValueError, TypeError):
            value = json.loads(query[name])
            low, high = RANGES[name]
            if np.shape(value) == np.shape(START[name]) and np.all(
                (np.asarray(value) >= low) & (np.asarray(value) <= high)
            ):
                values[name] = value
    return values


def controls(values: Mapping[str, Any], dtype: DTypeLike = jnp.float32) -> Controls:
    """The controls with these values; ``dtype`` is that of all that is computed from them."""
    return Controls(
        **{name: jnp.asarray(v, dtype if name in _REAL else int) for name, v in values.items()}
    )


class Views(flax.struct.PyTreeNode):
    """What the panels show."""

    flow: Array  # [LAYERS, N] |∂ŷ_l/∂e_i| of the first prompt; zero beyond the shots
    ratio: Array  # [LAYERS] of the two that are largest after the first layer
    risks: Array  # [LAYERS+1] of the model, after each layer
    descent: Array  # [LAYERS+1] after as many steps on the prompt less its means
    ridge: Array  # []
    zero: Array  # [] of predicting 0
    spectrum: Array  # [WIDTH] singular values of the matrix before it is clipped
    clipped: Array  # [WIDTH] the risk with 1, ..., WIDTH of them
    importance: Array  # [LAYERS, HEADS] rise of the risk without the head
    curves: Array  # [3, HORIZON+1] excess risks of the additive state, the delta rule with its best
    # steps and with the step of the slider, after 0, 1, ... demonstrations


@jax.jit
def views(controls: Controls) -> Views:
    """All that the panels show."""
    batch, unclipped, gates = prompts_of(controls), weights_of(controls), gates_of(controls)
    params = _clipped(unclipped, controls, controls.rate)
    tokens = jax.vmap(prompts.tokens)(batch)

    def risks(params: transformer.Params, gates: Array) -> Array:  # [LAYERS+1]
        traces = jax.vmap(lambda t: _forward(params, t, gates, controls))(tokens)
        return _errors(batch, jax.vmap(layer_predictions)(traces))

    rates = jnp.append(controls.rate, jnp.asarray(clipping.every_rate(WIDTH)[::-1], gates.dtype))
    after = jax.lax.map(lambda rate: risks(_clipped(unclipped, controls, rate), gates), rates)
    forward = partial(_forward, gates=gates, controls=controls)
    first = jax.tree.map(lambda leaf: leaf[0], batch)
    flow = amplification.demonstration_flow(forward, params, first)
    sizes = jnp.linalg.norm(flow, axis=-1)
    return Views(
        flow=sizes,
        ratio=amplification.amplification_ratio(flow[:, jnp.argsort(-sizes[0])[:2]]),
        risks=after[0],
        descent=_errors(batch, jax.vmap(lambda p: _descent(p, controls))(batch)),
        ridge=_errors(batch, jax.vmap(lambda p: _ridge(p, controls))(batch)),
        zero=_errors(batch, jnp.zeros(BATCH, gates.dtype)),
        spectrum=clipping.singular_values(_stacked(unclipped, controls)),
        clipped=after[1:, -1],
        importance=heads.importance(
            lambda mask: risks(params, gates * mask.astype(gates.dtype))[-1], LAYERS, HEADS
        ),
        curves=_curves(controls),
    )


def _curves(controls: Controls) -> Array:  # [3, HORIZON+1]
    noise_var = controls.noise_std**2
    return jnp.stack(
        [
            learning_curves.additive(HORIZON, D, noise_var),
            learning_curves.delta(HORIZON, D, noise_var),
            learning_curves.delta(HORIZON, D, noise_var, controls.step),
        ]
    )


def prompts_of(controls: Controls) -> Prompt:  # [BATCH]
    """Prompts of which noise, sparsity and shots change no draw."""
    key, dtype = jax.random.key(controls.seed), controls.noise_std.dtype
    key_weights, key_prompts, _ = jax.random.split(key, 3)

    def sparse(sparsity: int) -> Array:  # [BATCH, D], |w|² is 1 on average
        task = LinearTask(N, D, sparsity, weight_std=sparsity**-0.5, dtype=dtype)
        keys = jax.random.split(key_weights, BATCH)
        return jax.vmap(lambda key: linear.sample_weights(key, task))(keys)

    def prompt(key: Array, w: Array) -> Prompt:
        noise_std = controls.noise_std
        given = LinearTask(N, D, None, noise_std, prior_mean=w, weight_std=0.0, dtype=dtype)
        full = linear.sample(key, given)
        kept = jnp.arange(N) % controls.shots
        return full.replace(x=full.x[kept], y=full.y[kept])

    w = jnp.stack([sparse(s) for s in range(1, D + 1)])[controls.sparsity - 1]
    return jax.vmap(prompt)(jax.random.split(key_prompts, BATCH), w)


def weights_of(controls: Controls) -> transformer.Params:
    """HEADS heads in LAYERS layers: those that descend, or random ones."""
    scale = controls.scale
    key = jax.random.split(jax.random.key(controls.seed), 3)[2]
    random = jax.tree.map(lambda leaf: scale * leaf, transformer.init(key, _RANDOM, scale.dtype))
    is_descent = controls.weights == WEIGHTS.index("descent")
    return jax.tree.map(partial(jnp.where, is_descent), _descending(scale), random)


def gates_of(controls: Controls) -> Array:  # [LAYERS, HEADS]
    """The heads' gates in every open layer."""
    return jnp.where(jnp.arange(LAYERS)[:, None] < controls.depth, controls.gates[None], 0)


def pairs(params: transformer.Params, softmax: Array) -> transformer.Params:
    """Each head at ε, and after them the uniform ones that are subtracted."""
    both, values = partial(jnp.concatenate, axis=1), params.w_v / softmax
    return transformer.Params(
        w_q=both([softmax * params.w_q, jnp.zeros_like(params.w_q)]),
        w_k=both([params.w_k, params.w_k]),
        w_v=both([values, -values]),
        w_o=both([params.w_o, params.w_o]),
    )


def _descending(step: Array) -> transformer.Params:
    """Head h scores by step · x_ih x_th, reads labels and takes their sum off the label slot."""
    unit = jnp.eye(WIDTH, dtype=step.dtype)
    covariates = unit[:HEADS, None, :] * unit[0][None, :, None]  # [HEADS, k, e], in row 0
    label = unit[0][:, None] * unit[-1][None]
    stack = partial(jnp.broadcast_to, shape=(LAYERS, HEADS, WIDTH, WIDTH))
    return transformer.Params(
        w_q=step * stack(covariates), w_k=stack(covariates), w_v=stack(label), w_o=-stack(label.T)
    )


def _stacked(params: transformer.Params, controls: Controls) -> Array:  # [HEADS k, e]
    """The matrix that is clipped: its heads' rows, one below the other."""
    matrices = jnp.stack([getattr(params, name) for name in MATRICES])
    return matrices[controls.matrix, controls.layer - 1].reshape(-1, WIDTH)


def _clipped(params: transformer.Params, controls: Controls, rate: Array) -> transformer.Params:
    cut = clipping.truncate(_stacked(params, controls), rate).reshape(HEADS, WIDTH, WIDTH)
    here = jnp.arange(1, LAYERS + 1)[:, None, None, None] == controls.layer
    edited = {
        name: jnp.where(here & (controls.matrix == place), cut[None], getattr(params, name))
        for place, name in enumerate(MATRICES)
    }
    return params.replace(**edited)


def _forward(params: transformer.Params, tokens: Array, gates: Array, controls: Controls) -> Trace:
    """The model on n of the demonstrations, each of which stands N/n times."""
    kept = jnp.append(jnp.arange(N) % controls.shots, N)
    masks = jnp.concatenate([gates, gates], axis=1)
    return transformer.forward(pairs(params, controls.softmax), tokens[kept], PAIRED, masks)


def _descent(prompt: Prompt, controls: Controls) -> Array:  # [LAYERS+1]
    """As many steps of gradient descent on the demonstrations less their means."""
    centred = prompt.replace(x=prompt.x - prompt.x.mean(0)[None], y=prompt.y - prompt.y.mean())
    steps = jnp.where(jnp.arange(LAYERS) < controls.depth, controls.scale, 0)
    return estimators.gradient_descent(centred, steps) @ prompt.x_query


def _ridge(prompt: Prompt, controls: Controls) -> Array:  # []
    """The best linear rule: on average over w, E(w wᵀ) = I/D."""
    penalty = controls.noise_std**2 * D / controls.shots.astype(controls.noise_std.dtype)
    return estimators.ridge(prompt, penalty) @ prompt.x_query


def _errors(batch: Prompt, predictions: Array) -> Array:  # [BATCH, ...] -> [...]
    """The mean squared error."""
    targets = batch.y_query.reshape(-1, *[1] * (predictions.ndim - 1))
    return jnp.mean((predictions - targets) ** 2, axis=0)
