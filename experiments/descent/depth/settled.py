"""Whether a training has come to rest, told without the algorithms that it is compared with."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from lsa_lab.models import linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.prompts import tokens

PIECE = 500  # prompts differentiated at a time
RANK = 1e-10  # eigenvalues of JᵀJ below this share of the largest are directions that do nothing


@jax.jit
def left_to_gain(stacks, batch):  # Params [S, ...], Prompt [B] -> [S]
    """The share of the risk on one half of the prompts that a Gauss-Newton step from the other half
    takes away; negative where it adds.

    δ = argmin |r + Jδ|² over the first half, r = ŷ - y and J its derivative by all weights; then
    1 - |r + Jδ|²/|r|² over the second. It is 0 up to noise at a critical point of the risk,
    whatever the last learning rate was; a loss that no longer falls may only lack a rate.
    """

    def share_left(params):
        weights, unravel = ravel_pytree(params)

        def residual(weights, prompt):
            return (
                predict(linear_attention.forward(unravel(weights), tokens(prompt))) - prompt.y_query
            )

        both = jax.lax.map(
            lambda prompt: jax.value_and_grad(residual)(weights, prompt), batch, batch_size=PIECE
        )
        half = len(batch.y_query) // 2
        (r, J), (r_test, J_test) = (jax.tree.map(lambda x, s=s: x[s], both) for s in halves(half))
        values, vectors = jnp.linalg.eigh(J.T @ J)
        inverse = jnp.where(values > RANK * values[-1], 1 / values, 0.0)
        step = -vectors @ (inverse * (vectors.T @ (J.T @ r)))
        return 1 - ((r_test + J_test @ step) ** 2).sum() / (r_test**2).sum()

    return jax.lax.map(share_left, stacks)


def halves(half):
    return slice(None, half), slice(half, None)
