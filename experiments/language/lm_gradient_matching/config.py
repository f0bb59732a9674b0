"""The sizes, rules and criteria of `lm_gradient_matching`; its bounds are older than any run."""

from dataclasses import dataclass

from experiments.language.language_config import SMOKE, LanguageConfig
from experiments.language.lm_gradient_matching.statements import statements as statements
from experiments.language.text_tasks import TextTask, named
from lsa_lab.harness import checks

NEEDS = ("smollm2", "movie-reviews", "reuters")

# A subset by each of these rules, and several by each of DRAWN; the best of 5 is among the random.
MATCHED = ("matching", "matching, whitened", "mismatching")
RULES = (*MATCHED, "k-means")
DRAWN = ("random", "stratified")


@dataclass(frozen=True)
class Config(LanguageConfig):
    """Demonstrations chosen from a pool by the gradients of a prefix learnt on it, and by rivals.

    Texts are cut so that every question has as many tokens: all prompts of one size are as long.
    In a prompt the classes take turns, the same one last in all prompts of a run: an order at
    random alone moves the loss five times as much as the choice of demonstrations does.
    Prefix and checkpoints are A3's (docs/theory, "Gradient matching") but for their number and the
    learning rate, which moves rows as large as embeddings.
    """

    tasks: tuple[tuple[str, TextTask], ...] = named("rotten_tomatoes")  # texts in classes
    shots: int = 16  # demonstrations that are chosen, of those sizes the one that is judged
    sizes: tuple[int, ...] = (16,)  # numbers of demonstrations that are chosen
    fresh: int = 20  # sentences of a run that are asked, in no pool
    width: int = 24  # tokens of a question, to which texts are cut
    pool: int = 48  # demonstrations to choose from
    orders: int = 3  # in which each choice stands in prompts
    draws: int = 5  # random subsets, of which the best of 5 is one
    strata: int = 4  # random subsets with the pool's shares of the labels
    validation: int = 16  # other sentences, which choose among the random subsets
    prefix_length: int = 4  # rows of the prefix
    epochs: int = 2  # of the prefix's training, up to the save that is left out
    batch: int = 8  # sentences of the pool in a training step
    prefix_rate: float = 0.01  # learning rate of the prefix
    saves: int = 2  # checkpoints of the prefix, at which gradients are matched
    middle: int = 15  # the layer after which rows are clustered by k-means
    target: str = ""  # a decoder that answers in place of the model, a GGUF file or a folder
    target_name: str = ""  # as captions and statements call it
    runs: int = 9
    seed: int = 63
    # Criteria.
    clear: float = 0.9  # cross-entropy over that of a rival: so much less is a clear gain
    like: float = 0.15  # within this of 1 two cross-entropies are alike
    worse: float = 1.1  # cross-entropy of mismatching over that of random subsets: more
    shares: float = 0.5  # distance of the labels' shares from the pool's, over that at random
    ranks: float = 0.5  # rank correlation of gap and cross-entropy, from which one tells the other

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "pool", 2, None)
        checks.each_between(self, "sizes", 1, self.pool)
        checks.one_of(self, "shots", self.sizes)
        checks.between(self, "width", 4, None)
        for name in ("draws", "strata", "saves", "validation"):
            checks.between(self, name, 2, None)
        for name in ("orders", "prefix_length", "epochs", "batch", "middle"):
            checks.between(self, name, 1, None)
        for name in ("prefix_rate", "clear", "like", "worse", "shares", "ranks"):
            checks.positive(self, name)


_LARGE = dict(
    shots=32,
    width=30,
    sizes=(32, 64),  # 64 and a question of 30 tokens are 2 015 of SmolLM2's 2 048
    strata=5,
    validation=32,
    tasks=named("rotten_tomatoes", "imdb", "reuters"),
)

TIERS = {
    "smoke": Config(
        **(SMOKE | dict(shots=4)),
        sizes=(4,),
        width=7,
        pool=12,
        orders=2,
        draws=2,
        strata=2,
        validation=4,
        batch=4,
        middle=2,
    ),
    "laptop": Config(),
    "paper": Config(**_LARGE, fresh=40, pool=96, epochs=4, saves=4),
    "gpu": Config(**_LARGE, fresh=200, pool=256, epochs=10, saves=10, runs=24),
}
