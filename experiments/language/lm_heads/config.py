"""The sizes of `lm_heads`."""

from dataclasses import dataclass

from experiments.language.language_config import SMOKE, LanguageConfig, TextTask, text_tasks

# Whole models under masks: A4's pruning, its control, as many heads of each layer by slope and not.
PRUNED, FIRST, TOP, RANDOM = "later heads pruned", "first layer pruned", "top heads", "random heads"
MASKS = (PRUNED, FIRST, TOP, RANDOM)


@dataclass(frozen=True)
class Config(LanguageConfig):
    """Heads of a decoder closed one by one in some layers, a part of all heads, and common maps.

    Texts are cut so that every question has as many tokens. Heads are chosen on sentences on which
    nothing is judged.
    """

    tasks: tuple[tuple[str, TextTask], ...] = text_tasks("rotten_tomatoes")  # texts in classes
    shots: int = 4  # demonstrations before every sentence
    fresh: int = 10  # sentences on which closed heads are judged
    searched: int = 6  # other sentences, on which heads are chosen
    masked_fresh: int = 40  # others, on which a part of all heads is
    width: int = 24  # tokens of a question, to which texts are cut
    layers: tuple[int, ...] = (0, 14, 28)  # with heads closed one by one
    kept: int = 6  # heads that each layer keeps where a part is closed
    draws: int = 2  # random parts
    map_shots: int = 32  # of the prompt whose tokens are to share a map
    rises_judged: bool = False  # whether there are sentences enough to judge rises of the loss
    seed: int = 65


TIERS = {
    "smoke": Config(
        **(SMOKE | dict(fresh=4)),
        searched=4,
        masked_fresh=8,
        width=7,
        layers=(0, 3),
        kept=2,
        map_shots=8,
    ),
    "laptop": Config(),
    # As many sets as a laptop's rows said would decide them, and more; on a GPU, minutes.
    "paper": Config(
        shots=8,
        fresh=24,
        searched=8,
        masked_fresh=80,
        layers=(0, 7, 14, 21, 28),
        draws=4,
        map_shots=64,
        rises_judged=True,
        runs=36,
        seed=165,
    ),
}
