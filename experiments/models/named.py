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

Named = tuple[tuple[str, Spec], ...]  # as configs of experiments that are folders hold models


def choose_models(names: Iterable[str], *, small: bool = False) -> dict[str, Spec]:
    """Return the Specs of these names, or small ones of the same kinds that train in seconds."""
    return {name: tiny(name) if small else MODELS[name] for name in names}


def choose_pairs(names: Iterable[str], *, small: bool = False) -> Named:
    return tuple(choose_models(names, small=small).items())


def tiny(name: str) -> Spec:
    """Return a Spec of the same kind as a named one, with few steps, prompts and seeds.

    Without variants it is narrow and has at most two layers.
    """
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
    linear = dense_spec(
        "linear", d, n, depth, noise_std=0.5, normalise_prompt=True, training=linear | common
    )

    def softmax(steps, checkpoints=1, **shape):
        training = dict(steps=steps, batch=64, learning_rate=0.003, checkpoints=checkpoints)
        wide = dict(heads=heads, key_width=width // heads, width=width, init_scale=0.5)
        wide |= dict(noise_std=0.5, training=training | common)
        return dense_spec("softmax", d, n, depth, **wide, **shape)

    specs = (
        linear,
        softmax(10_000),
        softmax(20_000, keys="causal"),
        softmax(16_000, checkpoints=5, norm=True, mlp_width=2 * width),
    )
    return dict(zip(REGRESSION, specs, strict=True))


def _classes() -> Spec:
    """Softmax transformers with norms and MLPs, on two classes at 4 and 10 shots as in A2."""
    shape = dict(kernel="softmax", key_width=8, width=16, mlp_width=32)
    return Spec(
        Task(4, (4, 10, 20), noise_std=0.5, labels="signs"),
        Architecture(depth=4, heads=2, norm=True, init_scale=0.5, **shape),
        Recipe(steps=16_000, batch=64, learning_rate=3e-3, seeds=9),
    )


def _sparse(
    variants,
    *,
    d=4,
    sparsity: int | None = 1,
    noise_std=0.5,
    kernel="linear",
    key_width=None,
    padding_slots=4,
    **training,
) -> Spec:
    """Models of regression with E |w|² = 1, which read prompts in their own units."""
    recipe = dict(steps=30_000, batch=128, learning_rate=0.005, seeds=5, clip=0.1)
    return Spec(
        Task(d, (8, 16, 32), sparsity, noise_std, (sparsity or d) ** -0.5),
        Architecture(
            len(variants[0]),
            max(map(max, variants)),
            variants,
            kernel,
            key_width,
            padding_slots=padding_slots,
            normalise_prompt=True,
            init_scale=0.1 if key_width is None else 1.0,
        ),
        Recipe(**recipe | {"beta_2": 0.99, "checkpoints": 5} | training),
    )


def _clipped() -> dict[str, Spec]:
    """Narrow transformers with norms and MLPs, 36 of each task: regression, and two classes."""
    shape = dict(kernel="softmax", key_width=8, width=16, mlp_width=32, norm=True, init_scale=0.5)
    architecture = Architecture(depth=4, heads=2, **shape)
    recipe = Recipe(steps=CLIPPED_STEPS, batch=32, learning_rate=4e-3, seeds=36, seed=3101)
    return {
        "small transformer": Spec(Task(5, (10,), noise_std=0.5), architecture, recipe),
        "two classes": Spec(
            Task(5, (5, 10), noise_std=0.5, labels="signs"),
            architecture,
            dataclasses.replace(recipe, seed=3102),
        ),
    }


def _heads() -> dict[str, Spec]:
    """Models of sparse regression with d = 5 that differ in their heads or in their sparsity."""
    common = dict(d=5, steps=SPARSE_STEPS, batch=64, checkpoints=0)
    rows = ((1, 1, 1), (2, 2, 2), (4, 1, 1), (1, 4, 4), (4, 4, 4))
    few = (rows[0], rows[-1])
    softmax = dict(learning_rate=0.003, batch=32, clip=1.0, steps=6000, kernel="softmax")
    # As many parameters in a layer: one head with keys of eight, or four with keys of two.
    wide = dict(learning_rate=0.003, key_width=8)
    return {
        "sparse": _sparse(rows, seeds=20, seed=3201, **common),
        "eight heads": _sparse(((8, 8, 8),), seeds=20, seed=3202, **common),
        "two non-zeros": _sparse(few, sparsity=2, seeds=16, seed=3203, **common),
        "no zeros": _sparse(few, sparsity=None, seeds=16, seed=3204, **common),
        "one wide head": _sparse(few[:1], seeds=16, seed=3205, **common | wide),
        "four narrow heads": _sparse(
            few[1:], seeds=16, seed=3206, **common | wide | dict(key_width=2)
        ),
        "sparse softmax": _sparse(few[1:], key_width=8, seeds=16, seed=3207, **common | softmax),
    }


def _models() -> dict[str, Spec]:
    single, all4 = (1, 1, 1), (4, 4, 4)
    deep = ((1,) * 5, (2,) * 5, (4, 1, 1, 1, 1), (1, 4, 4, 4, 4), (4, 4, 1, 1, 1), (4,) * 5)
    return {
        **_dense(),
        **_clipped(),
        **_heads(),
        "classes": _classes(),
        "depth 3": _sparse((single, (2, 2, 2), (4, 1, 1), (1, 4, 4), (4, 4, 1), all4)),
        "depth 5": _sparse(deep, learning_rate=0.002),  # at 0.005 runs of five layers overflow
        "little noise": _sparse((single, all4), noise_std=0.25),
        "much noise": _sparse((single, all4), noise_std=1.0),
    }


MODELS: Mapping[str, Spec] = _models()
