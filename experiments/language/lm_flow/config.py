"""The sizes of `lm_flow`, and the rules by which demonstrations are selected."""

from dataclasses import dataclass

from experiments.language import language_config as language
from experiments.language.language_config import LanguageConfig, Texts, TextTask, text_tasks

FILMS = text_tasks("rotten_tomatoes", most_words=40)  # whole sentences: longer ones are left out

MODES = ("alone", "shared")  # each demonstration before the query by itself, or all of them
READS = ("margin", "row")  # of the label words through the logit lens; of the query's row
FACTORS = ("relevance", "novelty", "both")  # of a single demonstration
RULES = (  # they score every demonstration of a pool for a query
    "GradS",  # the flow of the margin after the last layer
    "GradS, row",  # that of the query's row
    "contribution",  # the size of what a demonstration alone changes the margin by
    "similarity",  # of mean rows
    "BM25",
    "oracle",  # what a demonstration alone adds to the log-probability of the query's label
)
NEWS = (*FILMS, *text_tasks("reuters", most_words=12))


@dataclass(frozen=True)
class Grads(Texts):
    """Demonstrations selected from a pool for each query, each scored alone before it (one-shot).

    The flow is that of the margin of the two label words, through the logit lens, and that of the
    query's row, along random directions.
    """

    tasks: tuple[tuple[str, TextTask], ...] = FILMS  # texts in two classes
    shots: int = 4  # demonstrations selected for every query
    pool: int = 20  # demonstrations to select from
    fresh: int = 2  # queries of a run, in none of its demonstrations
    random_draws: int = 2  # random selections for a query, averaged
    # Those after which flows are taken, two at least; GradS has the last one.
    layers: tuple[int, ...] = (15, 30)
    prompts_judged: bool = False  # whether there are queries enough to judge selected prompts
    seed: int = 42


@dataclass(frozen=True)
class Config(LanguageConfig):
    """Flows to demonstrations before two queries, layer by layer, and what single ones are worth.

    The first ``shots`` demonstrations of a run are those whose flows are compared, alone and in a
    shared prompt in which each stands once at every place. ``pool`` others stand alone before each
    fresh sentence, to see what they add to the log-probability of its label.
    """

    tasks: tuple[tuple[str, TextTask], ...] = FILMS  # texts in two classes
    shots: int = 3  # whose flows are compared, each rotation a prompt
    fresh: int = 6  # sentences of a run, in none of its demonstrations
    queries: int = 2  # those of them that flows go to
    pool: int = 10  # single demonstrations, in none of the above
    # Tokens of a sentence; a shorter one is left out, and a longer one.
    fewest_tokens: int = 8
    most_tokens: int = 16
    layers: tuple[int, ...] = (1, 8, 15, 22, 30)  # to read flows after
    directions: int = 2  # random ones, to take a row's flow along
    middle: int = 15  # the layer after which rows tell similarity
    seed: int = 41
    grads: Grads = Grads()  # selection by the flow


TIERS = {
    "smoke": Config(
        **language.SMOKE,
        pool=4,
        fewest_tokens=1,
        layers=(1, 4),
        directions=1,
        middle=2,
        grads=Grads(**language.SMOKE_TEXTS | dict(fresh=2), pool=4, random_draws=1, layers=(2, 4)),
    ),
    "laptop": Config(),
    # As many sets as a laptop's rows said would decide them, and more; on a GPU, minutes.
    "paper": Config(
        tasks=(*FILMS, *text_tasks("imdb", "reuters", most_words=12)),
        runs=48,
        shots=4,
        fresh=12,
        pool=24,
        seed=141,
        grads=Grads(NEWS, pool=24, fresh=6, runs=48, prompts_judged=True, seed=142),
    ),
}
