"""The checked arguments of a call of ``fit``, with a leading axis R on every array."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lsa_lab.arguments import check_at_least
from lsa_lab.models import moments
from lsa_lab.prompts import to_native_order
from lsa_lab.training import steps
from lsa_lab.training.recipe import Training


@dataclass(frozen=True)
class Plan:
    """R runs of a training in chunks of equal numbers of steps."""

    training: Training
    key_kind: str | None  # the kind of key that sample is given
    params: Any  # NumPy [R, ...], as are all arrays here
    keys: np.ndarray  # untyped
    values: tuple  # () or (per_run,)
    watch: Callable | None
    chunk: int
    is_single: bool  # one run, without the axis R in the arguments of ``fit``

    @property
    def num_runs(self) -> int:
        return len(self.keys)

    @property
    def static(self) -> tuple[Training, str | None, int]:
        """Return what programs are compiled for, without the number of steps and the label."""
        return replace(self.training, steps=0, label=""), self.key_kind, self.chunk

    @functools.cached_property
    def lowered(self) -> jax.stages.Lowered:
        """Trace the program of one run: its state and records after a chunk of steps."""
        rows = jax.tree.map(lambda x: x[0], (self.params, self.values, self.keys))
        state = jax.eval_shape(functools.partial(steps.start, self.training), *rows[:2])
        return _advance().lower(*self.static, state, rows[2], rows[1], np.int32(0), np.int32(0))

    def compile(self) -> Callable:
        """Return the compiled program; jax_debug_nans says where a NaN arises in a jitted one."""
        if jax.config.values["jax_debug_nans"]:
            return functools.partial(_advance(), *self.static)
        return self.lowered.compile()

    @functools.cached_property
    def text(self) -> str:
        """Return the program as text, with its operations, shapes and constants."""
        return self.lowered.as_text()

    def start(self) -> steps.State:  # NumPy [R, ...]
        """Return the states of all runs before the first step."""
        return jax.device_get(_map_start(self.static[0], self.params, self.values))

    def observe(self, params: Any) -> Any:  # NumPy [R, ...]
        """Return what ``watch`` makes of the params of all runs."""
        return jax.device_get(_map_watch(self.watch, params))


def make_plan(
    training: Training, params: Any, key: Array, per_run: Any, watch: Callable | None, chunk: int
) -> Plan:
    """Check the arguments of ``fit`` and bring its arrays into one form, [R, ...] in NumPy."""
    check_at_least(training.steps, "steps")
    check_at_least(chunk, "chunk")
    _check_functions(training, key, per_run)
    is_single = jnp.ndim(key) == (steps.key_kind(key) is None)
    _check_shapes(params, key, per_run, is_single)
    arrays: Any = params, key, () if per_run is None else (per_run,)
    arrays = optax.tree.unwrap_random_key_data(arrays)
    arrays = jax.tree.map(lambda x: np.asarray(jnp.asarray(to_native_order(x))), arrays)
    if is_single:
        arrays = jax.tree.map(lambda x: x[None], arrays)
    chunk = -(-training.steps // -(-training.steps // chunk))  # nearly equal: no step is wasted
    params, keys, values = arrays
    return Plan(training, steps.key_kind(key), params, keys, values, watch, chunk, is_single)


def _check_functions(training: Training, key: Any, per_run: Any) -> None:
    rule, typed = training.optimizer, steps.key_kind(key) is not None
    is_rule = isinstance(rule, optax.GradientTransformation)
    if not typed and jnp.ndim(key) == 0:
        raise TypeError(f"key is {key!r}: give a random key, jax.random.key({key!r})")
    if per_run is None and not is_rule:
        raise TypeError(f"optimizer is {rule!r}: give one of optax, optax.adam(1e-3)")
    if per_run is not None and (is_rule or not callable(rule)):
        raise TypeError("optimizer is no function: with per_run it is values -> optax.adam(values)")
    if any(map(steps.key_kind, jax.tree.leaves(per_run))):
        raise TypeError("per_run has a typed key: give its jax.random.key_data, wrap it in sample")


def _check_shapes(params: Any, key: Array, per_run: Any, is_single: bool) -> None:
    """Raise unless every leaf has the number of runs that ``key`` has, and params are floats."""
    if key.size == 0 or jnp.ndim(key) - (steps.key_kind(key) is None) not in (0, 1):
        raise ValueError(f"key has shape {key.shape}: pass one key, or a batch of keys [R]")
    if not jax.tree.leaves(params):
        raise ValueError(f"params is {params}: it has no array to train")
    for path, leaf in jax.tree.leaves_with_path({"params": params, "per_run": per_run}):
        name, shape = jax.tree_util.keystr(path, simple=True, separator="."), jnp.shape(leaf)
        if not is_single and shape[:1] != key.shape[:1]:
            raise ValueError(
                f"{name} has shape {shape}: with {len(key)} keys its leading axis is {len(key)}"
            )
        dtype = leaf.dtype if isinstance(leaf, Array) else np.asarray(leaf).dtype
        if name.startswith("params") and not jnp.issubdtype(dtype, jnp.floating):
            raise ValueError(f"{name} is {dtype}: give floats")
        if name.startswith("params") and not np.isfinite(np.asarray(leaf)).all():
            raise ValueError(f"{name} is not finite before the first step")


@functools.cache
def _advance() -> jax.stages.Wrapped:
    """Return ``steps.advance``, compiled for each training; the platform is not known earlier."""
    options = moments.compiler_options()
    return jax.jit(steps.advance, static_argnums=(0, 1, 2), compiler_options=options)


@functools.partial(jax.jit, static_argnums=0)
def _map_start(training: Training, params: Any, values: tuple) -> steps.State:
    return jax.lax.map(lambda rows: steps.start(training, *rows), (params, values))


@functools.partial(jax.jit, static_argnums=0)
def _map_watch(watch: Callable, params: Any) -> Any:
    return jax.lax.map(watch, params)
