"""Flows of all demonstrations of a pool as linear maps of the query, made once for all queries."""

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.analyses.amplification import moment_flow
from lsa_lab.models import moments
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt
from lsa_lab.selection import scores


def encode_one_layer(params: Params, pool: Array) -> scores.Encoding:
    """What Eq. 2 needs of the first layer, each demonstration alone."""
    return scores.encode(params.w_kq[0, 0], params.w_pv[0, 0], pool)


def encode_alone(params: Params, pool: Array) -> Array:  # [m, e, e]
    """F with F @ query the flow to the last layer's prediction of each demonstration alone."""
    return scores.encode_flow(params, pool)[-1]


def encode_together(params: Params, pool: Array) -> Array:  # [m, e, e]
    """The same with the whole pool in the prompt, (1/m) (G + Gᵀ) e_i with G = ∂ŷ/∂S_0.

    It is linear in the query too, since ŷ = -(W_L)_{e,:} q and the query is no key (docs/theory,
    "The flow through the moment").
    """

    def row(second_moment: Array) -> Array:  # [e]
        return -moments.layer_maps(params, second_moment)[-1, -1]

    slopes = jax.jacrev(row)(pool.T @ pool / len(pool))  # [e of the query, e, e]
    symmetric = (slopes + slopes.swapaxes(-1, -2)) / len(pool)
    return jnp.einsum("qab,mb->maq", symmetric, pool)


def score(encoded: Array, query_token: Array) -> Array:  # [m]
    return scores.flow_norm(encoded @ query_token)


def score_online(params: Params, pool: Array, query_token: Array) -> Array:  # [m]
    """The flow with the whole pool in the prompt, from the start for this query."""
    prompt = Prompt(pool[:, :-1], pool[:, -1], query_token[:-1], query_token[-1])
    return scores.flow_norm(moment_flow(params, prompt)[-1])
