"""Singular values of a decoder's matrices by layer: as stored, rounded once more, and by chance."""

import numpy as np
import xarray as xr

from experiments.language import decoders
from experiments.language.lm_clipping.config import MATRICES, PARTS, Spectra
from lsa_lab.models import leaves


def rounding_error(rng, matrix, config):  # [p, q] -> [p, q]
    """An error as that of rounding to 2^b levels, b = 4 bits, in runs of 32 weights of a row:
    uniform in ±s/2, s = (largest - smallest) / (2^b - 1) of the run."""
    width = min(config.block, matrix.shape[1])
    blocks = matrix.reshape(len(matrix), -1, width)
    step = np.ptp(blocks, axis=-1, keepdims=True) / (2**config.bits - 1)
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


def measure(config: Spectra, params, progress=None, folder=None, label="spectra"):
    """The Dataset of the part: matrices of each layer, in float64, heads stacked as in A2."""
    stacks = [leaf for part in PARTS.values() for leaf in leaves.matrices(params, part).values()]

    def of_layer(layer):
        rng = np.random.default_rng([config.seed, layer])
        every = [np.asarray(stack[layer], float) for stack in stacks]
        rounded = [[m + rounding_error(rng, m, config) for _ in range(config.draws)] for m in every]
        random = [[random_alike(rng, m) for _ in range(config.draws)] for m in every]
        return {
            "stored": [values_at(m, config.shares) for m in every],
            "rounded": [[values_at(m, config.shares) for m in draws] for draws in rounded],
            "random": [[values_at(m, config.shares) for m in draws] for draws in random],
        }

    places = [(layer,) for layer in range(len(stacks[0]))]
    arrays = decoders.cells(places, of_layer, progress, folder, label)
    axes = {"stored": ("matrix", "share")}
    axes |= dict.fromkeys(("rounded", "random"), ("matrix", "draw", "share"))
    return xr.Dataset(
        {name: (("depth", *axes[name]), values) for name, values in arrays.items()},
        {"matrix": list(MATRICES), "share": list(config.shares)},
    )
