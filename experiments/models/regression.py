"""Specs of dense regression from the fields of a config. No jax."""

from experiments.models.specs import Spec, dense_spec


def kernel_spec(kernel: str, config, *, noise_std: float = 0.0, **training) -> Spec:
    """Return a Spec of merged linear attention or of softmax heads as wide as a token.

    ``config`` has d, n, depth, learning_rate, {kernel}_steps, {kernel}_batch and, for softmax,
    heads.
    """
    steps, batch = (getattr(config, f"{kernel}_{what}") for what in ("steps", "batch"))
    training |= dict(steps=steps, batch=batch, learning_rate=config.learning_rate)
    wide = {} if kernel == "linear" else dict(heads=config.heads, key_width=config.d + 1)
    sizes = (config.d, config.n, config.depth)
    return dense_spec(kernel, *sizes, noise_std=noise_std, training=training, **wide)
