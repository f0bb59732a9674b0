"""How few and how many heads of a layer seem to matter, over the mixings of its heads."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from experiments.heads.each_run import run
from experiments.models.model import Model
from lsa_lab.analyses import heads
from lsa_lab.models import head_gauge, moments
from lsa_lab.prompts import Prompt

_RATE = 0.1  # of Adam, in coordinates of mixings of size 1


def ranges(config, models: Model, searched: Prompt, judged: Prompt) -> np.ndarray:  # [R, L, 3]
    """N_l of every run and layer: the least over mixings, as trained, and the largest.

    Mixings (models.head_gauge) have a condition number of at most config.condition and are chosen
    on other prompts than those on which N_l is then measured. They change no prediction.
    """
    models = jax.tree.map(np.asarray, jax.vmap(Model.plain)(models))
    program = _search(config.condition, config.starts, config.climbs)
    key, (count, depth) = jax.random.key(config.seed), models.gates.shape[:2]
    rows = [
        [program(run(models, r), layer, key, searched, judged) for layer in range(depth)]
        for r in range(count)
    ]
    return np.array(rows)


def mixing_of(place: Array, condition: float) -> Array:  # [2 H + 1, H] -> [H, H]
    """U diag(s) V, both orthogonal, s between 1 and ``condition``: every such matrix but for its
    size, which changes no importance."""
    size = place.shape[1]
    left, right = (jnp.linalg.qr(part)[0] for part in (place[:size], place[size : 2 * size]))
    sizes = jnp.exp(math.log(condition) * jax.nn.sigmoid(place[-1]))
    return left @ (sizes[:, None] * right)


def effective(model: Model, layer, mixing: Array, batch: Prompt) -> Array:  # [H, H] -> []
    """N_l with the heads of one layer mixed; 1 where none matters."""
    depth, count = model.gates.shape
    every = jnp.broadcast_to(jnp.eye(count), (depth, count, count)).at[layer].set(mixing)
    mixed = model.replace(params=head_gauge.mixed(model.params, every))

    def risk(closed):  # [H]
        return mixed.replace(gates=model.gates.at[layer].mul(1 - closed)).risk(batch)

    rises = jax.lax.map(risk, jnp.eye(count)) - model.risk(batch)
    shares = heads.normalised(rises[None])[0]
    safe = jnp.where(shares > 0, shares, 1)  # else the gradient of p log p is not finite at 0
    return jnp.exp(-jnp.sum(safe * jnp.log(safe)))


@functools.cache
def _search(condition: float, starts: int, climbs: int):
    """(model, layer, key, prompts to search on, and to judge on) of one run -> [3], compiled."""
    optimizer = optax.adam(_RATE)

    def search(model: Model, layer, key, searched: Prompt, judged: Prompt):
        model, count = jax.tree.map(jnp.asarray, model), model.gates.shape[1]

        def at(place):
            return effective(model, layer, mixing_of(place, condition), searched)

        places = jax.random.normal(key, (starts, 2 * count + 1, count), model.params.w_pv.dtype)
        counts = jax.lax.map(at, places)

        def end(sign):
            """N_l at the end of a climb from the best start, upwards or downwards."""

            def step(carry, _):
                place, state = carry
                gradient = jax.grad(lambda place: -sign * at(place))(place)
                with jax.numpy_dtype_promotion("standard"):  # Adam: a float to an integer power
                    updates, state = optimizer.update(gradient, state)
                return (place + updates, state), None

            start = places[jnp.argmax(sign * counts)]
            (place, _), _ = jax.lax.scan(step, (start, optimizer.init(start)), length=climbs)
            return effective(model, layer, mixing_of(place, condition), judged)

        least, most = jax.lax.map(end, jnp.array([-1.0, 1.0], counts.dtype))
        return jnp.stack([least, effective(model, layer, jnp.eye(count), judged), most])

    return jax.jit(search, compiler_options=moments.compiler_options())
