"""Prompts in which demonstrations have near-duplicates; how unequal the flows of one are, how
large, and how its demonstrations interact."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow.many_shot_flow.config import Config
from lsa_lab.analyses import disparity
from lsa_lab.analyses.amplification import demonstration_flow, interactions, log_sizes
from lsa_lab.models.trace import predict
from lsa_lab.prompts import Prompt, tokens


def draw(config: Config) -> tuple:
    """Two independent halves of the longest prompt [R, B, n/2, d], w and x_query [R, B, d]."""
    rng = np.random.default_rng(config.seed)
    each = (config.runs, config.prompts)
    most = max(*config.counts, config.n)
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
        "top_share": disparity.top_share(logs),
        "size": jax.nn.logsumexp(logs, axis=1) - np.log(logs.shape[1]),
    }


def joint_effects(forward, params, prompt):  # -> {name: []}
    """How two demonstrations interact, over the mean effect of one and with the sign of theirs:
    negative if together they do less. The median over pairs of duplicates, and over others."""
    flow = demonstration_flow(forward, params, prompt)[-1]
    effects = (flow * tokens(prompt)[:-1]).sum(1)
    both = jnp.sign(effects[:, None] + effects[None]) / jnp.abs(effects).mean()
    matrix = both * interactions(forward, params, prompt)
    i, j = np.triu_indices(len(effects), 1)
    twins = (i % 2 == 0) & (j == i + 1)
    names = {"duplicates": twins, "others": ~twins}
    return {name: jnp.median(matrix[i[which], j[which]]) for name, which in names.items()}


def squares(forward, params, prompt):  # -> {name: []}
    """The squared error of the prediction, and that of predicting zero."""
    error = predict(forward(params, tokens(prompt))) - prompt.y_query
    return {"error": error**2, "label": prompt.y_query**2}


@partial(jax.jit, static_argnums=(0, 1))
def measure(what, forward, params, batch):  # Params [V, R], Prompt [C, R, B] -> [V, C, R, B, ...]
    """``what`` of every prompt in every stack: ``sizes``, ``joint_effects`` or ``squares``, one
    stack, one c and sixteen runs at a time."""
    of_run = jax.vmap(partial(what, forward), (None, 0))

    def run_values(weights, prompts):
        return jax.lax.map(lambda run: of_run(*run), (weights, prompts), batch_size=16)

    return jax.lax.map(
        lambda weights: jax.lax.map(lambda prompts: run_values(weights, prompts), batch), params
    )


def turned_ratios(logs):  # [R, B, L, n] -> {name: [R, B, L]}
    """The median over pairs of their log ratios: without a sign, or with the sign that makes every
    pair positive at the first layer, or at the last."""
    i, j = np.triu_indices(logs.shape[-1], 1)
    ratios = logs[..., i] - logs[..., j]  # [R, B, L, pairs]
    signs = {"from_first": np.sign(ratios[..., :1, :]), "from_last": np.sign(ratios[..., -1:, :])}
    medians = {name: np.median(ratios * sign, axis=-1) for name, sign in signs.items()}
    return medians | {"spread": np.median(np.abs(ratios), axis=-1)}
