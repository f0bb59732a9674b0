"""The sizes and the statements of `amplification`."""

from dataclasses import dataclass

from experiments.flow.amplification.statements import statements as statements
from experiments.models.named import MODELS, Named
from lsa_lab.harness import checks

KINDS = ("linear", "softmax", "norm", "MLP")  # "norm" has softmax, "MLP" a norm and softmax
TRAINED = {  # kind: the shared model, of those that are near ridge regression
    "linear": "linear attention",
    "softmax": "softmax attention",
    "MLP": "transformer",
}


@dataclass(frozen=True)
class Config:
    """The flows of two demonstrations, layer by layer, in random, constructed and trained stacks.

    The gain of a random stack is the size of what a layer writes, over that of a token: matrices
    grow like √gain, and so do the inputs of a softmax, whose scores then grow like the gain.
    """

    models: Named  # trained stacks, by kind
    kinds: tuple[str, ...] = KINDS  # some of them, in this order, the first among them
    d: int = 5
    widths: tuple[int, ...] = (2, 10)  # other values of d
    depth: int = 6
    gains: tuple[float, ...] = (0.1, 1.0, 3.0)  # of random stacks
    gain: float = 1.0  # one of them: of stacks that differ in something else
    feedback: float = 0.3  # the gain of w_kq = cI and w_pv = ± cI
    skips: tuple[float, ...] = (0.5, 0.1)  # the weight of the residual connection, otherwise 1
    mlp_width: int = 24  # of the hidden layer
    runs: int = 32  # each with its own weights
    pairs: int = 64  # of demonstrations, for each run
    many_pairs: int = 256  # where the weights are the same in every run, or nearly
    # Trained stacks.
    trained_runs: int = 9  # trainings of each kind
    trained_pairs: int = 128  # two of the demonstrations of as many prompts, for each run
    seed: int = 1
    # Criteria.
    clear: float = 0.1  # a median log ratio that rises by this is amplification
    factor: float = 1.1  # a disparity that grows by this is amplification
    generic: float = 0.95  # share of the pairs for which a generic theorem has to be true
    predicts: float = 0.8  # share of the pairs for which a rule of thumb has to be right
    trained: float = 1.5  # excess risk of a trained stack over that of the Bayes rule, at most

    def __post_init__(self):
        checks.kinds(self)
        best = tuple(kind for kind in KINDS if kind in self.kinds or kind == "linear")
        if tuple(self.kinds) != best:
            raise ValueError(f"kinds = {self.kinds!r}: choose some of {KINDS}; nearest {best}")
        checks.between(self, "d", 1, 64)
        checks.each_between(self, "widths", 1, 64)
        checks.between(self, "depth", 2, 8)
        checks.each_positive(self, "gains")
        checks.one_of(self, "gain", self.gains)
        if list(self.gains) != sorted(set(self.gains)):
            raise ValueError(
                f"gains = {self.gains!r}: choose increasing ones; nearest "
                f"{tuple(sorted(set(self.gains)))}"
            )
        checks.each_positive(self, "skips")
        checks.between(self, "mlp_width", 1, None)
        for name in ("runs", "pairs", "many_pairs", "trained_pairs"):
            checks.between(self, name, 2, None)
        checks.between(self, "trained_runs", 2, min(m.training.seeds for _, m in self.models))
        for name in ("feedback", "clear", "trained"):
            checks.positive(self, name)
        checks.between(self, "factor", 1.0, None)
        for name in ("generic", "predicts"):
            checks.between(self, name, 0, 1)
        checks.seed(self, "seed")


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
    "gpu": Config(
        _models("gpu", *TRAINED),
        widths=(2, 8, 32),
        depth=8,
        gains=(0.03, 0.1, 0.3, 1.0, 3.0),
        runs=64,
        pairs=1024,
        many_pairs=8192,
        trained_pairs=2048,
    ),
}
