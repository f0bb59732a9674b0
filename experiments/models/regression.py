"""Specs of models for dense regression, from the numbers of an experiment's own config. No jax."""

from experiments.models.specs import Architecture, Recipe, Spec, Task


def dense(
    kernel: str,
    d: int,
    n: int,
    depth: int,
    *,
    heads: int = 1,
    key_width: int | None = None,
    noise_std: float = 0.0,
    training: dict,  # fields of Recipe
    **shape,  # fields of Architecture
) -> Spec:
    """Trained on prompts of n demonstrations with w ~ N(0, I), read as they are."""
    scale = 0.1 if key_width is None else 1.0
    shape = dict(kernel=kernel, key_width=key_width, init_scale=scale) | shape
    task = Task(d, (n,), noise_std=noise_std)
    return Spec(task, Architecture(depth, heads, **shape), Recipe(**training))


def kernel_spec(kernel: str, config, *, noise_std: float = 0.0, **training) -> Spec:
    """Merged linear attention or softmax heads as wide as a token, from a config with d, n, depth,
    learning_rate, {kernel}_steps, {kernel}_batch and, for softmax, heads."""
    steps, batch = (getattr(config, f"{kernel}_{what}") for what in ("steps", "batch"))
    training |= dict(steps=steps, batch=batch, learning_rate=config.learning_rate)
    wide = {} if kernel == "linear" else dict(heads=config.heads, key_width=config.d + 1)
    sizes = (config.d, config.n, config.depth)
    return dense(kernel, *sizes, noise_std=noise_std, training=training, **wide)
