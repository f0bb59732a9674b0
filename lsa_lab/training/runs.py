"""One run of a training as functions of arrays: its first state, a step, a chunk of steps."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
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
    """The state of a run. ``finite`` tells whether the loss, each leaf of the gradient and each new
    leaf of params were finite at the last step tried. After one False the params stay as they are.
    """

    params: Any
    opt_state: Any
    steps_completed: Array  # []  steps with finite numbers
    finite: Array  # [1 + 2P]


def start(training: Training, params: Any, own: Any) -> State:
    """Return the state before the first step. Its keys are untyped, because files keep numbers."""
    opt_state = optax.tree.unwrap_random_key_data(training.optimizer(own).init(params))
    finite = jnp.ones(1 + 2 * len(jax.tree.leaves(params)), bool)
    return State(params, opt_state, jnp.zeros((), jnp.int32), finite)


def advance(
    training: Training,
    impl: str | None,
    chunk: int,
    state: State,
    key: Array,
    own: Any,
    first: Array,
    steps: Any,
) -> tuple[State, dict]:
    """Return the state after ``chunk`` steps from step ``first`` on, and their records [chunk].

    The number of all ``steps`` is an argument, so that one program serves every number.
    """
    take = partial(step, replace(training, steps=steps), impl)
    times = first + jnp.arange(chunk, dtype=jnp.int32)
    return jax.lax.scan(lambda s, t: take(s, key, own, t), state, times)


def step(
    training: Training, impl: str | None, state: State, key: Array, own: Any, t: Array
) -> tuple[State, dict]:
    """Return the state after step t and the record of the step; nothing changes if the run has
    diverged or t is past the end, and the record is to be ignored.

    ``own`` holds the run's leaves of ``per_run``, which all functions of the training take here.
    ``impl`` names the kind of key that ``sample`` is given, None an untyped one.
    """
    loss_of_params = _draw_loss(training, impl, key, own, t)
    loss, grads = jax.value_and_grad(loss_of_params)(state.params)
    with jax.numpy_dtype_promotion("standard"):  # Adam raises a float to an integer count
        rule = optax.with_extra_args_support(training.optimizer(own))
        extra = {"value": loss, "grad": grads, "value_fn": loss_of_params}
        before = wrap_keys(state.opt_state, key_impls(rule.init(state.params)))
        updates, opt_state = rule.update(grads, before, state.params, **extra)
        params = optax.apply_updates(state.params, updates)
    finite, norm = _check_finite(loss, grads, params)
    tried = jnp.all(state.finite) & (t < training.steps)
    good = tried & jnp.all(finite)
    state = State(
        params=optax.tree.where(good, params, state.params),
        opt_state=optax.tree.unwrap_random_key_data(opt_state),  # not read after a divergence
        steps_completed=state.steps_completed + good.astype(jnp.int32),
        finite=jnp.where(tried, finite, state.finite),
    )
    return state, {"loss": loss.astype(float), "grad_norm": norm.astype(float)}


def _draw_loss(
    training: Training, impl: str | None, key: Array, own: Any, t: Array
) -> Callable[[Any], Array]:
    """Draw the batch of step t, and return the loss on it as a function of params."""
    key = key if impl is None else jax.random.wrap_key_data(key, impl=impl)
    key = jax.random.fold_in(jax.random.fold_in(key, _DATA), t)
    stage = () if training.curriculum is None else (training.curriculum(t),)
    batch = training.sample(key, *stage, own)
    return lambda params: training.loss(params, batch, own)


def _check_finite(loss: Array, grads: Any, params: Any) -> tuple[Array, Array]:  # [1 + 2P], []
    """Return which numbers are finite, in the order of State, and the norm of the gradient.

    The squares that the norm adds up test the gradient: where a square overflows, the gradient
    counts as not finite, in the leaf that makes the sum overflow.
    """
    squares = [optax.tree.norm(leaf, squared=True) for leaf in jax.tree.leaves(grads)]
    sums = list(itertools.accumulate(squares))
    probes = [jnp.sum(0 * leaf) for leaf in jax.tree.leaves(params)]  # 0 * inf is NaN
    finite = jnp.stack([jnp.isfinite(number) for number in (loss, *sums, *probes)])
    return finite, jnp.sqrt(sums[-1])


def count_runs(params: Any, key: Array, per_run: Any) -> int | None:
    """Return the number R of runs, None for one run without that axis; check all shapes."""
    axes = jnp.ndim(key) - (key_impl(key) is None)
    if axes not in (0, 1) or key.size == 0:
        raise ValueError(f"key has shape {key.shape}: pass one key, or a batch of keys [R]")
    number = key.shape[0] if axes else None
    named = {"params": params, "per_run": per_run}
    for path, leaf in jax.tree.leaves_with_path(named):
        shape = jnp.shape(leaf)
        if number is not None and shape[:1] != (number,):
            raise ValueError(
                f"{leaf_name(path)} has shape {shape}: with {number} keys its leading axis is "
                f"{number}"
            )
    if not jax.tree.leaves(params):
        raise ValueError(f"params is {params}: it has no array to train")
    for path, leaf in jax.tree.leaves_with_path(params):
        name = leaf_name(path) or "params"
        dtype = leaf.dtype if isinstance(leaf, Array) else np.asarray(leaf).dtype
        if not jnp.issubdtype(dtype, jnp.floating):
            raise ValueError(f"{name} is {dtype}: give floats")
        if not np.isfinite(np.asarray(leaf)).all():
            raise ValueError(f"{name} is not finite before the first step")
    return number


def key_impl(leaf: Any) -> str | None:
    """Return the kind of a typed key, None for an untyped one and for any other array."""
    typed = isinstance(leaf, Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return str(jax.random.key_impl(leaf)) if typed else None


def key_impls(tree: Any) -> tuple[str | None, ...]:
    """Return ``key_impl`` of each leaf."""
    return tuple(map(key_impl, jax.tree.leaves(tree)))


def wrap_keys(tree: Any, impls: tuple[str | None, ...]) -> Any:
    """Return a tree whose untyped keys are typed again; ``impls`` are those of its leaves."""
    leaves, structure = jax.tree.flatten(tree)
    typed = [
        leaf if impl is None else jax.random.wrap_key_data(leaf, impl=impl)
        for leaf, impl in zip(leaves, impls, strict=True)
    ]
    return jax.tree.unflatten(structure, typed)


def leaf_name(path: tuple) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")
