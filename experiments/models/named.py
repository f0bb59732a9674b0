"""The trained models that experiments share, by tier and name, and what they are in numbers. No
jax.

Those of sparse regression are our setting, modelled on A4 (2408.04532), whose sizes are not
published; those of ``REGRESSION`` are trained on dense prompts until they are near ridge
regression.
"""

import dataclasses
from collections.abc import Sequence

from experiments.models.regression import dense
from experiments.models.specs import Architecture, Classes, Recipe, Spec, Task

# Merged linear attention; softmax attention and nothing else, the same with a causal mask; softmax
# attention with norms and MLPs.
REGRESSION = ("linear attention", "softmax attention", "causal attention", "transformer")

Named = tuple[tuple[str, Spec], ...]  # as a config holds them; dict(...) finds one by its name


def named(tier: str, names: Sequence[str] | None = None) -> Named:
    """The models of a tier, or those of ``names`` that it has, in that order."""
    models = MODELS[tier]
    names = models if names is None else names
    return tuple((name, models[name]) for name in names if name in models)


def more_seeds(models: Named) -> Named:
    """These, each with the seeds that the paper tier has of it, if it has any."""
    return tuple((name, MODELS["paper"].get(name, spec)) for name, spec in models)


def _sparse(
    variants,
    *,
    d=4,
    sparsity=1,
    noise_std=0.5,
    lengths=(8, 16, 32),
    kernel="linear",
    key_width=None,
    scratch=4,
    **training,
) -> Spec:
    """E |w|² = 1, and prompts are read in their own units."""
    scale = 0.1 if key_width is None else 1.0
    recipe = dict(steps=30_000, batch=128, learning_rate=0.005, seeds=5, clip=0.1)
    return Spec(
        Task(d, lengths, 1, sparsity, noise_std, (sparsity or d) ** -0.5),
        Architecture(
            len(variants[0]),
            max(map(max, variants)),
            variants,
            kernel,
            key_width,
            scratch=scratch,
            own_units=True,
            init_scale=scale,
        ),
        Recipe(**recipe | {"beta_2": 0.99, "checkpoints": 5} | training),
    )


def _regression(d, n, width, heads, mlp_width, depth, seeds, steps, **rest) -> dict[str, Spec]:
    """``steps``: of each of ``REGRESSION``.

    Linear attention reads prompts in their own units, with a short gradient and a short memory of
    its squares: as they are, one prompt in thousands makes a polynomial of degree 3^L explode.
    """

    def recipe(steps, **more):
        return dict(batch=64, learning_rate=0.003, seeds=seeds, steps=steps) | rest | more

    linear, softmax, causal, deep = steps
    own_units = recipe(linear, learning_rate=0.005, clip=0.1, beta_2=0.99, batch=128) | rest
    wide = dict(heads=heads, key_width=width // heads, width=width, init_scale=0.5, noise_std=0.5)
    specs = [dense("linear", d, n, depth, noise_std=0.5, own_units=True, training=own_units)]
    for keys, steps in {"demonstrations": softmax, "causal": causal}.items():
        specs.append(dense("softmax", d, n, depth, **wide, keys=keys, training=recipe(steps)))
    more = dict(norm=True, mlp_width=mlp_width, training=recipe(deep, checkpoints=5))
    specs.append(dense("softmax", d, n, depth, **wide, **more))
    return dict(zip(REGRESSION, specs, strict=True))


def _classes(*, d=4, lengths=(4, 10, 20), width=16, depth=4, **training) -> Spec:
    """Softmax transformers with a norm and an MLP, on two classes at 4 and 10 shots as in A2."""
    shape = dict(kernel="softmax", key_width=width // 2, width=width, mlp_width=2 * width)
    recipe = dict(steps=16_000, batch=64, learning_rate=3e-3, seeds=9)
    return Spec(
        Classes(d, lengths, noise_std=0.5),
        Architecture(depth, heads=2, norm=True, init_scale=0.5, **shape),
        Recipe(**recipe | training),
    )


def _sizes(rows, kind: str = "size", **rest) -> dict[str, Spec]:
    """A model of its own for each row of heads, "size 8 1 1": runs side by side share a program,
    and these are trained one by one."""
    return {f"{kind} {' '.join(map(str, row))}": _sparse((row,), **rest) for row in rows}


def _places(rows, kind: str = "place", **rest) -> dict[str, Spec]:
    """Six heads in three layers, "place 4 1 1": the recipe of the sizes at d = 8, with batches of a
    quarter and .3 of the steps, so that two cores train one of these in minutes."""
    return _sizes(rows, kind, **_LARGE | dict(steps=30_000, batch=32, seeds=5) | rest)


_LARGE = dict(d=8, sparsity=2, scratch=8, key_width=8)
_LARGE |= dict(learning_rate=0.003, steps=100_000, seeds=3, checkpoints=10)
# All ten ways to place six heads in three layers, the most telling ones first; of these the laptop
# tier has those that are trained, and the paper tier all.
_PLACES = ((4, 1, 1), (1, 4, 1), (1, 1, 4), (2, 2, 2), (3, 2, 1), (1, 2, 3), (2, 3, 1), (1, 3, 2))
_PLACES += ((3, 1, 2), (2, 1, 3))


def _smoke() -> dict[str, Spec]:
    tiny = dict(d=2, lengths=(4, 8), scratch=2, seeds=2, steps=4, batch=4, checkpoints=2)
    three, five = ((1, 1), (2, 1), (2, 2)), ((1, 1, 1), (2, 2, 2))
    return {
        "depth 3": _sparse(three, **tiny),
        "depth 5": _sparse(five, **tiny),
        "softmax": _sparse(three, kernel="softmax", key_width=2, **tiny),
        **_regression(2, 4, 4, 2, 4, 2, 2, (5, 5, 5, 5), batch=4),
        **_sizes(((1, 1), (2, 1), (2, 2), (3, 1), (3, 3)), key_width=2, **tiny),
        **_places(_PLACES[:4], **tiny | dict(sparsity=1, key_width=2)),
        "classes": _classes(d=2, lengths=(2, 4), width=4, depth=2, steps=4, batch=4, seeds=2),
    }


def _laptop() -> dict[str, Spec]:
    single, all4 = (1, 1, 1), (4, 4, 4)
    slow = dict(learning_rate=0.003, batch=32, clip=1.0, steps=9000)
    deep = ((1,) * 5, (2,) * 5, (4, 1, 1, 1, 1), (1, 4, 4, 4, 4), (4, 4, 1, 1, 1), (4,) * 5)
    return {
        "depth 3": _sparse((single, (2, 2, 2), (4, 1, 1), (1, 4, 4), (4, 4, 1), all4)),
        "depth 5": _sparse(deep, learning_rate=0.002),  # at 0.005 runs of five layers overflow
        "dense": _sparse((single, all4), sparsity=None),
        "narrow keys": _sparse(((4, 1, 1), all4), key_width=4),
        "little noise": _sparse((single, all4), noise_std=0.25),
        "much noise": _sparse((single, all4), noise_std=1.0),
        "long training": _sparse((all4,), steps=120_000),
        "softmax": _sparse((single, all4), kernel="softmax", key_width=9, **slow),
        **_regression(8, 20, 32, 4, 64, 4, 9, (20_000, 20_000, 50_000, 30_000)),
        **_sizes((single, *((h, *r) for h in (4, 8, 12) for r in ((1, 1), (h, h)))), **_LARGE),
        **_places(_PLACES),
        "classes": _classes(),
    }


def _paper(laptop: dict[str, Spec]) -> dict[str, Spec]:
    """The laptop's models that are judged over seeds, with more of them, from another key: a night
    on two cores. Of the sizes, the laptop's seeds are the first ones."""

    def more(name, seeds, seed=1):
        training = dataclasses.replace(laptop[name].training, seeds=seeds, seed=seed)
        return dataclasses.replace(laptop[name], training=training)

    models = {name: more(name, 36) for name in REGRESSION}
    models |= {name: more(name, 20) for name in ("depth 3", "depth 5", "narrow keys", "softmax")}
    models |= _places(_PLACES, "long place", steps=100_000)
    return models | {name: more(name, 12, 0) for name in laptop if name.startswith("size ")}


MODELS = {"smoke": _smoke(), "laptop": _laptop()}
MODELS["paper"] = _paper(MODELS["laptop"])
