"""The sizes of `head_placement`: models that differ in where their heads stand alone."""

from dataclasses import dataclass
from typing import Annotated

from experiments.models.named import MODELS, Named, choose_pairs
from experiments.models.specs import Spec, restored
from lsa_lab.harness.run.bounds import Bounded, Seed, at_least

_NAMES = [name for name in MODELS if name.startswith("place ")]
_MODELS = choose_pairs(_NAMES)


@dataclass(frozen=True)
class Config(Bounded):
    """As many heads in every model, so as many parameters: the size of a head is that of a token
    times that of its keys, in whichever layer it stands. Every model has as many steps."""

    models: Named = _MODELS  # trained models, by name
    # Demonstrations in a test prompt.
    shots: Annotated[tuple[int, ...], at_least(2)] = (8, 16, 32, 64)
    test_prompts: Annotated[int, at_least(2)] = 4096
    seed: Seed = 0

    def __post_init__(self):
        super().__post_init__()
        rows = [row_of(spec) for spec in specs(self).values()]
        if len({sum(row) for row in rows}) != 1 or len({*rows}) != len(rows):
            raise ValueError("models: choose rows of as many heads, each once")


def specs(config) -> dict[str, Spec]:
    """The models by the heads of their layers, "4,1,1"."""
    own = [restored(spec) for _, spec in config.models]
    return {",".join(map(str, row_of(spec))): spec for spec in own}


def row_of(spec) -> tuple[int, ...]:
    (row,) = spec.architecture.variants
    return tuple(row)


TIERS = {
    "smoke": Config(models=choose_pairs(_NAMES[:4], small=True), shots=(4, 8), test_prompts=32),
    "laptop": Config(),
}
