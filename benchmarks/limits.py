"""What this machine can do at best: products, copies, fresh memory and random numbers."""

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import machine
from benchmarks.loops import versions as versions
from benchmarks.machine import NORMALS, NUMBERS, WIDTH
from benchmarks.timing import Form, calls


def limits(width: int = WIDTH, numbers: int = NUMBERS, normals: int = NORMALS) -> Form:
    """Points as ``machine.rates`` takes them."""
    matrix = jnp.ones((width, width), jnp.float32)
    product = jax.jit(lambda a: a @ a)
    draw = jax.jit(lambda key: jax.random.normal(key, (normals,), jnp.float32))
    source, target = np.ones(numbers, np.float32), np.ones(numbers, np.float32)
    count = len(machine.cores())
    pieces = list(zip(np.array_split(target, count), np.array_split(source, count), strict=True))
    pool = ThreadPoolExecutor(count)

    def copy():
        return list(pool.map(lambda pair: np.copyto(*pair), pieces))

    turn = calls(
        lambda: product(matrix),
        copy,
        source.copy,
        lambda: draw(jax.random.key(0)),
        units=(units := [3, 2, 1, 2]),
        wait=jax.block_until_ready,
    )
    return Form(turn, units, lambda: [None] * 4)
