"""The sizes and the rules of `lm_gradient_matching`."""

from dataclasses import dataclass

from experiments.language.language_config import SMOKE, LanguageConfig, TextTask, text_tasks

# A subset by each of these rules, and several by each of DRAWN; the best of 5 is among the random.
RULES = ("matching", "matching, whitened", "mismatching", "k-means")
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

    tasks: tuple[tuple[str, TextTask], ...] = text_tasks("rotten_tomatoes")  # texts in classes
    shots: int = 16  # of the sizes below the one that is judged
    sizes: tuple[int, ...] = (16,)  # of chosen subsets
    fresh: int = 20  # sentences of a run that are asked, in no pool
    width: int = 24  # tokens of a question, to which texts are cut
    pool: int = 48  # demonstrations to choose from
    orders: int = 3  # in which each choice stands in prompts
    draws: int = 5  # random subsets, of which the best of 5 is one
    strata: int = 4  # random subsets with the pool's shares of labels
    validation: int = 16  # other sentences, to choose a random subset by
    prefix_length: int = 4  # rows of the prefix
    epochs: int = 2  # of its training, up to the save that is left out
    batch: int = 8  # sentences of the pool in a training step
    prefix_rate: float = 0.01  # learning rate of the prefix
    saves: int = 2  # checkpoints, at which gradients are matched
    middle: int = 15  # the layer after which rows are clustered by k-means
    runs: int = 9
    seed: int = 63


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
    "paper": Config(
        tasks=text_tasks("rotten_tomatoes", "imdb", "reuters"),
        shots=32,
        width=30,
        sizes=(32, 64),  # 64 and a question of 30 tokens are 2 015 of SmolLM2's 2 048
        strata=5,
        validation=32,
        fresh=40,
        pool=96,
        epochs=4,
        saves=4,
    ),
}
