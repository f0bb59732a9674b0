"""The first and the last layers of a model, which A2 compares."""


def shallow_and_deep(values, count):
    """The first layers and the last ones, ``count`` of them, averaged."""
    ends = (slice(count), slice(-count, None))
    return [values.isel(layer=end).mean("layer") for end in ends]
