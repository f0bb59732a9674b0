"""How unequal the flows of one prompt are, how large, and how its demonstrations interact."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.analyses import disparity
from lsa_lab.analyses.amplification import demonstration_flow, interactions, log_sizes
from lsa_lab.models.trace import predict
from lsa_lab.prompts import tokens


def sizes(forward, params, prompt):  # -> {name: [L]}
    """How unequal the flows of one prompt are, and how large."""
    logs = log_sizes(demonstration_flow(forward, params, prompt))
    return {
        "logs": logs,  # [L, n]
        "top_share": disparity.top_share(logs),
        "gini": disparity.gini(logs),
        "effective": disparity.effective_number(logs),
        "size": jax.nn.logsumexp(logs, axis=1) - np.log(logs.shape[1]),
    }


def joint(forward, params, prompt):  # -> {name: []}
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
    """``what`` of every prompt in every stack: ``sizes``, ``joint`` or ``squares``, one stack, one
    c and sixteen runs at a time."""
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
