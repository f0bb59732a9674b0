"""One run of a training as functions of arrays: its first state, and a chunk of steps."""

from collections.abc import Callable
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import optax
from jax import Array

from lsa_lab.training.recipe import Training

_DATA = 0x64617461  # "data": the child of a run's key from which its batches are drawn


class State(flax.struct.PyTreeNode):
    """The state of a run. ``finite``: the loss, the gradient and the new params were finite at the
    last step tried; after one False the params stay as they are.
    """

    params: Any
    opt_state: Any  # random keys as numbers, which files can hold
    steps_completed: Array  # []  steps with finite numbers
    finite: Array  # []


def start(training: Training, params: Any, values: tuple) -> State:
    """Return the state before the first step."""
    opt_state = optax.tree.unwrap_random_key_data(_optimizer(training, values).init(params))
    return State(params, opt_state, jnp.zeros((), jnp.int32), jnp.ones((), bool))


def advance(
    training: Training,
    key_kind: str | None,
    chunk: int,
    state: State,
    key: Array,
    values: tuple,
    first: Array,
    steps: Array,
) -> tuple[State, dict]:
    """Return the state after ``chunk`` steps from step ``first`` on, and their records [chunk].

    ``key_kind`` is the kind of key that ``sample`` is given, None an untyped one. ``values`` holds
    the run's leaves of ``per_run``, if there are any. The number of all ``steps`` is an argument,
    so that one program serves every number.
    """
    key = key if key_kind is None else jax.random.wrap_key_data(key, impl=key_kind)
    data_key = jax.random.fold_in(key, _DATA)

    def step(state: State, t: Array) -> tuple[State, dict]:
        stage = () if training.curriculum is None else (training.curriculum(t),)
        batch = training.sample(jax.random.fold_in(data_key, t), *stage, *values)

        def loss(params: Any) -> Array:
            return training.loss(params, batch, *values)

        return _update(_optimizer(training, values), loss, state, t < steps)

    return jax.lax.scan(step, state, first + jnp.arange(chunk, dtype=jnp.int32))


def _optimizer(training: Training, values: tuple) -> optax.GradientTransformationExtraArgs:
    rule: Any = training.optimizer(*values) if values else training.optimizer
    return optax.with_extra_args_support(rule)


def _update(
    optimizer: optax.GradientTransformationExtraArgs, loss_function: Callable, state: State,
    wanted: Array,
) -> tuple[State, dict]:  # fmt: skip
    """Return the state after a step and the record of the step; nothing changes if the run has
    diverged or the step is not ``wanted``, and the record is then to be ignored.
    """
    loss, grads = jax.value_and_grad(loss_function)(state.params)
    with jax.numpy_dtype_promotion("standard"):  # Adam raises a float to an integer count
        extra = {"value": loss, "grad": grads, "value_fn": loss_function}
        opt_state = _wrap_keys(state.opt_state, optimizer.init(state.params))
        updates, opt_state = optimizer.update(grads, opt_state, state.params, **extra)
        params = optax.apply_updates(state.params, updates)
    norm = optax.tree.norm(grads)
    finite = jnp.isfinite(loss) & jnp.isfinite(norm)
    for leaf in jax.tree.leaves(params):
        finite &= jnp.isfinite(jnp.sum(0 * leaf))  # 0 * inf is NaN
    tried = state.finite & wanted
    good = tried & finite
    after = State(
        params=optax.tree.where(good, params, state.params),
        opt_state=optax.tree.unwrap_random_key_data(opt_state),  # not read after a divergence
        steps_completed=state.steps_completed + good.astype(jnp.int32),
        finite=jnp.where(tried, finite, state.finite),
    )
    return after, {"loss": loss.astype(float), "grad_norm": norm.astype(float)}


def key_kind(leaf: Any) -> str | None:
    """Return the kind of a typed key, None for an untyped one and for any other array."""
    typed = isinstance(leaf, Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return str(jax.random.key_impl(leaf)) if typed else None


def _wrap_keys(tree: Any, like: Any) -> Any:
    """Return a tree whose keys are typed where those of ``like`` are."""

    def wrap(leaf: Any, example: Any) -> Any:
        kind = key_kind(example)
        return leaf if kind is None else jax.random.wrap_key_data(leaf, impl=kind)

    return jax.tree.map(wrap, tree, like)
