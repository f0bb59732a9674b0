"""The flow of masked linear attention is (1/n) (G + Gᵀ) e_i, G = ∂ŷ/∂S_0: one linear map of every
demonstration's token.

docs/theory, "The flow through the moment".
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from draws import draw_prompt, draw_stack, jit_numpy, seeds, stack_sizes
from lsa_lab import prompts
from lsa_lab.analyses import amplification
from lsa_lab.models import linear_attention, moments


@functools.partial(jit_numpy, static_argnames="keys")
def flow_by_tokens(params, prompt, keys):  # [L, n, e, e_out]
    def queries(demonstrations):
        tokens = jnp.concatenate([demonstrations, prompts.tokens(prompt)[-1:]])
        return linear_attention.forward(params, tokens, keys=keys).stream[1:, -1]

    return jnp.moveaxis(jax.jacfwd(queries)(prompts.tokens(prompt)[:-1]), 1, -1)


@jit_numpy
def flows_by_moment(params, prompt, query_share):  # [L, n, e], [L, n, e, e_out]
    """The flow, and that of all of a token, at the moment S_0 + share q qᵀ/n."""
    rows, n = prompts.tokens(prompt), len(prompt.y)

    def queries(second_moment):  # [L, e]
        return moments.layer_maps(params, second_moment)[1:] @ rows[-1]

    moment = prompts.second_moment(prompt) + query_share * jnp.outer(rows[-1], rows[-1]) / n
    slopes = jax.jacfwd(queries)(moment)  # [L, e_out, e, e]
    token_flow = jnp.einsum("ia,ltab->libt", rows[:-1], slopes + slopes.mT) / n
    return amplification.moment_flow(params, prompt), token_flow


@stack_sizes
@seeds
def test_the_moment_carries_the_whole_flow_and_unmasked_that_of_all_tokens(size, seed):
    (num_layers, num_heads, n, d), rng = size, np.random.default_rng(seed)
    case = draw_stack(rng, num_layers, num_heads, d + 1), draw_prompt(rng, n, d)
    masked, unmasked, causal = (
        flow_by_tokens(*case, keys=keys) for keys in ("demonstrations", "all", "causal")
    )
    flow, token_flow = flows_by_moment(*case, 0.0)
    differences = flow + masked[..., -1], token_flow - masked
    assert max(np.abs(d).max() for d in differences) < 1e-10 * np.abs(masked).max()
    difference = flows_by_moment(*case, 1.0)[1] - unmasked
    assert np.abs(difference).max() < 1e-10 * np.abs(unmasked).max()
    if seed == 0 and d == 3:  # Control: other masks have another flow
        for other in (unmasked, causal):
            assert np.abs(token_flow - other).max() > 1e-3 * np.abs(other).max()
