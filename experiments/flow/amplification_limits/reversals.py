"""Linear stacks in which depth turns the order of two demonstrations: by hand, and by ascent."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.flow.pair_stacks import UNMASKED
from experiments.flow.pairs import log_ratios
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.linear_attention import Params
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import Prompt
from lsa_lab.theory import amplification

DIRECTIONS = ("least", "largest")  # change of the log ratio that the ascent seeks
EXAMPLES = ("width 1, w_pv w_kq < 0", "gradient descent", "self-coupling")


def unit(rows):
    return rows / jnp.linalg.norm(rows, axis=-1, keepdims=True)


def normalised(point, budget):
    """K, P [e, e], the demonstrations [2, e] and the query [d] at their fixed lengths."""
    w_kq, w_pv, pair, query = point
    size = budget**0.5
    weights = (size * w / jnp.linalg.norm(w) for w in (w_kq, w_pv))
    return (*weights, unit(pair), unit(query))


def log_ratio(point, depth):  # -> [L]
    """Of the flows of two demonstrations, each alone, in a tied stack."""
    w_kq, w_pv, pair, query = point
    params = Params(*(jnp.broadcast_to(w, (depth, 1, *w.shape)) for w in (w_kq, w_pv)))
    prompt = Prompt(pair[:, :-1], pair[:, -1], query, jnp.zeros(()))
    return log_ratios(UNMASKED, params, prompt)[0, 0]


def ascend(config, point, budget, sign):  # -> point, [L]
    """Adam on sign · (change of the log ratio), the first demonstration staying ahead at first."""
    optimizer = optax.adam(config.learning_rate)

    def loss(point):
        path = log_ratio(normalised(point, budget), config.search_depth)
        change = config.cap * jnp.tanh((path[-1] - path[0]) / config.cap)
        return sign * change + 10 * jax.nn.relu(config.lead - path[0])

    def step(state, _):
        point, moments = state
        slopes = jax.grad(loss)(point)
        with jax.numpy_dtype_promotion("standard"):  # Adam raises a float to an integer count
            updates, moments = optimizer.update(slopes, moments)
        return (optax.apply_updates(point, updates), moments), None

    state, _ = jax.lax.scan(step, (point, optimizer.init(point)), length=config.steps)
    found = normalised(state[0], budget)
    return found, log_ratio(found, config.search_depth)


def search(config, rng):
    """Log ratios [directions, budgets, restarts, L]; the share [restarts] of inaccurate copies of
    the stacks shown that reverse the order; the one that does so most, in two decimals."""
    d, e, many = config.search_d, config.search_d + 1, (2, len(config.budgets), config.restarts)
    shapes = ((e, e), (e, e), (2, e), (d,))
    start = tuple(jnp.asarray(rng.normal(size=(*many, *shape))) for shape in shapes)
    run = partial(ascend, config)
    for axes in ((0, None, None), (0, 0, None), (0, None, 0)):
        run = jax.vmap(run, axes)
    found, paths = jax.jit(run)(start, jnp.asarray(config.budgets), jnp.asarray([1.0, -1.0]))
    shown = config.budgets.index(config.shown)
    points = [np.round(part[0, shown], 2) for part in found]
    noise = [1 + config.error * rng.normal(size=(config.copies, *part.shape)) for part in points]
    copies = tuple(part[None] * factor for part, factor in zip(points, noise, strict=True))
    follow = jax.vmap(jax.vmap(partial(log_ratio, depth=config.search_depth)))
    inexact = np.asarray(jax.jit(follow)(copies))  # [copies, restarts, L]
    reverses = ((inexact[..., 0] > 0) & (inexact[..., -1] < 0)).mean(0)
    best = np.argmin(np.where(reverses == reverses.max(), np.median(inexact[..., -1], 0), np.inf))
    chosen = tuple(part[best] for part in points)
    path = np.asarray(jax.jit(partial(log_ratio, depth=config.search_depth))(chosen))
    return np.asarray(paths), reverses, (*chosen, path)


def by_hand(layers):  # -> [examples, 2, L]
    """Ratios of the first demonstration over the second, of networks and of closed forms."""
    made = [make(layers) for make in (width_1, descent, coupling)]
    return jnp.stack([jnp.stack(pair) for pair in made])


def width_1(layers):  # -> [L], [L]
    """Of ∂q/∂d, for tokens of width 1 that nobody masks, and the law of many small layers."""
    gain, pair, query = jnp.asarray(-0.01), jnp.array([1.5, 0.8]), jnp.asarray(0.5)
    shape = (layers, 1, 1, 1)
    params = Params(jnp.ones(shape), jnp.full(shape, gain))

    def path(d):
        return UNMASKED(params, jnp.stack([d, query])[:, None]).stream[1:, -1, 0]

    depths = jnp.arange(1.0, layers + 1)
    law = amplification.one_coordinate_ratio(gain, pair, query, depths)
    return _ratio(jax.vmap(jax.jacfwd(path))(pair)), law


def descent(layers):  # -> [L], [L]
    """Of ∂ŷ/∂y, for steps of gradient descent."""
    pair, query = jnp.array([[2.0, 0.0], [0.6, 0.0]]), jnp.array([1.0, 0.3])
    steps = jnp.full(layers, 0.15)
    params = constructions.gradient_descent(steps, 2)

    def path(y, x):
        rows = jnp.stack([jnp.append(x, y), jnp.append(query, 0.0)])
        return layer_predictions(linear_attention.forward(params, rows))[1:]

    flows = jax.vmap(jax.jacfwd(path), (None, 0))(jnp.asarray(1.0), pair)
    closed = jax.vmap(amplification.one_shot_descent_flow, (None, 0, None))(steps, pair, query)
    return _ratio(flows), _ratio(closed)


def coupling(layers):  # -> [L], [L]
    """Of contributions, where skew w_kq leaves the demonstrations as they are: κ = 0 and 0.5."""
    pair, query = jnp.array([[0.0, 1.0], [1.0, 0.5]]), jnp.array([1.0, 0.0])
    w_kq, w_pv = jnp.array([[0.0, 1.0], [-1.0, 0.0]]), jnp.diag(jnp.array([0.0, 1.0]))
    params = Params(*(jnp.broadcast_to(w, (layers, 1, 2, 2)) for w in (w_kq, w_pv)))

    def network(d):
        return linear_attention.forward(params, jnp.stack([d, query])).stream[:, -1]

    def closed(d):
        return amplification.frozen_demonstration(w_kq, w_pv, d, query, layers)

    def added(path):
        return jnp.linalg.norm(jax.vmap(path)(pair)[:, 1:] - query[None, None], axis=-1)

    return _ratio(added(network)), _ratio(added(closed))


def _ratio(pair):  # [2, L] -> [L]
    return jnp.abs(pair[0] / pair[1])
