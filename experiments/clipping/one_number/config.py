"""The sizes of `one_number`, its tasks, its maps and its searches by name."""

from dataclasses import dataclass
from typing import Annotated

from experiments.clipping.clipped_models import PARTS
from experiments.models.named import Named, choose_pairs
from experiments.models.specs import restored
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import INCREASING, POSITIVE, Bounded, Seed, at_least, between

CLASSES, REGRESSION = MODELS = ("classes", "transformer")
CLIPPED, RANDOM_EDIT = KINDS = ("Algorithm 1", "random edits")
SEARCHES = tuple(f"{kind}, {part}" for kind in KINDS for part in PARTS)
UNEDITED, THRESHOLD, CALIBRATED = "unedited", "one threshold", "contextual calibration"
RULES = (UNEDITED, THRESHOLD, CALIBRATED, *SEARCHES)
READINGS = ("accuracy", "auc", "calibrated entropy")
MULTIPLE, AFFINE, SIZED, CUBIC = "one multiple", "affine", "multiple by label size", "cubic"
MAPS = (MULTIPLE, AFFINE, SIZED, CUBIC)
TRAINED, NO_NOISE = "as trained", "no noise"
TASKS = (TRAINED, NO_NOISE, "fewer shots", "smaller inputs", "larger inputs")

TRAINED_MODELS = choose_pairs(MODELS)


@dataclass(frozen=True)
class Config(Bounded):
    """A2's Algorithm 1 beside maps of the answer with one number or two, on trained models.

    The models tell two classes apart or regress. Edits and maps are chosen with the same validation
    prompts and judged on others; the same search over random edits as large is the null.
    """

    models: Named = TRAINED_MODELS  # one of two classes, one of regression
    rates: Annotated[tuple[float, ...], between(0.001, 0.999), INCREASING] = (
        *(0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995),  # A2's, of clipping
    )
    # Layers by condition number, the deepest of which is clipped; A2 leaves it open.
    top_k: Annotated[int, at_least(1)] = 2
    fewer: Annotated[int, at_least(2)] = 5  # the longest prompts are so many times as long
    small: Annotated[float, POSITIVE] = 0.5  # scale of the smaller covariates
    large: Annotated[float, POSITIVE] = 2.0  # and of the larger ones
    validation: Annotated[int, at_least(8)] = 200  # prompts to search and to fit with
    test: Annotated[int, at_least(8)] = 2000  # others, for the one test
    seed: Seed = 35

    def __post_init__(self):
        super().__post_init__()
        for name, spec in self.models:
            if name not in MODELS:
                raise ValueError(f"models: {name!r} is none of {', '.join(MODELS)}")
            checks.between(self, "top_k", 1, restored(spec).architecture.depth)


TIERS = {
    "smoke": Config(
        choose_pairs(MODELS, small=True), rates=(0.5, 0.75), fewer=2, validation=16, test=16
    ),
    "laptop": Config(),
}
