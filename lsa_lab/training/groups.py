"""Many runs on the devices, in groups that know nothing of each other, and so neither do the bits.

One program trains one group of ``width`` runs, whatever the number of groups and of devices; a
single program for all of them would change a run's last bits with that number.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.models import moments
from lsa_lab.training import runs
from lsa_lab.training.plan import Plan, remembered
from lsa_lab.training.recipe import Training
from lsa_lab.training.shards import Shards, must_be_alone, places, settled


class RunGroups:
    """R runs in groups of ``width``, the last filled with its last run, that advance by chunks.

    A chunk is a Future of a state and its records for each group, so that the next one is under
    way while the caller reads the last. Accelerators have a group each in turn, and compile at the
    same time. Host devices are one machine's cores, which threads keep as busy from a single
    device: there one program is compiled, and it serves all groups.
    """

    def __init__(self, plan: Plan):
        self._plan = plan
        starts = range(0, plan.num_runs, plan.width)
        self.members: Sequence[int | np.ndarray] = starts
        if plan.width > 1:
            last = plan.num_runs - 1
            self.members = [np.minimum(np.arange(i, i + plan.width), last) for i in starts]
        self._places, lanes = places()
        abreast = len(self.members) if plan.shards == 1 and plan.mesh is None else 1
        self._places = self._places[:abreast]
        # Of a group in shards or on a mesh, one keeps all busy; and programs in which devices wait
        # for each other begin on all of them in one order.
        self._pool = ThreadPoolExecutor(min(lanes, abreast))
        self._helpers = ThreadPoolExecutor(min(lanes, plan.shards))
        self._is_alone = plan.mesh is not None

    def __enter__(self) -> "RunGroups":
        return self

    def __exit__(self, *_: object) -> None:
        for pool in (self._pool, self._helpers):
            pool.shutdown(wait=False, cancel_futures=True)  # nobody will read what is under way

    def start(self, state: runs.State) -> list[Future]:
        """The chunk before the first one, that has ended; compiles what the others need."""
        states, self._inputs = self._spread(state), self._spread(self._plan.inputs[1:])
        if self._plan.shards > 1:
            self._programs: list = [Shards(self._plan, self._helpers, states[0], self._inputs[0])]
        else:
            plan = self._plan
            advance = _program(plan.step, plan.impl, plan.width, plan.chunk)
            arguments = zip(states, self._inputs, self._places, strict=False)
            lowered = [advance.lower(s, *inputs, *self._times(0)) for s, inputs, _ in arguments]
            self._programs = list(self._pool.map(lambda program: program.compile(), lowered))
            if advance not in _alone:
                _alone[advance] = must_be_alone(lowered)
            self._is_alone |= _alone[advance]
            if self._is_alone:
                self._pool.shutdown(wait=False)
                self._pool = ThreadPoolExecutor(1)
        return [_ended((state, {})) for state in states]

    def advance(self, before: list[Future], first: int, alive: np.ndarray) -> list[Future]:
        """The chunk of steps from ``first`` on; a group with no run alive rests, without records.

        The call returns at once.
        """

        def train(g: int) -> tuple[runs.State, Any]:
            program, (state, _) = self._programs[g % len(self._programs)], before[g].result()
            state, records = program(state, *self._inputs[g], *self._times(first))
            return settled((self._plan.place(state), records))

        def rest(g: int) -> tuple[runs.State, Any]:
            return before[g].result()[0], {}

        lives = [alive[members].any() for members in self.members]
        return [self._pool.submit(train if lives[g] else rest, g) for g in range(len(lives))]

    def _times(self, first: int) -> tuple[np.int32, ...]:
        """The first step of a chunk and the number of all, which is no part of the program."""
        return np.int32(first), np.int32(self._plan.training.steps)

    def look(self, watch: Callable, chunk: list[Future]) -> Any:
        """What is watched of the params after a chunk, arrays [R, ...]."""

        def watched() -> Any:
            return watch(self._plan.place(self.rows(chunk).params))

        return self._pool.submit(watched).result() if self._is_alone else watched()

    def rows(self, chunk: list[Future]) -> runs.State:
        """The states after a chunk as one of NumPy rows [R, ...]."""
        join = np.stack if self._plan.width == 1 else np.concatenate
        states = [group.result()[0] for group in chunk]
        return jax.tree.map(
            lambda *x: join([np.asarray(part) for part in x])[: self._plan.num_runs], *states
        )

    def _spread(self, rows: Any) -> list[Any]:
        """Rows [R, ...] as one tree a group, in their places."""
        groups = [jax.tree.map(lambda x, m=m: np.asarray(x)[m], rows) for m in self.members]
        if self._plan.mesh is not None:
            return [self._plan.place(group) for group in groups]
        count = len(self._places)
        return [jax.device_put(group, self._places[g % count]) for g, group in enumerate(groups)]


@remembered
def _program(training: Training, impl: str | None, width: int, chunk: int) -> jax.stages.Wrapped:
    """(state, keys, own, first, steps) of a group -> its state and its records [.., chunk]."""

    def advance(
        state: runs.State, key: Array, own: Any, first: Array, steps: Any
    ) -> tuple[runs.State, dict]:
        step = partial(runs.step, replace(training, steps=steps), impl)
        if width > 1:
            step = jax.vmap(step, in_axes=(0, 0, 0, None))
        times = first + jnp.arange(chunk, dtype=jnp.int32)
        state, record = jax.lax.scan(lambda s, t: step(s, key, own, t), state, times)
        return state, jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), record)

    return jax.jit(advance, compiler_options=moments.compiler_options())


_alone: WeakKeyDictionary[jax.stages.Wrapped, bool] = WeakKeyDictionary()  # the text is long


def _ended(result: Any) -> Future:
    future: Future = Future()
    future.set_result(result)
    return future
