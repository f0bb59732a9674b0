"""The sizes of `lm_clipping`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.language.language_config import SMOKE, LanguageConfig
from experiments.language.text_tasks import TextTask, named
from lsa_lab.harness.run.bounds import INCREASING, Seed, at_least, between

NEEDS = ("smollm2", "movie-reviews", "reuters")

PARTS = {"attention": "attention", "MLP": "mlp"}  # of a block, which A2 clips whole
MATRICES = ("w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_gate", "mlp_out")
READINGS = ("accuracy", "auc", "entropy")  # the last after the best constant shift
DROPPED = 1.0  # the rate that stands for rank 0

Several = Annotated[tuple[int, ...], at_least(0), INCREASING]
Rate = between(0.0, 0.999)


@dataclass(frozen=True)
class Config(LanguageConfig):
    """Readings of label scores after one part of one layer of a decoder is clipped or dropped.

    The first and the last of the layers are its ends: there single matrices are clipped too, and
    the parts at other numbers of demonstrations. The layers are A2's second and last but one, and
    some between them.
    """

    tasks: tuple[tuple[str, TextTask], ...] = named(  # texts in classes, and how they are put
        "rotten_tomatoes", "reuters"
    )
    layers: Several = (1, 5, 10, 15, 20, 25, 28)  # that are clipped, counted from 0
    # Rates of clipping; every part is dropped too.
    rates: Annotated[tuple[float, ...], Rate, INCREASING] = (0.5, 0.9, 0.99)
    matrix_rate: Annotated[float, Rate] = 0.9  # of single matrices
    other_shots: Several = (0, 10)  # demonstrations, fewer and more; A2's too
    fresh: Annotated[int, at_least(2)] = 100  # sentences of a run, in none of its demonstrations
    seed: Seed = 17

    def __post_init__(self):
        super().__post_init__()
        if not min(self.other_shots) < self.shots < max(self.other_shots):
            raise ValueError(
                f"other_shots = {self.other_shots!r}: choose some fewer than shots = {self.shots} "
                f"and some more; nearest {(0, 2 * self.shots)}"
            )


TIERS = {
    "smoke": Config(**SMOKE | dict(shots=2), layers=(0, 2), rates=(0.5, 0.75), other_shots=(0, 4)),
    "laptop": Config(
        tasks=named("rotten_tomatoes"), layers=(1, 14, 28), rates=(0.9, 0.99), fresh=24, runs=9
    ),
    # As many sets as a laptop's rows said would decide them, and more; on a GPU, minutes.
    "paper": Config(layers=(1, 14, 28), rates=(0.9, 0.99), fresh=24, runs=64, seed=117),
}
