"""What ``fit`` has to do, as its loop takes it: functions of ``per_run``, arrays [R, ...]."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import optax
from jax.sharding import Mesh
from jax.typing import ArrayLike

from lsa_lab.models import sharding
from lsa_lab.store import processes
from lsa_lab.training import runs
from lsa_lab.training.recipe import Training


@dataclass(frozen=True)
class Plan:
    """R runs, of which ``width`` are trained side by side, in chunks of equal numbers of steps."""

    training: Training
    impl: str | None  # the kind of key that sample is given
    inputs: tuple  # params, keys and per_run in NumPy, keys untyped
    watch: Callable | None  # jitted, params of all runs -> arrays [R, ...]
    width: int
    chunk: int
    shards: int
    mesh: Mesh | None  # the devices that share each run's weights

    def place(self, tree: Any) -> Any:
        """Arrays of params, and of what an optimiser keeps of them, where the mesh has them."""
        return tree if self.mesh is None else sharding.place(tree, self.mesh)

    @property
    def step(self) -> Training:
        """The training as a step sees it, which is given the number of steps: equal for all."""
        return replace(self.training, steps=0, label="")

    @property
    def num_runs(self) -> int:
        return len(self.inputs[1])

    def part(self, rows: range) -> "Plan":
        """The plan of these runs alone."""
        inputs = jax.tree.map(lambda x: x[rows.start : rows.stop], self.inputs)
        return replace(self, inputs=inputs)


def remembered(make: Callable) -> Callable:
    """``make``, called once for equal arguments, so that what it returns is compiled once.

    A caller's functions are equal if they are the same; one without a hash is met anew each time.
    """
    kept = functools.lru_cache(maxsize=16)(make)

    @functools.wraps(make)
    def call(*arguments: Any) -> Any:
        try:
            hash(arguments)
        except TypeError:
            return make(*arguments)
        return kept(*arguments)

    return call


@remembered
def _blind(loss: Callable, sample: Callable, optimizer: optax.GradientTransformation) -> dict:
    """The functions as ones that are given ``per_run``, and look away."""
    return dict(
        loss=lambda params, batch, _: loss(params, batch),
        sample=lambda *arguments: sample(*arguments[:-1]),
        optimizer=lambda _: optimizer,
    )


@remembered
def _each(watch: Callable) -> Callable:
    return jax.jit(lambda params: jax.lax.map(watch, params))


def plan_of(
    training: Training,
    inputs: tuple,  # params, key and per_run
    watch: Callable | None,
    width: int | None,
    chunk: int,
    shards: int,
    mesh: Mesh | None,
) -> Plan:
    params, key, per_run = inputs
    many = runs.count(params, key, per_run)
    if per_run is None:
        parts = _blind(training.loss, training.sample, training.optimizer)
        training, per_run = replace(training, **parts), ()
    inputs = optax.tree.unwrap_random_key_data((params, key, per_run))
    return Plan(
        training=training,
        impl=runs.impl(key),
        inputs=jax.tree.map(lambda x: np.asarray(x) if many else _on_host(x)[None], inputs),
        watch=None if watch is None else _each(watch),
        width=width or _width(many or 1, alone=shards > 1 or mesh is not None),
        chunk=-(-training.steps // -(-training.steps // chunk)),  # nearly equal: no step is wasted
        shards=shards,
        mesh=mesh,
    )


def _on_host(x: ArrayLike) -> np.ndarray:
    """What ``jnp.asarray`` makes of it, on no device: one of a mesh may have no room for all."""
    array = np.asarray(x)
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)


def _width(count: int, alone: bool) -> int:
    """One run on CPU, where that is fastest; elsewhere all that fall to one device."""
    local = jax.local_devices()
    if local[0].platform == "cpu":
        return 1
    return -(-count // (processes.count() * (1 if alone else len(local))))
