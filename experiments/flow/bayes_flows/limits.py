"""Counterexamples by ascent, and maps of where random stacks amplify."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from experiments.flow import pairs
from experiments.flow.bayes_flows.config import DIRECTIONS, Limits
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt

SIGNS = dict(zip(DIRECTIONS, (1.0, -1.0), strict=True))  # of the change in the loss


def search(config, rng):
    """Log ratios [directions, budgets, restarts, L]; the share [restarts] of inaccurate copies of
    the stacks shown that reverse the order; the one that does so most, in two decimals."""
    d, e, many = config.search_d, config.search_d + 1, (2, len(config.budgets), config.restarts)
    shapes = ((e, e), (e, e), (2, e), (d,))
    start = tuple(jnp.asarray(rng.normal(size=(*many, *shape))) for shape in shapes)
    run = partial(ascend, config)
    for axes in ((0, None, None), (0, 0, None), (0, None, 0)):
        run = jax.vmap(run, axes)
    signs = jnp.asarray(list(SIGNS.values()))
    ends, paths = jax.jit(run)(start, jnp.asarray(config.budgets), signs)
    points = [np.round(part[0, config.budgets.index(config.shown)], 2) for part in ends]
    inexact = inexact_copies(points, config, rng)  # [copies, restarts, L]
    reverses = ((inexact[..., 0] > 0) & (inexact[..., -1] < 0)).mean(0)
    best = np.argmin(np.where(reverses == reverses.max(), np.median(inexact[..., -1], 0), np.inf))
    chosen = tuple(part[best] for part in points)
    path = np.asarray(jax.jit(partial(log_ratio, depth=config.search_depth))(chosen))
    return np.asarray(paths), reverses, (*chosen, path)


def ascend(config, point, budget, sign):  # -> point, [L]
    """Adam on sign · (change of the log ratio), the first demonstration staying ahead at first."""
    optimizer = optax.adam(config.learning_rate)

    def loss(point):
        path = log_ratio(normalise(point, budget), config.search_depth)
        change = config.cap * jnp.tanh((path[-1] - path[0]) / config.cap)
        return sign * change + 10 * jax.nn.relu(config.lead - path[0])

    def step(state, _):
        point, moments = state
        slopes = jax.grad(loss)(point)
        with jax.numpy_dtype_promotion("standard"):  # Adam raises a float to an integer count
            updates, moments = optimizer.update(slopes, moments)
        return (optax.apply_updates(point, updates), moments), None

    state, _ = jax.lax.scan(step, (point, optimizer.init(point)), length=config.steps)
    end = normalise(state[0], budget)
    return end, log_ratio(end, config.search_depth)


def inexact_copies(points, config, rng):  # [restarts, ...] -> [copies, restarts, L]
    """Log ratios of copies in which every number has a relative error of its own."""
    noise = [1 + config.error * rng.normal(size=(config.copies, *part.shape)) for part in points]
    copies = tuple(part[None] * factor for part, factor in zip(points, noise, strict=True))
    follow = jax.vmap(jax.vmap(partial(log_ratio, depth=config.search_depth)))
    return np.asarray(jax.jit(follow)(copies))


def log_ratio(point, depth):  # -> [L]
    """log |flow| of the first of two demonstrations, each alone, less that of the second, in a
    tied stack."""
    w_kq, w_pv, pair, query = point
    params = Params(*(jnp.broadcast_to(w, (depth, 1, *w.shape)) for w in (w_kq, w_pv)))
    prompt = Prompt(pair[:, :-1], pair[:, -1], query, jnp.zeros(()))
    return pairs.log_ratios(pairs.UNMASKED, params, prompt)[0, 0]


def normalise(point, budget):
    """K, P [e, e], the demonstrations [2, e] and the query [d] at their fixed lengths."""
    w_kq, w_pv, pair, query = point
    size = budget**0.5
    weights = (size * w / jnp.linalg.norm(w) for w in (w_kq, w_pv))
    return (*weights, _unit(pair), _unit(query))


def _unit(rows):
    return rows / jnp.linalg.norm(rows, axis=-1, keepdims=True)


def feedback_map(config, base, batch):
    """Shares of pairs whose ratio grows in every layer, and overflows [feedbacks, gains, R, 2]."""
    same = base.replace(w_kq=np.zeros_like(base.w_kq) + np.eye(config.d + 1))
    same = same.w_kq / (2 * config.d) ** 0.5  # of gain 1, as base
    growth, dropped = [], []
    for feedback in config.feedbacks:
        rest, share = (1 - feedback**2) ** 0.5, abs(feedback)
        mixed = Params(share * same + rest * base.w_kq, feedback * same + rest * base.w_pv)
        stacks = [pairs.amplify(mixed, gain) for gain in config.gains]
        logs = np.stack([pairs.measure(pairs.UNMASKED, s, batch) for s in stacks])
        summary = pairs.summarise(np.moveaxis(logs[:, :, :, :, 0], 2, 3))  # [G, R, 2, B, L]
        growth.append(summary["growth"])
        dropped.append(summary["dropped"])
    return np.stack(growth), np.stack(dropped)


def measure(config: Limits):
    rng = np.random.default_rng(config.seed)
    paths, reverses, chosen = search(config, rng)
    batch = pairs.draw(rng, config.runs, config.pairs, config.d)
    base = pairs.random_linear(rng, config.runs, config.depth, config.d)
    growth, dropped = feedback_map(config, base, batch)
    data = {
        "search": (("direction", "budget", "restart", "search_layer"), paths),
        "reverses": (("restart",), reverses),
        "growth": (("feedback", "gain", "run", "mode"), growth),
        "dropped": (("feedback", "gain", "run", "mode"), dropped),
    }
    sizes = ("row", "column"), ("row", "column"), ("demonstration", "column"), ("x",)
    names = ("w_kq", "w_pv", "pair", "query", "log_ratio")
    for name, axes, part in zip(names, (*sizes, ("search_layer",)), chosen, strict=True):
        data[f"found_{name}"] = (axes, part)
    return xr.Dataset(
        data,
        {
            "direction": list(DIRECTIONS),
            "budget": list(config.budgets),
            "feedback": list(config.feedbacks),
            "gain": list(config.gains),
            "mode": list(pairs.MODES),
        },
    )
