"""The sizes of `one_number`, its tasks, its maps and its searches by name."""

from dataclasses import dataclass

from experiments.clipping.clipped_models import PARTS
from experiments.models.named import Named, choose_pairs

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
class Config:
    """A2's Algorithm 1 beside maps of the answer with one number or two, on trained models.

    The models tell two classes apart or regress. Edits and maps are chosen with the same validation
    prompts and judged on others; the same search over random edits as large is the null.
    """

    models: Named = TRAINED_MODELS  # one of two classes, one of regression
    rates: tuple[float, ...] = (
        *(0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995),  # A2's, of clipping
    )
    # Layers by condition number, the deepest of which is clipped; A2 leaves it open.
    top_k: int = 2
    fewer: int = 5  # the longest prompts are so many times as long
    small: float = 0.5  # scale of the smaller covariates
    large: float = 2.0  # and of the larger ones
    validation: int = 200  # prompts to search and to fit with
    test: int = 2000  # others, for the one test
    seed: int = 35


TIERS = {
    "smoke": Config(
        choose_pairs(MODELS, small=True), rates=(0.5, 0.75), fewer=2, validation=16, test=16
    ),
    "laptop": Config(),
}
