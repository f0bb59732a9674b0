"""Prompts in which demonstrations have near-duplicates; how unequal the flows of one are, and how
large."""

from functools import partial

import jax
import numpy as np

from experiments.flow.many_shot_flow.config import Config
from lsa_lab.analyses.amplification import demonstration_flow, log_sizes
from lsa_lab.models.trace import predict
from lsa_lab.prompts import Prompt, tokens


def draw(config: Config) -> tuple:
    """Two independent halves of the longest prompt [R, B, n/2, d], w and x_query [R, B, d]."""
    rng = np.random.default_rng(config.seed)
    each = (config.runs, config.prompts)
    most = max(config.most, config.n)
    halves = rng.standard_normal((2, *each, most - most // 2, config.d))
    return *halves, *rng.standard_normal((2, *each, config.d))


def prompts_of(config: Config, normals: tuple, count: int, pairs: int) -> Prompt:  # [C, R, B]
    """Demonstrations 2i + 1, i < pairs, are cx + √(1 - c²)z of the x before them; others are z.

    Nothing but c differs along the first axis: every prompt is its own control.
    """
    first, second, w, x_query = normals
    half = count - count // 2
    first, second = first[:, :, :half], second[:, :, :half]
    c = np.array(config.correlations)[:, None] * (np.arange(half) < pairs)  # [C, n/2]
    c = c[:, None, None, :, None]
    partner = c * first + np.sqrt(1 - c**2) * second
    x = np.stack([np.broadcast_to(first, partner.shape), partner], axis=-2)
    x = x.reshape(*x.shape[:3], 2 * half, config.d)[..., :count, :]
    y, y_query = np.einsum("crbnd,rbd->crbn", x, w), (w * x_query).sum(-1)
    again = [np.broadcast_to(part, (len(x), *part.shape)) for part in (x_query, y_query)]
    return Prompt(x, y, *again)


def sizes(forward, params, prompt):  # -> {name: [L]}
    """How unequal the flows of one prompt are, and how large."""
    logs = log_sizes(demonstration_flow(forward, params, prompt))
    return {
        "logs": logs,  # [L, n]
        "size": jax.nn.logsumexp(logs, axis=1) - np.log(logs.shape[1]),
    }


def squares(forward, params, prompt):  # -> {name: []}
    """The squared error of the prediction, and that of predicting zero."""
    error = predict(forward(params, tokens(prompt))) - prompt.y_query
    return {"error": error**2, "label": prompt.y_query**2}


@partial(jax.jit, static_argnums=(0, 1))
def measure(what, forward, params, batch):  # Params [V, R], Prompt [C, R, B] -> [V, C, R, B, ...]
    """``what`` of every prompt in every stack: ``sizes`` or ``squares``, one
    stack, one c and sixteen runs at a time."""
    of_run = jax.vmap(partial(what, forward), (None, 0))

    def run_values(weights, prompts):
        return jax.lax.map(lambda run: of_run(*run), (weights, prompts), batch_size=16)

    return jax.lax.map(
        lambda weights: jax.lax.map(lambda prompts: run_values(weights, prompts), batch), params
    )


def spread(logs):  # [..., n] -> [...]
    """The median over pairs of |log ratio|."""
    i, j = np.triu_indices(logs.shape[-1], 1)
    return np.median(np.abs(logs[..., i] - logs[..., j]), axis=-1)
