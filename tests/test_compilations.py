"""A public function that is called again with arrays of the same shapes compiles nothing.

The table has the functions that compile a program for a function, a configuration or a task, and
the estimators. What applies operations one by one, or is jitted for arrays alone, compiles once.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_estimators import RULES

from lsa_lab import interop, prompts
from lsa_lab.analyses import amplification, clipping, heads, implicit_gd, probes
from lsa_lab.lm import config as lm_config
from lsa_lab.lm import decoder
from lsa_lab.lm import flow as lm_flow
from lsa_lab.models import linear_attention, moments, prefixes, recurrent, trace, transformer
from lsa_lab.prompts import Prompt
from lsa_lab.selection import oracles, prefix
from lsa_lab.tasks import pools
from lsa_lab.theory import learning_curves, plateaus, training_dynamics

COMPILATION = "/jax/core/compile/backend_compile_duration"
RNG = np.random.default_rng(0)
KEY = jax.random.key(0)


def rows(*shape):
    return jnp.asarray(RNG.normal(size=shape))


N, D, E = 5, 2, 3
PROMPT = Prompt(rows(N, D), rows(N), rows(D), rows())
BATCH = Prompt(rows(4, N, D), rows(4, N), rows(4, D), rows(4))
OTHERS = jax.tree.map(lambda leaf: leaf + 1, BATCH)
TOKENS, BOUND, CAUSAL = (
    read(PROMPT) for read in (prompts.tokens, prompts.bound_tokens, prompts.interleaved_tokens)
)
BATCH_OF_TOKENS = jax.vmap(prompts.tokens)(BATCH)
I2, STEPS, VALUES = jnp.eye(D), jnp.array([0.3, 0.2]), jnp.array([1.0, 0.5])
MASK, POOL, IDS = jnp.ones((2, 2)), rows(12, E), jnp.arange(4)
MERGED = linear_attention.init(KEY, 2, 2, D)
RUNS = jax.tree.map(lambda leaf: leaf[None], MERGED)
SOFTMAX = transformer.Config(E, 2, 2, 2, norm=True, mlp_width=4)
INTERLEAVED = transformer.Config(E, 2, 2, 2, layout="interleaved", keys="causal")
FACTORS, GARG = (transformer.init(KEY, config) for config in (SOFTMAX, INTERLEAVED))
WORDS = lm_config.Config(2, 2, 1, 4, 8, 16, 10, 12)
DECODER = decoder.init(KEY, WORDS, float)
LOSS = jax.jit(lambda mask: mask.sum() ** 2)
SCORES = jax.jit(lambda chosen: chosen**2)
READ = jax.jit(lambda tokens: tokens[:2, 0] ** 2)
SMOOTHER = jax.jit(lambda tokens: (tokens[:-1] @ tokens[-1]) @ tokens[:-1, -1])


def softmax():
    """The forward that a notebook writes anew in every call."""
    return partial(transformer.forward, config=SOFTMAX)


def causal():
    return partial(linear_attention.forward, head_mask=MASK, keys="causal")


def squared_errors(params, batch):
    return (moments.predictions(params, batch) - batch.y_query) ** 2


def of_recurrent(kind, function, layout="bound"):
    tokens = BOUND if layout == "bound" else TOKENS
    config = recurrent.Config(kind, tokens.shape[1], 2, 2, 3, layout=layout)
    return partial(function, recurrent.init(KEY, config), tokens, config)


def attention_of_recurrent(params, tokens, config):
    return recurrent.attention(params, recurrent.forward(params, tokens, config), config)


CALLS = [
    partial(linear_attention.forward, MERGED, TOKENS, keys="all"),
    lambda: causal()(MERGED, TOKENS),
    partial(transformer.forward, FACTORS, TOKENS, SOFTMAX, MASK),
    partial(transformer.predict_prefixes, GARG, CAUSAL, INTERLEAVED),
    lambda: prefixes.predictions(causal(), MERGED, PROMPT, "merged"),
    lambda: jax.vmap(lambda tokens: softmax()(FACTORS, tokens))(BATCH_OF_TOKENS),
    lambda: jax.grad(lambda params: trace.predict(causal()(params, TOKENS)))(MERGED),
    of_recurrent("delta", recurrent.predict_prefixes),
    of_recurrent("delta", recurrent.states),
    of_recurrent("mesa", recurrent.predict, "merged"),
    of_recurrent("gla", attention_of_recurrent),
    lambda: training_dynamics.solve(jnp.arange(3.0), I2, N, 0.5, I2),
    lambda: plateaus.solve_heads(jnp.arange(3.0), VALUES, N, STEPS),
    partial(learning_curves.delta_rule, N, D, 0.1),
    partial(learning_curves.delta, N, 3, 0.1),
    partial(learning_curves.ridge, N, D, 0.1),
    lambda: amplification.demonstration_flow(softmax(), FACTORS, PROMPT),
    lambda: amplification.demonstration_flow(causal(), MERGED, PROMPT),
    lambda: amplification.demonstration_flow(interop.as_forward(SMOOTHER), None, PROMPT),
    lambda: amplification.token_flow(softmax(), FACTORS, PROMPT),
    partial(amplification.flow, READ, TOKENS),
    lambda: implicit_gd.implied_weights(softmax(), FACTORS, PROMPT),
    lambda: probes.embed_as_queries(softmax(), FACTORS, PROMPT),
    partial(heads.importance, LOSS, 2, 2),
    partial(heads.first_order, LOSS, 2, 2),
    partial(clipping.curve, squared_errors, RUNS, BATCH, modules=("w_kq",)),
    partial(clipping.search, squared_errors, MERGED, BATCH, OTHERS, modules="w_kq"),
    lambda: oracles.pick_greedily(SCORES, jnp.zeros(4), 2),
    lambda: oracles.leave_one_out(LOSS, jnp.zeros(4)),
    lambda: prefix.linear_gradients(I2, pools.Pool(POOL[:, :D], POOL[:, D])),
    lambda: decoder.forward(DECODER, decoder.embed(DECODER, IDS, WORDS), WORDS),
    lambda: lm_flow.token_flow(
        DECODER,
        decoder.embed(DECODER, IDS, WORDS),
        WORDS,
        lm_flow.margin(DECODER, WORDS, 1, 2),
        layers=(1, 2),
    ),
]

CALLS += [partial(rule, PROMPT) for rule in RULES.values()]
compilations = []


def note(event, seconds, **_):
    if event == COMPILATION:
        compilations.append(seconds)


jax.monitoring.register_event_duration_secs_listener(note)


def name_call(call):
    return getattr(getattr(call, "func", call), "__qualname__", "call")


@pytest.mark.parametrize("call", CALLS, ids=name_call)
def test_the_third_call_compiles_nothing(call):
    for _ in range(3):
        compilations.clear()
        call()
    assert compilations == []
