"""The sizes of `heads_per_layer`, and where its models have their heads."""

from dataclasses import dataclass

from experiments.models.named import MODELS, Named, choose_pairs
from experiments.models.specs import Spec, restored

SINGLE, FIRST, FULL = ("single", "first", "full")  # where a row has more heads than one
_SIZE = "size "  # with which the names of models of one row of heads begin


_NAMES = [name for name in MODELS if name.startswith(("depth ", _SIZE))]
_MODELS = choose_pairs(_NAMES)


@dataclass(frozen=True)
class BeyondD:
    """Models with one head a layer, with h in the first layer, and with h in all."""

    # Demonstrations in a test prompt.
    shots: tuple[int, ...] = (8, 16, 32, 64, 128)
    judged: int = 16  # the number of demonstrations at which claims are judged
    test_prompts: int = 2048
    seed: int = 0


@dataclass(frozen=True)
class Config:
    """Architectures that differ in where their heads sit, at two depths, and in how many."""

    models: Named = _MODELS  # trained models, by name
    # Demonstrations in a test prompt.
    shots: tuple[int, ...] = (8, 16, 32, 64)
    judged: int = 16  # the number of demonstrations at which claims are judged
    test_prompts: int = 4096
    # On which the step sizes of descent are chosen.
    tuning_prompts: int = 2048
    seed: int = 0
    beyond_d: BeyondD = BeyondD()  # on models of up to more heads than covariates


def depths(config) -> list[tuple[str, Spec]]:
    """The models that differ in depth alone, by name."""
    return [(name, restored(spec)) for name, spec in config.models if not name.startswith(_SIZE)]


def sizes(config) -> list[tuple[str, Spec]]:
    """The models of one row of heads each, by name."""
    return [(name, restored(spec)) for name, spec in config.models if name.startswith(_SIZE)]


def place_of(spec: Spec) -> tuple[str, int]:
    """Where a model of one row has its heads, and how many."""
    (row,) = spec.architecture.variants
    return SINGLE if max(row) == 1 else FULL if row[-1] > 1 else FIRST, row[0]


def counts(config) -> dict[str, tuple[int, int, int]]:
    """For heads in the first layer and in all: the numbers next below d, d, and next above."""
    specs = [spec for _, spec in sizes(config)]
    d, numbers = specs[0].task.d, {}
    for kind in (FIRST, FULL):
        own = sorted({heads for where, heads in map(place_of, specs) if where in (kind, SINGLE)})
        place = own.index(d) if d in own else 0
        if 0 < place < len(own) - 1:
            numbers[kind] = tuple(own[place - 1 : place + 2])
    return numbers


TIERS = {
    "smoke": Config(
        models=choose_pairs(_NAMES, small=True),
        shots=(8, 64),
        judged=8,
        test_prompts=32,
        tuning_prompts=32,
        beyond_d=BeyondD(shots=(8, 16, 64), judged=16, test_prompts=32),
    ),
    "laptop": Config(),
}
