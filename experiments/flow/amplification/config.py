"""The sizes of `amplification`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.models.named import MODELS, Named
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import INCREASING, POSITIVE, Bounded, Seed, at_least, between

KINDS = ("linear", "softmax", "norm", "MLP")  # "norm" has softmax, "MLP" a norm and softmax
TRAINED = {  # kind: the shared model, of those that are near ridge regression
    "linear": "linear attention",
    "softmax": "softmax attention",
    "MLP": "transformer",
}


Several = Annotated[int, at_least(2)]


@dataclass(frozen=True)
class Config(Bounded):
    """The flows of two demonstrations, layer by layer, in random, constructed and trained stacks.

    The gain of a random stack is the size of what a layer writes, over that of a token: matrices
    grow like √gain, and so do the inputs of a softmax, whose scores then grow like the gain.
    """

    models: Named  # trained stacks, by kind
    kinds: tuple[str, ...] = KINDS  # some of them, in this order, the first among them
    d: Annotated[int, between(1, 64)] = 5
    widths: Annotated[tuple[int, ...], between(1, 64)] = (2, 10)  # other values of d
    depth: Annotated[int, between(2, 8)] = 6
    gains: Annotated[tuple[float, ...], POSITIVE, INCREASING] = (0.1, 1.0, 3.0)  # of random stacks
    gain: float = 1.0  # one of them: of stacks that differ in something else
    feedback: Annotated[float, POSITIVE] = 0.3  # the gain of w_kq = cI and w_pv = ± cI
    # The weights of the residual connection, otherwise 1.
    skips: Annotated[tuple[float, ...], POSITIVE] = (0.5, 0.1)
    mlp_width: Annotated[int, at_least(1)] = 24  # of the hidden layer
    runs: Several = 32  # each with its own weights
    pairs: Several = 64  # of demonstrations, for each run
    many_pairs: Several = 256  # where the weights are the same in every run, or nearly
    # Trained stacks.
    trained_runs: Several = 9  # trainings of each kind
    trained_pairs: Several = 128  # two of the demonstrations of as many prompts, for each run
    seed: Seed = 1

    def __post_init__(self):
        super().__post_init__()
        best = tuple(kind for kind in KINDS if kind in self.kinds or kind == "linear")
        if tuple(self.kinds) != best:
            raise ValueError(f"kinds = {self.kinds!r}: choose some of {KINDS}; nearest {best}")
        checks.one_of(self, "gain", self.gains)
        checks.between(self, "trained_runs", 2, min(m.training.seeds for _, m in self.models))


def _models(tier: str, *kinds: str) -> Named:
    return tuple((kind, MODELS[tier][TRAINED[kind]]) for kind in kinds)


TIERS = {
    "smoke": Config(
        _models("smoke", "linear"),
        kinds=("linear", "norm"),
        d=2,
        widths=(2,),
        depth=2,
        gains=(0.1, 1.0),
        skips=(0.5,),
        mlp_width=4,
        runs=2,
        pairs=8,
        many_pairs=8,
        trained_runs=2,
        trained_pairs=8,
    ),
    "laptop": Config(_models("laptop", "linear", "softmax", "MLP")),
    "paper": Config(
        _models("paper", "linear", "softmax", "MLP"),
        runs=256,
        pairs=128,
        many_pairs=1024,
        trained_runs=36,
        seed=2,
    ),
}
