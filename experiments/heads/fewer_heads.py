"""The least risk with one head in each later layer, over all ways to write a model's heads."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from experiments.heads.each_run import run
from experiments.models.model import Model
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt

_RATE = 0.05  # of Adam


def best_mixed(models: Model, searched: Prompt, key, starts: int, steps: int) -> Model:
    """Models with one head in each later layer: the best, on prompts of each run [R, B], of all
    that mixing the heads of a layer can make its first. Leaves [R, ...].

    Such a head is w_pv = Σ_k a_k w_pv_k, w_kq = Σ_k b_k w_kq_k with a·b = 1 (docs/theory, "Heads
    are not unique"). The search starts from the heads as they are, and from random mixtures.
    """
    program, count = _mixed(starts, steps), len(models.gates)
    rows = [program(run(models, r), run(searched, r), key) for r in range(count)]
    gates = np.array(models.gates)
    gates[:, 1:, 1:] = 0
    return models.replace(params=jax.tree.map(lambda *leaves: np.stack(leaves), *rows), gates=gates)


def one_head(model: Model, a: Array, b: Array) -> Model:  # [L-1, H] twice
    """The model with the one head that a and b make of those of each later layer, as its first."""
    b = b / (a * b).sum(-1, keepdims=True)

    def leaf(weights, mixture):
        head = jnp.einsum("lh,lhef->lef", mixture, weights[1:])
        return weights.at[1:].set(0).at[1:, 0].set(head)

    params = model.params.replace(w_pv=leaf(model.params.w_pv, a), w_kq=leaf(model.params.w_kq, b))
    return model.replace(params=params, gates=model.gates.at[1:].set(0).at[1:, 0].set(1))


@functools.cache
def _mixed(starts: int, steps: int):
    """(model, prompts, key data) of one run -> Params, compiled."""
    optimizer = optax.adam(_RATE)

    def search(model: Model, searched: Prompt, key_data):
        model = jax.tree.map(jnp.asarray, model)
        depth, count = model.gates.shape
        picked = np.array(list(itertools.product(range(count), repeat=depth - 1)))
        as_they_are = jnp.stack([jnp.eye(count)[picked]] * 2, axis=1)  # [C, 2, L-1, H]
        key = jax.random.wrap_key_data(key_data)
        random = jax.random.normal(key, (starts, 2, depth - 1, count))

        def risk(mixture):
            return one_head(model, *mixture).risk(searched)

        def best(mixtures):
            return mixtures[jnp.argmin(jax.lax.map(risk, mixtures))]

        def end(mixture):
            def step(carry, _):
                mixture, state = carry
                with jax.numpy_dtype_promotion("standard"):  # Adam: a float to an integer power
                    updates, state = optimizer.update(jax.grad(risk)(mixture), state)
                return (mixture + updates, state), None

            (mixture, _), _ = jax.lax.scan(step, (mixture, optimizer.init(mixture)), length=steps)
            return mixture

        firsts = jnp.stack([best(as_they_are), best(random)])
        ends = jax.lax.map(end, firsts)
        return one_head(model, *best(jnp.concatenate([firsts, ends]))).params

    return jax.jit(search, compiler_options=moments.compiler_options())
