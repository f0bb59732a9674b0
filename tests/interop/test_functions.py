"""Any function of tokens as a model: each analysis works on it, or says what it needs."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from lsa_lab import prompts
from lsa_lab.analyses import amplification, common_map, implicit_gd, probes
from lsa_lab.interop import as_forward
from lsa_lab.models import linear_attention, trace, transformer
from lsa_lab.models.trace import layer_predictions, predict
from lsa_lab.selection import oracles, prefix, scores
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.tasks.pools import Pool

N, D = 4, 2
E = D + 1
CONFIG = transformer.Config(E, 2, 2, 2, width=5)
PARAMS = jax.jit(transformer.init, static_argnums=1)(jax.random.key(0), CONFIG)
PROMPT = jax.jit(sample)(jax.random.key(1), LinearTask(N, D))
TOKENS = prompts.tokens(PROMPT)
POOL = Pool(PROMPT.x, PROMPT.y)
ONES = jnp.ones((25 * (N + 1), 1))
MERGED = jax.jit(linear_attention.init, static_argnums=(1, 2, 3))(jax.random.key(3), 1, 1, D, 0.3)
run = functools.partial(transformer.forward, config=CONFIG)


def prediction_alone(params, tokens):
    return predict(run(params, tokens))


def with_stream(params, tokens):
    return predict(run(params, tokens)), run(params, tokens).stream


def with_heads(params, tokens):
    whole = run(params, tokens)
    return layer_predictions(whole), whole.stream, whole.heads


MODELS = {
    "the prediction": (as_forward(prediction_alone), PARAMS),
    "the stream": (as_forward(with_stream), PARAMS),
    "the heads": (as_forward(with_heads), PARAMS),
    "the heads, read_out": (as_forward(run), PARAMS),
    "merged weights": (linear_attention.forward, MERGED),
}
# What each needs, as in the table of interop.functions, and a call of it.
ANALYSES = {
    "the prediction": {
        "demonstration_flow": lambda *m: amplification.demonstration_flow(*m, PROMPT),
        "implied_weights": lambda *m: implicit_gd.implied_weights(*m, PROMPT),
        "example_loss": lambda forward, params: prefix.example_loss(
            forward, TOKENS[:-1], params, (POOL.x[0], POOL.y[0])
        ),
        "batch_loss": lambda *m: prefix.batch_loss(*m, TOKENS[:-1], POOL),
        "prefix_gradients": lambda *m: prefix.prefix_gradients(*m, TOKENS[None, :2], POOL),
    },
    "the stream": {
        "token_flow": lambda *m: amplification.token_flow(*m, PROMPT),
        "common_map": lambda f, p: common_map.best_common_map(TOKENS, f(p, TOKENS).stream).residual,
        "embed_as_queries": lambda *m: probes.embed_as_queries(*m, PROMPT),
        "fit": lambda f, p: probes.fit(jnp.tile(f(p, TOKENS).stream[1], (25, 1)), ONES),
    },
    "the heads, read_out": {
        "head_contributions": lambda f, p: probes.head_contributions(f(p, TOKENS)),
    },
    "merged weights": {
        "trajectory": lambda _, p: implicit_gd.trajectory(p, PROMPT).updates,
        "moment_flow": lambda _, p: amplification.moment_flow(p, PROMPT),
        "encode_flow": lambda _, p: scores.encode_flow(p, TOKENS[:-1]),
        "candidate_flows": lambda _, p: oracles.candidate_flows(
            p, TOKENS[:-1], PROMPT.x_query, jnp.ones(N)
        ),
    },
}
SENTENCES = {
    "the stream": r"needs the stream \[L\+1, T, D\]: return \(prediction, stream\)",
    "the heads, read_out": r"contributions needs (the heads' writes|a label slot that is linear)",
    "merged weights": r"linear_attention\.Params, not",
}


@pytest.mark.parametrize(("need", "name"), [(n, name) for n in ANALYSES for name in ANALYSES[n]])
def test_an_analysis_works_or_says_what_it_needs(need, name):
    kinds = list(MODELS)
    for kind, model in MODELS.items():
        traced = functools.partial(jax.eval_shape, functools.partial(ANALYSES[need][name], *model))
        if kinds.index(kind) >= kinds.index(need):
            assert traced().size > 0
        else:
            with pytest.raises((ValueError, TypeError), match=SENTENCES[need]) as refusal:
                traced()
            assert "\n" not in str(refusal.value)


def test_the_prediction_and_its_flow_are_the_functions_own():
    forwards = [*(forward for forward, _ in [*MODELS.values()][:4]), run]

    @jax.jit
    def read(params):
        flow = functools.partial(amplification.demonstration_flow, params=params, prompt=PROMPT)
        return [(layer_predictions(f(params, TOKENS)), flow(f)) for f in forwards]

    *wrapped, (expected, flow) = read(PARAMS)
    for i, (layers, own) in enumerate(wrapped):
        assert (layers.shape, own.shape[0]) == (((2,), 1) if i < 2 else ((3,), 2))
        np.testing.assert_allclose(layers[-1], expected[-1], rtol=1e-10)
        np.testing.assert_allclose(own[-1], flow[-1], rtol=1e-10)
    np.testing.assert_allclose(wrapped[2][1], flow, rtol=1e-10)
    assert wrapped[0][0][0] == 0
    assert not np.allclose(wrapped[0][1][-1], -flow[-1])  # the sign is seen
    alone = jax.eval_shape(MODELS["the prediction"][0], PARAMS, TOKENS)
    assert alone.stream.shape == (2, N + 1, 0)
    assert jax.eval_shape(trace.label_slots, alone).shape == (2, 1)


class Linen(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        return nn.Dense(1, param_dtype=tokens.dtype)(tokens.ravel())[0]


class Nnx(nnx.Module):
    def __init__(self, rngs):
        self.last = nnx.Linear((N + 1) * E, 1, param_dtype=TOKENS.dtype, rngs=rngs)

    def __call__(self, tokens):
        return self.last(tokens.ravel())[0]


def test_functions_of_tokens_linen_and_nnx_modules_are_told_apart():
    variables = Linen().init(jax.random.key(0), TOKENS)
    forward = as_forward(Linen().apply)
    kernel = variables["params"]["Dense_0"]["kernel"][:, 0]
    np.testing.assert_allclose(predict(forward(variables, TOKENS)), TOKENS.ravel() @ kernel)
    module = Nnx(nnx.Rngs(0))
    expected = TOKENS.ravel() @ module.last.kernel[:, 0]
    np.testing.assert_allclose(predict(as_forward(module)(None, TOKENS)), expected)
    graph, state = nnx.split(module)
    split = as_forward(lambda state, tokens: nnx.merge(graph, state)(tokens))
    np.testing.assert_allclose(predict(split(state, TOKENS)), expected)
    jitted = as_forward(jax.jit(lambda tokens, scale=2.0: scale * tokens[0, 0]))
    np.testing.assert_allclose(predict(jitted(None, TOKENS)), 2 * TOKENS[0, 0])
    with pytest.raises(ValueError, match="takes tokens alone and would ignore the params"):
        jitted(variables, TOKENS)
    turned = as_forward(lambda tokens: (tokens[0, 0], jnp.zeros((3, len(tokens) + 1, len(tokens)))))
    with pytest.raises(ValueError, match="where T is not last"):
        turned(None, TOKENS)
