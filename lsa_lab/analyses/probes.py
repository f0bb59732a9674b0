"""Linear probes of the stream, and gradient descent on its features.

Two questions of A4 (2408.04532), as we read them (docs/theory, "Probes"). The layer probe: how well
does the best linear function of the query's token predict, layer by layer? The preprocessing probe,
in two readings: does descent on the first layer's tokens learn faster than on the raw covariates
(``descend``), and do these tokens hold r_j x_j, the preprocessed covariates (``fit`` with
``preprocess`` as targets)? Compare every probe with a control task, fitted to randomly permuted
targets or to a prompt with permuted labels (after Hewitt and Liang 1909.03368).
"""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab import estimators, prompts
from lsa_lab.arguments import check_at_least, check_finite, check_range, is_concrete
from lsa_lab.estimators.least_squares import column_space, pseudo_inverse
from lsa_lab.models.trace import Trace, check_known, check_label_slot
from lsa_lab.prompts import Prompt

PER_WIDTH = 20  # prompts for each coordinate of a state, at least


def fit(states: Array, targets: Array, *, penalty: float = 0.0) -> Array:  # [B, D], [B, m] -> same
    """Return U [D, m] = argmin Σ_b |states_b U - targets_b|²/B + penalty |U|², the shortest one.

    Each row is one prompt. Raises ValueError for fewer than 20 D rows, where a probe overfits.
    """
    chex.assert_rank([states, targets], 2, custom_message="states [B, D], targets [B, m]")
    rows, width = states.shape
    check_known(width, "a probe")
    chex.assert_shape(targets, (rows, None), custom_message="targets: one row for each of states")
    if rows < PER_WIDTH * width:
        raise ValueError(
            f"{rows} prompts for a probe of width {width}: it needs {PER_WIDTH} for each of the "
            f"{width} coordinates, {PER_WIDTH * width} or more"
        )
    check_range(penalty, "penalty")
    check_finite(states, "states")
    check_finite(targets, "targets")
    # A penalty is least squares on rows √(penalty B) I with targets 0.
    root = jnp.sqrt(jnp.asarray(rows * penalty, states.dtype))
    extended = jnp.concatenate([states, root * jnp.eye(width, dtype=states.dtype)])
    return pseudo_inverse(extended)[:, :rows] @ targets


def squared_errors(probe: Array, states: Array, targets: Array) -> Array:  # [B, m]
    """Return (states U - targets)², on prompts that the probe was not fitted to.

    With y_query, which carries no noise, as the target, its mean is the excess risk.
    """
    shape = states.shape[0], probe.shape[1]
    chex.assert_shape(targets, shape, custom_message="targets: a row for each of states, m wide")
    return (states @ probe - targets) ** 2


def r_squared(probe: Array, states: Array, targets: Array) -> Array:  # [m]
    """Return 1 - Σ (states U - targets)² / Σ targets², on prompts the probe was not fitted to.

    Negative where predicting 0 is better. Selectivity is R² minus that of the control task.
    """
    total = (targets**2).sum(0)
    if is_concrete(total) and not (total > 0).all():
        raise ValueError("targets are 0 in every row, or NaN: there is nothing to explain")
    return 1 - squared_errors(probe, states, targets).sum(0) / total


def preprocess(prompt: Prompt) -> Array:  # [n+1, d]
    """Return r_j x_j with r = Xᵀy/n for all covariates, the query last: A4's claim on layer 1."""
    prompts.check(prompt)
    moment = prompt.x.T @ prompt.y / max(prompt.x.shape[0], 1)
    return jnp.concatenate([prompt.x, prompt.x_query[None]]) * moment[None]


def descend(
    features: Array,  # [n+1, D]  the query last
    labels: Array,  # [n]
    num_steps: int,
    share: float = 0.5,
) -> Array:  # [num_steps+1]
    """Return the prediction at the query after each step of descent from 0 on (features_i, y_i).

    The step is ``share`` of the largest that converges, 2/λ_max(FᵀF/n), in each prompt, so that the
    scale of features does not matter. In the control task the features come from a prompt with
    permuted labels, and descent fits the true ones.
    """
    chex.assert_shape(
        features,
        (labels.shape[0] + 1, None),
        custom_message="features [n+1, D] have a row for each label [n], and one for the query",
    )
    check_at_least(num_steps, "num_steps")
    if not 0 < share < 1:
        raise ValueError(f"share = {share}: choose one between 0 and 1, of the largest step")
    demonstrations, query = features[:-1], features[-1]
    norm = jnp.linalg.norm(demonstrations, ord=2)
    largest = 2 * labels.shape[0] / jnp.where(norm > 0, norm, 1) ** 2
    prompt = Prompt(demonstrations, labels, query, jnp.zeros((), jnp.result_type(labels)))
    step_sizes = jnp.broadcast_to(share * largest, (num_steps,))
    return estimators.gradient_descent(prompt, step_sizes) @ query


def project_out(features: Array, directions: Array) -> Array:  # [T, D], [m, D] -> [T, D]
    """Return the features without the span of ``directions``: f - Q Qᵀ f, Q an orthonormal basis.

    The label enters the stream along ``read_in[:, -1]`` and is read along ``read_out``; with these
    directions descent would fit y_i with y_i itself. The dependence of layer 1's output on the
    token's label in other directions remains: ``embed_as_queries`` has none.
    """
    chex.assert_shape(
        directions, (None, features.shape[-1]), custom_message="directions [m, D], D as features"
    )
    basis = column_space(directions.T)[0]  # [D, r]
    return features - (features @ basis) @ basis.T


def embed_as_queries(
    forward: Callable[..., Trace], params: chex.ArrayTree, prompt: Prompt, layer: int = 1
) -> Array:  # [n+1, D]
    """Return the tokens after ``layer`` of all covariates x_1, ..., x_n, x_query, each as a query.

    A token then depends on its label only through the demonstrations, as r does.
    """

    def token(x_query: Array) -> Array:  # [D]
        tokens = prompts.tokens(prompt.replace(x_query=x_query))
        stream = forward(params, tokens).stream
        check_known(stream.shape[-1], "embed_as_queries")
        if not 0 <= layer < len(stream):
            raise ValueError(f"layer = {layer}: this stream is that after 0 to {len(stream) - 1}")
        return stream[layer, -1]

    return jax.vmap(token)(jnp.concatenate([prompt.x, prompt.x_query[None]]))


def head_contributions(trace: Trace, sign: float = -1.0) -> Array:  # [L, H]
    """Return the output of each head in the query's label slot, times ``sign``.

    Without an MLP the contributions sum to the prediction, if the label slot starts at 0.
    """
    advice = "the output of its heads is walk.heads[:, :, place] @ direction, for a direction"
    check_label_slot(trace, "head_contributions", advice)
    check_known(trace.heads.shape[1], "head_contributions", heads=True)
    if trace.slots is not None:
        raise ValueError(
            "head_contributions needs a label slot that is linear in the stream: return "
            "Trace(stream, heads, read_out [D]), the prediction being minus stream @ read_out"
        )
    outputs = trace.heads[:, :, -1]  # [L, H, D]
    return sign * (outputs[..., -1] if trace.read_out is None else outputs @ trace.read_out)
