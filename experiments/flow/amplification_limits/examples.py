"""Three stacks of linear attention, made by hand, in which depth turns the order of two
demonstrations, and their closed forms."""

import jax
import jax.numpy as jnp

from experiments.flow import pairs
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.linear_attention import Params
from lsa_lab.models.trace import layer_predictions
from lsa_lab.theory import amplification


def ratios(layers):  # -> [examples, 2, L], in the order of EXAMPLES and SIDES
    """The first demonstration's flow, or contribution, over the second's."""
    examples = [example(layers) for example in (width_1, descent, coupling)]
    return jnp.stack([jnp.stack(sides) for sides in examples])


def width_1(layers):  # -> [L], [L]
    """Ratios of ∂q/∂d for unmasked tokens of width 1, and the law of many small layers."""
    gain, pair, query = jnp.asarray(-0.01), jnp.array([1.5, 0.8]), jnp.asarray(0.5)
    shape = (layers, 1, 1, 1)
    params = Params(jnp.ones(shape), jnp.full(shape, gain))

    def path(d):
        return pairs.UNMASKED(params, jnp.stack([d, query])[:, None]).stream[1:, -1, 0]

    depths = jnp.arange(1.0, layers + 1)
    law = amplification.one_coordinate_ratio(gain, pair, query, depths)
    return _ratio(jax.vmap(jax.jacfwd(path))(pair)), law


def descent(layers):  # -> [L], [L]
    """Ratios of ∂ŷ/∂y for steps of gradient descent, one demonstration in a prompt."""
    pair, query = jnp.array([[2.0, 0.0], [0.6, 0.0]]), jnp.array([1.0, 0.3])
    steps = jnp.full(layers, 0.15)
    params = constructions.gradient_descent(steps, 2)

    def path(y, x):
        rows = jnp.stack([jnp.append(x, y), jnp.append(query, 0.0)])
        return layer_predictions(linear_attention.forward(params, rows))[1:]

    flows = jax.vmap(jax.jacfwd(path), (None, 0))(jnp.asarray(1.0), pair)
    closed = jax.vmap(amplification.one_shot_descent_flow, (None, 0, None))(steps, pair, query)
    return _ratio(flows), _ratio(closed)


def coupling(layers):  # -> [L], [L]
    """Ratios of contributions, where skew w_kq freezes the demonstrations: κ = 0 and 0.5."""
    pair, query = jnp.array([[0.0, 1.0], [1.0, 0.5]]), jnp.array([1.0, 0.0])
    w_kq, w_pv = jnp.array([[0.0, 1.0], [-1.0, 0.0]]), jnp.diag(jnp.array([0.0, 1.0]))
    params = Params(*(jnp.broadcast_to(w, (layers, 1, 2, 2)) for w in (w_kq, w_pv)))

    def network(d):
        return linear_attention.forward(params, jnp.stack([d, query])).stream[:, -1]

    def closed_form(d):
        return amplification.frozen_demonstration(w_kq, w_pv, d, query, layers)

    def contribution(path):
        return jnp.linalg.norm(jax.vmap(path)(pair)[:, 1:] - query[None, None], axis=-1)

    return _ratio(contribution(network)), _ratio(contribution(closed_form))


def _ratio(pair):  # [2, L] -> [L]
    return jnp.abs(pair[0] / pair[1])
