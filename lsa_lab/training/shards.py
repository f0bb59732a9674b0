"""A step's batch in S shards, which devices or cores share: the same bits whatever their number.

Each shard's gradient is a call of one program, their mean and the update one of another, whatever
runs beside them: a single program for all devices (``shard_map``) has other last bits on one.
"""

from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.models import moments
from lsa_lab.store.provenance import cores
from lsa_lab.training import runs
from lsa_lab.training.plan import Plan, remembered
from lsa_lab.training.recipe import Training


class Shards:
    """The program of a group of runs: (state, keys, own, first, steps) -> its state and records."""

    def __init__(self, plan: Plan, pool: Executor, state: runs.State, inputs: tuple):
        self._plan = plan
        self._places = places()[0][: plan.shards]
        numbers = np.int32(0), np.int32(0)
        program = plan.step, plan.impl, plan.width
        descent = _descent(*program)
        lowered = [
            descent.lower(*jax.device_put((state.params, *inputs), place), *numbers)
            for place in self._places
        ]
        self._descents = list(pool.map(lambda program: program.compile(), lowered))
        self._map = map if must_be_alone(lowered) else pool.map
        part = jax.eval_shape(descent, state.params, *inputs, *numbers)
        parts = jax.device_put(
            jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), [part] * plan.shards),
            self._places[0],
        )
        self._update = _update(*program).lower(state, parts, *inputs, *numbers).compile()

    def __call__(
        self, state: runs.State, keys: Array, own: Any, first: np.int32, steps: np.int32
    ) -> tuple[runs.State, dict]:
        inputs = [jax.device_put((keys, own), place) for place in self._places]
        records = []
        for t in range(int(first), min(int(first) + self._plan.chunk, int(steps))):
            time, params = np.int32(t), state.params

            def part(s: int, params: Any = params, time: np.int32 = time) -> Any:
                d = s % len(self._places)
                params = jax.device_put(params, self._places[d])
                return settled(self._descents[d](params, *inputs[d], time, np.int32(s)))

            parts = list(self._map(part, range(self._plan.shards)))
            parts = jax.device_put(parts, self._places[0])
            state, record = self._update(state, parts, keys, own, time, steps)
            records.append(record)
        return state, jax.tree.map(lambda *x: np.stack(jax.device_get(x), -1), *records)


@remembered
def _descent(training: Training, impl: str | None, width: int) -> jax.stages.Wrapped:
    """(params, keys, own, t, s) of a group -> the losses and gradients of shard s."""

    def descent(params: Any, key: Array, own: Any, t: Array, s: Array) -> tuple[Array, Any]:
        batch_loss = runs.loss_at(training, impl, key, own, t, s)
        return jax.value_and_grad(batch_loss)(params)

    if width > 1:
        descent = jax.vmap(descent, in_axes=(0, 0, 0, None, None))
    return jax.jit(descent, compiler_options=moments.compiler_options())


@remembered
def _update(training: Training, impl: str | None, width: int) -> jax.stages.Wrapped:
    """(state, parts, keys, own, t, steps) of a group -> the state after the step, its record."""

    def update(
        state: runs.State, parts: list, key: Array, own: Any, t: Array, steps: Any
    ) -> tuple[runs.State, dict]:
        def batch_loss(params: Any) -> Array:
            def part(s: Array) -> Array:
                return runs.loss_at(training, impl, key, own, t, s)(params)

            return jax.lax.map(part, jnp.arange(len(parts), dtype=jnp.int32)).mean()

        loss, grads = jax.tree.map(lambda *x: jnp.stack(x).mean(0), *parts)
        counted = replace(training, steps=steps)
        return runs.update(counted, state, loss, grads, batch_loss, own, t)

    if width > 1:
        update = jax.vmap(update, in_axes=(0, 0, 0, 0, None, None))
    return jax.jit(update, compiler_options=moments.compiler_options())


def places() -> tuple[list[jax.Device], int]:
    """The devices that programs are put on, and how many of them run at the same time.

    Of a host one device is enough, for threads run as many programs on it as there are cores.
    """
    local = jax.local_devices()
    if local[0].platform != "cpu":
        return local, len(local)
    return local[:1], cores()


def must_be_alone(lowered: Iterable[jax.stages.Lowered]) -> bool:
    """Whether programs must not run at the same time: of a host's batched factorisations, which
    share its threads, two can wait for each other for ever (jaxlib 0.10)."""
    return any("lapack_" in program.as_text() for program in lowered)


def settled(results: Any) -> Any:
    """Results of a program: those of a host are waited for, those of a device may come later."""
    return jax.block_until_ready(results) if jax.default_backend() == "cpu" else results
