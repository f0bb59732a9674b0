"""Singular values of a decoder's matrices by layer: as stored, rounded once more, and by chance.

The layers of the largest condition numbers are those that A2 clips.
"""

from functools import partial

import numpy as np
import xarray as xr

from experiments.language import decoders
from experiments.language.language_config import PARTS
from lsa_lab.models.matrices import matrices


def deepest_of(conditions: np.ndarray, top_k: int) -> int:  # [L]
    """The deepest of the ``top_k`` layers with the largest condition numbers, as A2 takes it."""
    return int(max(np.argsort(conditions, kind="stable")[-top_k:]))


def rounding_error(rng, matrix, bits, block):  # [p, q] -> [p, q]
    """An error as that of rounding to 2^b levels, b bits, in blocks of weights of a row:
    uniform in ±s/2, s = (largest - smallest) / (2^b - 1) of the block."""
    width = min(block, matrix.shape[1])
    blocks = matrix.reshape(len(matrix), -1, width)
    step = np.ptp(blocks, axis=-1, keepdims=True) / (2**bits - 1)
    return (step * rng.uniform(-0.5, 0.5, blocks.shape)).reshape(matrix.shape)


def random_alike(rng, matrix):  # [p, q] -> [p, q]
    """A normal matrix, scaled to the norms of the rows and the columns of another one in turns."""
    rows, columns = (np.linalg.norm(matrix, axis=axis, keepdims=True) for axis in (1, 0))
    normal = rng.standard_normal(matrix.shape)
    for _ in range(30):
        normal *= rows / np.linalg.norm(normal, axis=1, keepdims=True)
        normal *= columns / np.linalg.norm(normal, axis=0, keepdims=True)
    return normal


def values_at(matrix, shares):  # [p, q] -> [S]
    """The singular values at these shares of the way from the first, 0, to the last, 1."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return values[[round(share * (len(values) - 1)) for share in shares]]


def by_layer(config, params, progress=None, folder=None, label="spectra"):
    """Singular values of each layer's matrices, in float64, heads stacked as in A2: a Dataset
    (depth, matrix, draw, share) of those stored, rounded once more and random ones."""
    stacks = matrices(params, PARTS.values())

    def of_layer(layer):
        rng = np.random.default_rng([config.seed, layer])
        stored = [np.asarray(stack[layer], float) for stack in stacks.values()]

        def rounded(matrix):
            return matrix + rounding_error(rng, matrix, config.bits, config.block)

        def of_draws(draw):  # -> [matrix, draw, share]
            every = ([draw(matrix) for _ in range(config.draws)] for matrix in stored)
            return [[values_at(each, config.shares) for each in draws] for draws in every]

        return {
            "stored": [values_at(matrix, config.shares) for matrix in stored],
            "rounded": of_draws(rounded),
            "random": of_draws(partial(random_alike, rng)),
        }

    places = [(layer,) for layer in range(len(next(iter(stacks.values()))))]
    arrays = decoders.cells(places, of_layer, progress, folder, label)
    axes = {name: ("depth", "matrix", "draw", "share") for name in arrays}
    axes["stored"] = ("depth", "matrix", "share")
    return xr.Dataset(
        {name: (axes[name], values) for name, values in arrays.items()},
        {"matrix": list(stacks), "share": list(config.shares)},
    )
