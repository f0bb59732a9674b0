"""The plan of a call of ``fit``: functions that take ``per_run``, and arrays [R, ...]."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import optax
from jax.typing import ArrayLike

from lsa_lab.training import runs
from lsa_lab.training.recipe import Training


@dataclass(frozen=True)
class Plan:
    """R runs of a training in chunks of equal numbers of steps."""

    training: Training
    impl: str | None  # the kind of key that sample is given
    inputs: tuple  # params, keys and per_run in NumPy, keys untyped
    watch: Callable | None  # jitted, params of all runs -> arrays [R, ...]
    chunk: int

    @property
    def step(self) -> Training:
        """The training without the number of steps and the label: equal for equal programs."""
        return replace(self.training, steps=0, label="")

    @property
    def num_runs(self) -> int:
        return len(self.inputs[1])


def cached(make: Callable) -> Callable:
    """Cache ``make``, so that equal arguments give one object, which is compiled once.

    Two functions are equal if they are the same object. What cannot be hashed is not cached.
    """
    cache = functools.lru_cache(maxsize=16)(make)

    @functools.wraps(make)
    def call(*arguments: Any) -> Any:
        try:
            hash(arguments)
        except TypeError:
            return make(*arguments)
        return cache(*arguments)

    return call


@cached
def _ignore_per_run(
    loss: Callable, sample: Callable, optimizer: optax.GradientTransformation
) -> dict:
    """Return the functions with one more argument, ``per_run``, which they do not use."""
    return dict(
        loss=lambda params, batch, _: loss(params, batch),
        sample=lambda *arguments: sample(*arguments[:-1]),
        optimizer=lambda _: optimizer,
    )


@cached
def _wrap_keys_per_run(
    loss: Callable, sample: Callable, optimizer: Callable, impls: tuple[str | None, ...]
) -> dict:
    """Return the functions of ``per_run`` with untyped keys, which are typed again for them."""

    def wrap_last(function: Callable) -> Callable:
        return lambda *arguments: function(*arguments[:-1], runs.wrap_keys(arguments[-1], impls))

    return dict(loss=wrap_last(loss), sample=wrap_last(sample), optimizer=wrap_last(optimizer))


@cached
def _map_over_runs(watch: Callable) -> Callable:
    return jax.jit(lambda params: jax.lax.map(watch, params))


def make_plan(
    training: Training, params: Any, key: Any, per_run: Any, watch: Callable | None, chunk: int
) -> Plan:
    """Check the arrays of a call of ``fit`` and bring them into one form, [R, ...] in NumPy."""
    many = runs.count_runs(params, key, per_run)
    if per_run is None:
        parts = _ignore_per_run(training.loss, training.sample, training.optimizer)
        training, per_run = replace(training, **parts), ()
    impls = runs.key_impls(per_run)
    if any(impls):
        parts = training.loss, training.sample, training.optimizer
        training = replace(training, **_wrap_keys_per_run(*parts, impls))
    inputs = jax.tree.map(_to_host, optax.tree.unwrap_random_key_data((params, key, per_run)))
    return Plan(
        training=training,
        impl=runs.key_impl(key),
        inputs=inputs if many else jax.tree.map(lambda x: x[None], inputs),
        watch=None if watch is None else _map_over_runs(watch),
        chunk=-(-training.steps // -(-training.steps // chunk)),  # nearly equal: no step is wasted
    )


def _to_host(x: ArrayLike) -> np.ndarray:
    """Return what ``jnp.asarray`` makes of it, in NumPy, of any byte order."""
    array = np.asarray(x)
    dtype = jax.dtypes.canonicalize_dtype(array.dtype.newbyteorder("="))
    return array.astype(dtype, copy=False)
