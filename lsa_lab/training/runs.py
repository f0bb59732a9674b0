"""One run of a training on the device, as two functions of arrays."""

import itertools
from collections.abc import Callable
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lsa_lab.training.recipe import Training

_DATA = 0x64617461  # "data": the child of a run's key from which its batches are drawn


class State(flax.struct.PyTreeNode):
    """Where a run stands. ``finite`` stands for the loss, each gradient leaf and each new leaf of
    params at the last step tried; one False and the run rests at its last finite params."""

    params: Any
    opt_state: Any
    taken: Array  # []  steps with finite numbers
    finite: Array  # [1 + 2P]


def start(training: Training, params: Any, own: Any) -> State:
    """The state before the first step; keys in it are untyped, for they go to files."""
    opt_state = optax.tree.unwrap_random_key_data(training.optimizer(own).init(params))
    finite = jnp.ones(1 + 2 * len(jax.tree.leaves(params)), bool)
    return State(params, opt_state, jnp.zeros((), jnp.int32), finite)


def step(
    training: Training, impl: str | None, state: State, key: Array, own: Any, t: Array
) -> tuple[State, dict]:
    """Step t and its record, or neither if the run has diverged or t is past the end.

    ``own`` are the run's ``per_run`` leaves, which all functions of the training take here;
    ``impl`` names the kind of key that sample is given, None an untyped one.
    """
    batch_loss = loss_at(training, impl, key, own, t)
    loss, grads = jax.value_and_grad(batch_loss)(state.params)
    return update(training, state, loss, grads, batch_loss, own, t)


def loss_at(
    training: Training, impl: str | None, key: Array, own: Any, t: Array, *shard: Array
) -> Callable:
    """The loss on the batch of step t, or of a shard of it, as a function of params."""
    key = key if impl is None else jax.random.wrap_key_data(key, impl=impl)
    key = jax.random.fold_in(jax.random.fold_in(key, _DATA), t)
    for number in shard:
        key = jax.random.fold_in(key, number)
    stage = () if training.curriculum is None else (training.curriculum(t),)
    batch = training.sample(key, *stage, own)
    return lambda params: training.loss(params, batch, own)


def update(
    training: Training,
    state: State,
    loss: Array,
    grads: Any,
    batch_loss: Callable,
    own: Any,
    t: Array,
) -> tuple[State, dict]:
    """The state and the record after a step of this loss and gradient."""
    with jax.numpy_dtype_promotion("standard"):  # Adam raises a float to an integer count
        updates, opt_state = optax.with_extra_args_support(training.optimizer(own)).update(
            grads,
            state.opt_state,
            state.params,
            value=loss,
            grad=grads,
            value_fn=batch_loss,
        )
        params = optax.apply_updates(state.params, updates)
    finite, norm = _finite(loss, grads, params)
    tried = jnp.all(state.finite) & (t < training.steps)
    good = tried & jnp.all(finite)
    state = State(
        params=optax.tree.where(good, params, state.params),
        opt_state=opt_state,  # nobody reads it once the run has diverged
        taken=state.taken + good.astype(jnp.int32),
        finite=jnp.where(tried, finite, state.finite),
    )
    record = {"loss": loss.astype(float), "grad_norm": norm.astype(float)}
    return state, jax.tree.map(lambda number: jnp.where(good, number, jnp.nan), record)


def _finite(loss: Array, grads: Any, params: Any) -> tuple[Array, Array]:  # [1 + 2P], []
    """Which numbers are finite, in State's order, and the gradient's norm.

    The squares that the norm adds up are the gradient's test: a gradient whose square overflows
    counts as not finite, in the leaf that tips the sum.
    """
    squares = [optax.tree.norm(leaf, squared=True) for leaf in jax.tree.leaves(grads)]
    sums = list(itertools.accumulate(squares))
    probes = [jnp.sum(0 * leaf) for leaf in jax.tree.leaves(params)]  # 0 * inf is NaN
    finite = jnp.stack([jnp.isfinite(number) for number in (loss, *sums, *probes)])
    return finite, jnp.sqrt(sums[-1])


def count(params: Any, key: Array, per_run: Any) -> int | None:
    """The number R of runs, None for one without that axis; raises unless all have the same."""
    axes = jnp.ndim(key) - (impl(key) is None)
    if axes not in (0, 1) or key.size == 0:
        raise ValueError(f"key has shape {key.shape}: pass one key, or a batch of keys [R]")
    number = key.shape[0] if axes else None
    named = {"params": params, "per_run": per_run}
    for path, leaf in jax.tree.leaves_with_path(named):
        shape = jnp.shape(leaf)
        if number is not None and shape[:1] != (number,):
            raise ValueError(
                f"{name(path)} has shape {shape}: with {number} keys its leading axis is {number}"
            )
    if not jax.tree.leaves(params):
        raise ValueError(f"params is {params}: it has no array to train")
    for path, leaf in jax.tree.leaves_with_path(params):
        values = np.asarray(leaf)
        if not jnp.issubdtype(values.dtype, jnp.floating):
            raise ValueError(f"{name(path) or 'params'} is {values.dtype}: give floats")
        if not np.isfinite(values).all():
            raise ValueError(f"{name(path) or 'params'} is not finite before the first step")
    return number


def impl(key: Array) -> str | None:
    """The kind of a typed key."""
    typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    return str(jax.random.key_impl(key)) if typed else None


def name(path: tuple) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")
