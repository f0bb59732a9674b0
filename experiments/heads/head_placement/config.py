"""The sizes of `head_placement`: models that differ in where their heads stand alone."""

from dataclasses import dataclass

from experiments.models.named import MODELS, Named, choose_pairs
from experiments.models.specs import Spec, restored

_NAMES = [name for name in MODELS if name.startswith("place ")]
_MODELS = choose_pairs(_NAMES)


@dataclass(frozen=True)
class Config:
    """As many heads in every model, so as many parameters: the size of a head is that of a token
    times that of its keys, in whichever layer it stands. Every model has as many steps."""

    models: Named = _MODELS  # trained models, by name
    # Demonstrations in a test prompt.
    shots: tuple[int, ...] = (8, 16, 32, 64)
    test_prompts: int = 4096
    seed: int = 0


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
