"""Layers of today: W10 is a training's gradient by kind, W11 one long prompt.

A newcomer's layer is the recurrence of its paper, token by token, under ``vmap``.
"""

from functools import partial

import jax
import jax.numpy as jnp

from benchmarks.loops import functions
from benchmarks.timing import Form
from lsa_lab.models import recurrent
from lsa_lab.prompts import bound_tokens
from lsa_lab.tasks.linear import LinearTask, sample_batch


def ours(**sizes) -> Form:
    """``recurrent.predict_prefixes`` of each prompt."""
    return gradients(recurrent.predict_prefixes, **sizes)


def plain(**sizes) -> Form:
    return gradients(plain_predictions, **sizes)


def gradients(
    predict, n: int, d: int, width: int, layers: int, batch: int, kinds: list, units: list
) -> Form:
    """The loss over all prefixes and its gradient for each kind, keys as wide as covariates."""
    prompts = sample_batch(jax.random.key(0), LinearTask(n, d, dtype=jnp.float32), batch)
    tokens = jax.vmap(bound_tokens)(prompts)
    labels = jnp.concatenate([prompts.y, prompts.y_query[:, None]], axis=1)

    def case(kind):
        config = recurrent.Config(kind, 2 * d + 1, layers, key_width=d, width=width, layout="bound")
        params = recurrent.init(jax.random.key(1), config, jnp.float32)

        def loss(params, tokens, labels):
            answers = jax.vmap(partial(predict, config=config), (None, 0))(params, tokens)
            return jnp.mean((answers - labels) ** 2)

        return jax.value_and_grad(loss), (params, tokens, labels)

    return functions(*map(case, kinds), units=units)


def plain_predictions(params, tokens, config):  # [T, e] -> [T]
    stream = tokens @ params.read_in.T
    for layer in range(config.num_layers):
        head = {
            name: leaf[layer, 0]
            for name, leaf in vars(params).items()
            if leaf is not None and name not in ("read_in", "read_out")
        }
        step = partial(plain_step, config.kind, head)
        state = jnp.zeros((config.key_width,) * 2, tokens.dtype)
        penalty = jnp.exp(head["log_penalty"]) if config.kind == "mesa" else 0.0
        moment = penalty * jnp.eye(config.key_width, dtype=tokens.dtype)  # gates forget it, too
        read = jax.lax.scan(step, (jnp.float32(0), moment, state), stream)[1]
        stream = stream + read @ head["w_o"].T
    return -stream @ params.read_out


def plain_step(kind, head, carried, u):
    """One token: the state S [k, v], for mesa beside Σ kkᵀ, and the tokens so far."""
    count, moment, state = carried
    key, value, query = head["w_k"] @ u, head["w_v"] @ u, head["w_q"] @ u
    if kind == "additive":
        state = state + jnp.outer(key, value)
        return (count + 1, moment, state), state.T @ query / (count + 1)
    beta = jax.nn.sigmoid(head["w_step"] @ u + head["b_step"])[0]
    gate = jax.nn.sigmoid(head["w_gate"] @ u + head["b_gate"])[0] if "w_gate" in head else 1.0
    if kind == "mesa":
        moment = gate * moment + beta * jnp.outer(key, key)
        state = gate * state + beta * jnp.outer(key, value)
        return (count, moment, state), state.T @ jnp.linalg.solve(moment, query)
    key = key / jnp.linalg.norm(key)
    state = gate * state
    state = state + beta * jnp.outer(key, value - state.T @ key)
    return (count, moment, state), state.T @ query
