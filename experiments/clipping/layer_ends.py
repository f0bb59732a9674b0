"""The first and the last layers of a model, which A2 compares."""

import numpy as np


def shallow_and_deep(values, count):
    """The first layers and the last ones, ``count`` of them, averaged."""
    ends = (slice(count), slice(-count, None))
    return [values.isel(layer=end).mean("layer") for end in ends]


def shades(count):  # -> [count, 4]
    """A colour for each layer, the deeper the paler."""
    from matplotlib import colormaps

    return colormaps["viridis"](np.linspace(0, 0.8, count))
