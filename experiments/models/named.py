"""The trained models that experiments share, by name. No jax.

Those of ``REGRESSION`` are trained on dense prompts until they are near ridge regression; those of
sparse regression are our setting, modelled on A4 (2408.04532), whose sizes are not published.
Weights are in ``experiments/weights``; ``python -m experiments.models.train NAME`` writes them.
"""

import dataclasses
from collections.abc import Iterable, Mapping

from experiments.models.specs import Architecture, Recipe, Spec, Task, dense_spec

# Merged linear attention; softmax attention and nothing else, the same with a causal mask; softmax
# attention with norms and MLPs.
REGRESSION = ("linear attention", "softmax attention", "causal attention", "transformer")

CLIPPED_STEPS = 12_000
SPARSE_STEPS = 20_000


@dataclasses.dataclass(frozen=True)
class NamedModels:
    """The first fields of a configuration that names trained models."""

    names: tuple[str, ...] = ()  # trained models
    small: bool = False  # tiny models that train in seconds, for tests

    @property
    def models(self) -> dict[str, Spec]:
        return choose_models(self.names, small=self.small)


def choose_models(names: Iterable[str], *, small: bool = False) -> dict[str, Spec]:
    """Return the Specs of these names, or small ones of the same kinds that train in seconds."""
    return {name: tiny(name) if small else MODELS[name] for name in names}


def tiny(name: str) -> Spec:
    """Return a Spec of the same kind with few steps, prompts and seeds; without variants narrow."""
    spec = MODELS[name]
    few = min(spec.training.checkpoints, 5)
    training = dataclasses.replace(spec.training, steps=5, batch=4, seeds=2, checkpoints=few)
    task, architecture = spec.task, spec.architecture
    if not architecture.variants:
        task = dataclasses.replace(task, d=2, lengths=(2, 4) if task.lengths[1:] else (4,))
        widths = {"depth": 2, "heads": 2, "key_width": 2, "width": 4, "mlp_width": 4}
        used = {key: getattr(architecture, key) for key in widths}
        widths = {key: min(widths[key], size) for key, size in used.items() if size is not None}
        architecture = dataclasses.replace(architecture, **widths)
    return Spec(task, architecture, training)


def _dense() -> dict[str, Spec]:
    """Models of dense regression.

    Linear attention reads prompts in their own units, with a short gradient and a short memory of
    its squares: else one prompt in thousands makes a polynomial of degree 3^L explode.
    """
    d, n, depth, heads, width = 6, 16, 4, 4, 24
    common = dict(seeds=16, seed=2101)
    linear = dict(steps=12_000, batch=128, learning_rate=0.005, clip=0.1, beta_2=0.99)
    linear = dict(noise_std=0.5, normalise_prompt=True, training=linear | common)

    def softmax(steps, checkpoints=1, **shape):
        training = dict(steps=steps, batch=64, learning_rate=0.003, checkpoints=checkpoints)
        wide = dict(heads=heads, key_width=width // heads, width=width, init_scale=0.5)
        wide |= dict(noise_std=0.5, training=training | common)
        return dense_spec("softmax", d, n, depth, **wide, **shape)

    specs = (
        dense_spec("linear", d, n, depth, **linear),
        softmax(10_000),
        softmax(20_000, keys="causal"),
        softmax(16_000, checkpoints=5, norm=True, mlp_width=2 * width),
    )
    return dict(zip(REGRESSION, specs, strict=True))


def _sparse(variants, *, sparsity=1, kernel="linear", key_width=None, **training) -> Spec:
    """Models of regression with d = 5 and E |w|² = 1, which read prompts in their own units."""
    d, width = 5, max(map(max, variants))
    recipe = dict(steps=SPARSE_STEPS, batch=64, learning_rate=0.005, clip=0.1, beta_2=0.99)
    scale = 0.1 if key_width is None else 1.0
    form = dict(padding_slots=4, normalise_prompt=True, init_scale=scale)
    return Spec(
        Task(d, (8, 16, 32), sparsity, 0.5, (sparsity or d) ** -0.5),
        Architecture(len(variants[0]), width, variants, kernel, key_width, **form),
        Recipe(**recipe | {"checkpoints": 0} | training),
    )


def _clipped() -> dict[str, Spec]:
    """Narrow transformers with norms and MLPs, 36 of each task: regression, and two classes."""
    shape = dict(kernel="softmax", key_width=8, width=16, mlp_width=32, norm=True, init_scale=0.5)
    architecture = Architecture(depth=4, heads=2, **shape)
    recipe = Recipe(steps=CLIPPED_STEPS, batch=32, learning_rate=4e-3, seeds=36, seed=3101)
    signs = Task(5, (5, 10), noise_std=0.5, labels="signs")
    return {
        "small transformer": Spec(Task(5, (10,), noise_std=0.5), architecture, recipe),
        "two classes": Spec(signs, architecture, dataclasses.replace(recipe, seed=3102)),
    }


def _heads() -> dict[str, Spec]:
    """Models of sparse regression that differ in their heads or in their sparsity."""
    rows = ((1, 1, 1), (2, 2, 2), (4, 1, 1), (1, 4, 4), (4, 4, 4))
    few, one, four = (rows[0], rows[-1]), rows[:1], rows[-1:]
    softmax = dict(learning_rate=0.003, batch=32, clip=1.0, steps=6000, kernel="softmax")
    # As many parameters in a layer: one head with keys of eight, or four with keys of two.
    equal = dict(learning_rate=0.003, seeds=16)
    return {
        "sparse": _sparse(rows, seeds=20, seed=3201),
        "eight heads": _sparse(((8, 8, 8),), seeds=20, seed=3202),
        "two non-zeros": _sparse(few, sparsity=2, seeds=16, seed=3203),
        "no zeros": _sparse(few, sparsity=None, seeds=16, seed=3204),
        "one wide head": _sparse(one, key_width=8, seed=3205, **equal),
        "four narrow heads": _sparse(four, key_width=2, seed=3206, **equal),
        "sparse softmax": _sparse(four, key_width=8, seeds=16, seed=3207, **softmax),
    }


MODELS: Mapping[str, Spec] = {**_dense(), **_clipped(), **_heads()}
