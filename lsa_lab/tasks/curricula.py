"""Easy prompts first, the task itself last, in arrays of one shape: a training compiles once.

A schedule is a function step -> value, as in optax; the value, traced, goes to a sampler:
``linear.sample(key, task, active=...)`` for coordinates, ``repeated`` for demonstrations (the
curriculum of Garg et al. 2208.01066, who grow both).

    >>> coordinates = staircase(5, 20, interval=2000, stride=5)
    >>> [int(coordinates(step)) for step in (0, 1999, 2000, 50_000)]
    [5, 5, 10, 20]
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from lsa_lab import prompts
from lsa_lab.arguments import check_whole, is_concrete
from lsa_lab.prompts import Prompt


def staircase(
    start: int, stop: int, interval: int, stride: int = 1
) -> Callable[[ArrayLike], Array]:
    """step -> min(start + stride ⌊step / interval⌋, stop), an integer: up by ``stride`` every
    ``interval`` steps until ``stop``."""
    counts = {"start": start, "stop": stop, "interval": interval, "stride": stride}
    for name, value in counts.items():
        check_whole(value, name)
    if not 1 <= start <= stop:
        raise ValueError(f"start = {start}, stop = {stop}: a staircase climbs, from 1 at least")
    if interval < 1 or stride < 1:
        raise ValueError(f"interval = {interval}, stride = {stride}: both are at least 1")

    def schedule(step: ArrayLike) -> Array:  # []
        return jnp.minimum(start + stride * (jnp.asarray(step) // interval), stop)

    return schedule


def repeated(prompt: Prompt, demonstrations: ArrayLike) -> Prompt:
    """The first m demonstrations over and over, until there are n: m = ``demonstrations``, 1 to n.

    A model that reads averages over demonstrations cannot tell this from a prompt of m, if m
    divides n (docs/theory, "Symmetries of linear attention"); if not, the first ones count once
    more than the last.
    """
    prompts.check(prompt)
    n = prompt.x.shape[0]
    if is_concrete(demonstrations):
        count = check_whole(demonstrations, "demonstrations")
        if not 1 <= count <= n:
            nearest = min(max(count, 1), n)
            raise ValueError(f"demonstrations = {count} of n = {n}: nearest valid {nearest}")
    rows = jnp.arange(n) % jnp.asarray(demonstrations, int)
    return prompt.replace(x=prompt.x[rows], y=prompt.y[rows])
