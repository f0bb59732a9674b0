"""What linear readers find in the stream, and what descent makes of it.

Two questions of A4 (2408.04532), as we read them (docs/theory, "Probes"). The layer probe:
how well does the best linear reader of the query's token predict, layer by layer? The preprocessing
probe, in two readings: does descent on the first layer's tokens learn faster than on the raw
covariates (``descend``), and do these tokens hold r_j x_j, the preprocessed covariates (``fit``
with ``preprocessed`` as targets)? Every probe has a control task in which there is nothing to find,
so that what it finds by its own strength is known (after Hewitt and Liang 1909.03368).
"""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab import estimators, prompts
from lsa_lab.arguments import check_at_least, check_finite, check_spread, is_concrete
from lsa_lab.estimators.least_squares import column_space, pseudo_inverse
from lsa_lab.models.trace import Trace, check_heads, check_label_slot, check_stream
from lsa_lab.prompts import Prompt

PER_WIDTH = 20  # prompts for each coordinate of a state, at least


def fit(states: Array, targets: Array, *, penalty: float = 0.0) -> Array:  # [B, D], [B, m] -> same
    """U [D, m] = argmin Σ_b |states_b U - targets_b|²/B + penalty |U|², the shortest if several.

    One row a prompt, 20 D of them at least: with fewer the probe learns its prompts by heart.
    """
    chex.assert_rank([states, targets], 2, custom_message="states [B, D], targets [B, m]")
    rows, width = states.shape
    check_stream(width, "a probe")
    chex.assert_shape(targets, (rows, None), custom_message="targets: one row for each of states")
    if rows < PER_WIDTH * width:
        raise ValueError(
            f"{rows} prompts for a probe of width {width}: it needs {PER_WIDTH} for each of the "
            f"{width} coordinates, {PER_WIDTH * width} or more"
        )
    check_spread(penalty, "penalty", "a penalty")
    check_finite(states, "states")
    check_finite(targets, "targets")
    # A penalty is least squares on rows √(penalty B) I with targets 0.
    root = jnp.sqrt(jnp.asarray(rows * penalty, states.dtype))
    longer = jnp.concatenate([states, root * jnp.eye(width, dtype=states.dtype)])
    return pseudo_inverse(longer)[:, :rows] @ targets


def squared_errors(probe: Array, states: Array, targets: Array) -> Array:  # [B, m]
    """(states U - targets)², on prompts that the probe has not seen.

    With y_query, which carries no noise, as the target, its mean is the excess risk.
    """
    shape = states.shape[0], probe.shape[1]
    chex.assert_shape(targets, shape, custom_message="targets: a row for each of states, m wide")
    return (states @ probe - targets) ** 2


def explained(probe: Array, states: Array, targets: Array) -> Array:  # [m]
    """R² = 1 - Σ (states U - targets)² / Σ targets², on prompts that the probe has not seen.

    Negative where the probe is worse than 0. Selectivity is R² minus that of the control task.
    """
    total = (targets**2).sum(0)
    if is_concrete(total) and not (total > 0).all():
        raise ValueError("targets are 0 in every row, or NaN: there is nothing to explain")
    return 1 - squared_errors(probe, states, targets).sum(0) / total


def control_targets(key: Array, targets: Array) -> Array:  # [B, m] -> [B, m]
    """The control task of a probe: each row gets the target of a random row."""
    return jax.random.permutation(key, targets)


def preprocessed(prompt: Prompt) -> Array:  # [n+1, d]
    """r_j x_j with r = Xᵀy/n for all covariates, the query last: what layer 1 is said to write."""
    prompts.check(prompt)
    moment = prompt.x.T @ prompt.y / max(prompt.x.shape[0], 1)
    return jnp.concatenate([prompt.x, prompt.x_query[None]]) * moment[None]


def descend(
    features: Array,  # [n+1, D]  the query last
    labels: Array,  # [n]
    num_steps: int,
    share: float = 0.5,
) -> Array:  # [num_steps+1]
    """Descent from zero on (features_i, y_i): the prediction at the query after each step.

    The step is ``share`` of the largest that converges, 2/λ_max(FᵀF/n), in each prompt: features of
    any scale are treated alike, raw covariates too. The control task is to descend on features that
    the model made of ``with_random_labels(key, prompt)``, towards the labels that are true.
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


def with_random_labels(key: Array, prompt: Prompt) -> Prompt:
    """The control task of ``descend``: the prompt's labels, each at a random demonstration."""
    prompts.check(prompt)
    return prompt.replace(y=jax.random.permutation(key, prompt.y))


def project_out(features: Array, directions: Array) -> Array:  # [T, D], [m, D] -> [T, D]
    """The features without the span of ``directions``: f - Q Qᵀ f, Q an orthonormal basis.

    The label enters the stream along ``read_in[:, -1]`` and is read along ``read_out``. Left in,
    descent would fit y_i with y_i itself. What layer 1 writes because of a token's own label, in
    any direction, stays: ``as_queries`` is free of it.
    """
    chex.assert_shape(
        directions, (None, features.shape[-1]), custom_message="directions [m, D], D as features"
    )
    basis = column_space(directions.T)[0]  # [D, r]
    return features - (features @ basis) @ basis.T


def as_queries(
    forward: Callable[..., Trace], params: chex.ArrayTree, prompt: Prompt, layer: int = 1
) -> Array:  # [n+1, D]
    """The tokens after ``layer`` of all covariates x_1, ..., x_n, x_query, each as the query.

    No token then knows its own label, but through its place among the demonstrations, as r does.
    """

    def token(x_query: Array) -> Array:  # [D]
        tokens = prompts.tokens(prompt.replace(x_query=x_query))
        stream = forward(params, tokens).stream
        check_stream(stream.shape[-1], "as_queries")
        if not 0 <= layer < len(stream):
            raise ValueError(f"layer = {layer}: this stream is that after 0 to {len(stream) - 1}")
        return stream[layer, -1]

    return jax.vmap(token)(jnp.concatenate([prompt.x, prompt.x_query[None]]))


def contributions(trace: Trace, sign: float = -1.0) -> Array:  # [L, H]
    """What each head writes to the query's label slot, times sign: its share of the prediction.

    Without an MLP they add up to the prediction, if the label slot starts at 0.
    """
    advice = "what its heads write is walk.heads[:, :, place] @ direction, for a direction you read"
    check_label_slot(trace, "contributions", advice)
    check_heads(trace.heads.shape[1], "contributions")
    if trace.slots is not None:
        raise ValueError(
            "contributions needs a label slot that is linear in the stream: return "
            "Trace(stream, heads, read_out [D]), the prediction being minus stream @ read_out"
        )
    written = trace.heads[:, :, -1]  # [L, H, D]
    return sign * (written[..., -1] if trace.read_out is None else written @ trace.read_out)
