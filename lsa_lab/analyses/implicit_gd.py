"""The implicit gradient descent of attention: a map and an update for each layer.

In masked linear attention every token obeys h_t = W_t h_0 with one matrix, W_t = W_{t-1} + G_t, as
if the layers were L steps of descent on W from W_0 = I (A2, Lemma 1 and Theorem 1; docs/theory,
"The implicit update", "The common map"). Softmax, norm, MLP and causal masks have no such matrix:
``common_map`` measures the distance to one.
"""

from collections.abc import Callable

import chex
import flax.struct
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab import prompts
from lsa_lab.arguments import check_choice
from lsa_lab.models import linear_attention, moments
from lsa_lab.models.blocks import Keys
from lsa_lab.models.trace import Trace, check_label_slot, layer_predictions
from lsa_lab.prompts import Prompt
from lsa_lab.scaling import length

_LONG = 2048  # demonstrations; of more, the forward pass takes a summary


class Trajectory(flax.struct.PyTreeNode):
    """The layer maps of one prompt, their differences, and how far W_t e is from the stream."""

    maps: Array  # [L+1, e, e]  W_t
    updates: Array  # [L, e, e]  G_t = W_t - W_{t-1}
    residual: Array  # []


def trajectory(
    params: linear_attention.Params, prompt: Prompt, *, keys: Keys = "demonstrations"
) -> Trajectory:
    """Return the W_t and G_t with h_t = W_t h_0 for every token, of normalised linear attention.

    G_t = Σ_h w_pv_h S_{t-1} w_kq_h W_{t-1},  S_t = W_t S_0 W_tᵀ  (A2, Theorem 1, in the sharper
    form derived here; docs/theory, "The common map"). With keys="all" S_0 gains the query's x xᵀ/n.

    ``residual`` compares this with the forward pass: the largest |h_t - W_t h_0| over tokens and
    layers, relative to the largest |h_t|. Above 2048 demonstrations the forward pass takes, in
    their place, the e vectors √(nλ_k) v_k of the eigenvectors of their second moment: the second
    moment is equal, hence the maps are (docs/theory, "Moments suffice"), and every token is a
    combination of these vectors.

    Raises TypeError for other Params, and ValueError for causal keys, which have no common map.
    """
    _check(params, keys)
    second_moment = prompts.second_moment(prompt)
    tokens, n = prompts.tokens(prompt), prompt.x.shape[0]
    if n > _LONG:
        eigenvalues, vectors = jnp.linalg.eigh(second_moment)
        rows = jnp.sqrt(n * jnp.maximum(eigenvalues, 0))[:, None] * vectors.T
        tokens = jnp.concatenate([rows, tokens[-1:]])
    if keys == "all":
        second_moment = second_moment + jnp.outer(tokens[-1], tokens[-1]) / n
    maps = moments.layer_maps(params, second_moment)
    before = maps[:-1]
    read = jnp.einsum("lij,jk,lmk->lim", before, second_moment, before)  # [L, e, e]  S_{t-1}
    updates = (params.w_pv @ read[:, None] @ params.w_kq).sum(1) @ before
    scaled = params.replace(w_pv=params.w_pv / n)  # 1/n, whatever the number of tokens
    stream = linear_attention.forward(scaled, tokens, keys=keys, normalise=False).stream
    departure = stream - jnp.einsum("lij,tj->lti", maps, stream[0])
    return Trajectory(maps, updates, length(departure).max() / length(stream).max())


def implied_weights(
    forward: Callable[..., Trace], params: chex.ArrayTree, prompt: Prompt
) -> Array:  # [L+1, d]
    """Return the weights that each layer's prediction implies, ∂ŷ_t/∂x_query, of any ``forward``.

    With a layer map the prediction is linear in x_query and they are -(W_t)_{e,1..d}: the path of
    the algorithm that the layers run. Otherwise they are the sensitivities at this query (von
    Oswald et al. 2212.07677). One reverse pass with L+1 cotangents.
    """

    def predictions(x_query: Array) -> Array:  # [L+1]
        trace = forward(params, prompts.tokens(prompt.replace(x_query=x_query)))
        advice = "amplification.flow(read, tokens) is the sensitivity of any reading to any token"
        check_label_slot(trace, "implied_weights", advice)
        return layer_predictions(trace)

    numbers, pull = jax.vjp(predictions, prompt.x_query)
    basis = jnp.eye(len(numbers), dtype=numbers.dtype)
    return jax.vmap(lambda cotangent: pull(cotangent)[0])(basis)


def _check(params: linear_attention.Params, keys: str) -> None:
    linear_attention.check_params(params, "a trajectory")
    message = "weights are [L, H, e, e]; use jax.vmap for runs"
    chex.assert_rank([params.w_kq, params.w_pv], 4, custom_message=message)
    check_choice(keys, "keys", Keys)
    if keys == "causal":
        raise ValueError(
            "keys is 'causal': demonstrations that read only those before them have no common "
            "layer map; measure the departure with common_map.best_common_map"
        )
