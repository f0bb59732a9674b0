"""Whether this process multiplies matrices as precisely as it says, asked before it computes.

GPUs and TPUs round the factors of a float32 product to 10 or 7 bits (TF32, bfloat16) unless they
are told otherwise; ``process.configure`` tells them, and whatever undoes it is met here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from lsa_lab.harness.refusal import RefusalError

_SIZE = 64
# |C - AB| / |AB| of a product in float32 is 1e-7, of one whose factors have 10 or 7 bits 3e-4 or
# 2e-3, and of three products of bfloat16 in place of one 4e-6.
_MOST = {"float32": 1e-6, "float64": 1e-14}


def check(product: Callable[[Any, Any], Any] | None = None) -> None:
    """Refuse to compute where a matrix product is less precise than the dtype of its factors.

    ``product``: jnp.matmul as this process has it. A product takes milliseconds.
    """
    import jax

    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, _SIZE, _SIZE)).astype(np.float32)
    exact = left.astype(float) @ right.astype(float)
    for dtype in ("float32", "float64") if jax.config.values["jax_enable_x64"] else ("float32",):
        result = (product or jax.numpy.matmul)(left.astype(dtype), right.astype(dtype))
        error = np.linalg.norm(np.asarray(result, float) - exact) / np.linalg.norm(exact)
        if not error <= _MOST[dtype]:
            raise RefusalError(
                f"a {dtype} product of matrices is wrong by {error:.1g} of its size, and "
                f"{_MOST[dtype]:.0e} is allowed: this process rounds the factors. Set "
                'jax.config.update("jax_default_matmul_precision", "highest"), which is now '
                f"{jax.config.values['jax_default_matmul_precision']!r}, and no flag of XLA_FLAGS "
                "that lowers it"
            )
