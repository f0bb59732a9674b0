"""The sizes of `lm_one_number`, its methods and its readings."""

from dataclasses import dataclass

from experiments.language.language_config import PARTS, SMOKE, LanguageConfig, TextTask, text_tasks

CLIPPED, RANDOM_EDIT = KINDS = ("Algorithm 1", "random edits")
SEARCHES = tuple(f"{kind}, {part}" for kind in KINDS for part in PARTS)
UNEDITED, THRESHOLD, TEMPERATURE = "unedited", "one threshold", "one temperature"
CALIBRATED, BOTH = "contextual calibration", "threshold and temperature"
METHODS = (UNEDITED, THRESHOLD, TEMPERATURE, CALIBRATED, BOTH, *SEARCHES)
# The last after an affine map of the log-odds that is fitted on validation, of each method's own.
READINGS = ("accuracy", "auc", "entropy", "calibrated entropy")


@dataclass(frozen=True)
class Config(LanguageConfig):
    """A2's Algorithm 1 beside maps of the answer that have one number, on the same sentences.

    The rate, the threshold and the temperature are chosen with the same validation sentences and
    judged on fresh ones; the same search over random edits as large is the null. Texts are cut so
    that every question has as many tokens.
    """

    tasks: tuple[tuple[str, TextTask], ...] = text_tasks(  # texts in classes, and how they are put
        "rotten_tomatoes", "imdb", "reuters", "newsgroups", "tweets"
    )
    # Of clipping: those of A2's eight that two cores can search.
    rates: tuple[float, ...] = (0.5, 0.9, 0.99)
    # Layers by condition number, the deepest of which is clipped; A2 leaves it open.
    top_k: int = 2
    layers: tuple[int, ...] = (28,)  # clipped at one rate
    layer_rate: float = 0.9  # the rate there
    width: int = 24  # tokens of a question, to which texts are cut
    validation: int = 24  # sentences to search and to fit with
    fresh: int = 24  # others, for the one test
    runs: int = 7  # sets of each collection; verdicts are over all of them
    seed: int = 135


TIERS = {
    "smoke": Config(
        **SMOKE | dict(fresh=8),
        rates=(0.5, 0.75),
        layers=(1, 3),
        layer_rate=0.5,
        width=10,
        validation=8,
    ),
    "laptop": Config(runs=2),  # a pilot
    "paper": Config(seed=136),
}
