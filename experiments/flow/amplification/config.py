"""The sizes and the statements of `amplification`."""

from dataclasses import dataclass

from experiments.flow.amplification.statements import statements as statements
from lsa_lab.harness import checks

KINDS = ("linear", "softmax", "norm", "MLP")  # "norm" has softmax, "MLP" a norm and softmax


@dataclass(frozen=True)
class Config:
    """The flows of two demonstrations, layer by layer, in random, constructed and trained stacks.

    The gain of a random stack is the size of what a layer writes, over that of a token: matrices
    grow like √gain, and so do the inputs of a softmax, whose scores then grow like the gain.
    """

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
    trained_kinds: tuple[str, ...] = ("linear", "softmax", "MLP")  # among kinds
    shots: int = 10  # demonstrations in a prompt of the training
    trained_depth: int = 4  # layers
    heads: int = 2  # of "softmax"
    width: int = 12  # of the stream after a read-in, which "norm" and "MLP" have
    linear_steps: int = 800  # training steps of linear stacks
    linear_batch: int = 64  # prompts in each of these steps
    softmax_steps: int = 600  # training steps of softmax stacks
    softmax_batch: int = 32  # prompts in each of these steps
    learning_rate: float = 0.02
    norm_steps: int = 400  # of "norm" and "MLP"
    norm_learning_rate: float = 0.01  # of "norm" and "MLP"
    trained_runs: int = 16  # trainings of each kind
    trained_pairs: int = 128  # two of the demonstrations of as many prompts, for each run
    seed: int = 1
    # Criteria.
    clear: float = 0.1  # a median log ratio that rises by this is amplification
    factor: float = 1.1  # a disparity that grows by this is amplification
    generic: float = 0.95  # share of the pairs for which a generic theorem has to be true
    predicts: float = 0.8  # share of the pairs for which a rule of thumb has to be right

    def __post_init__(self):
        best = tuple(kind for kind in KINDS if kind in self.kinds or kind == "linear")
        if tuple(self.kinds) != best:
            raise ValueError(f"kinds = {self.kinds!r}: choose some of {KINDS}; nearest {best}")
        trained = tuple(kind for kind in best if kind in self.trained_kinds or kind == "linear")
        if tuple(self.trained_kinds) != trained:
            raise ValueError(
                f"trained_kinds = {self.trained_kinds!r}: choose some of {best}; nearest {trained}"
            )
        checks.between(self, "d", 1, 64)
        checks.each_between(self, "widths", 1, 64)
        for name in ("depth", "trained_depth"):
            checks.between(self, name, 2, 8)
        checks.each_positive(self, "gains")
        checks.one_of(self, "gain", self.gains)
        if list(self.gains) != sorted(set(self.gains)):
            raise ValueError(
                f"gains = {self.gains!r}: choose increasing ones; nearest "
                f"{tuple(sorted(set(self.gains)))}"
            )
        checks.each_positive(self, "skips")
        for name in ("mlp_width", "linear_batch", "softmax_batch", "heads"):
            checks.between(self, name, 1, None)
        for name in ("linear_steps", "softmax_steps", "norm_steps"):
            checks.between(self, name, 1, None)
        for name in ("runs", "pairs", "many_pairs", "trained_runs", "trained_pairs", "shots"):
            checks.between(self, name, 2, None)
        checks.between(self, "width", 2, None)
        for name in ("feedback", "learning_rate", "norm_learning_rate", "clear"):
            checks.positive(self, name)
        checks.between(self, "factor", 1.0, None)
        for name in ("generic", "predicts"):
            checks.between(self, name, 0, 1)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        kinds=("linear", "norm"),
        trained_kinds=("linear",),
        d=2,
        widths=(2,),
        depth=2,
        gains=(0.1, 1.0),
        skips=(0.5,),
        mlp_width=4,
        runs=2,
        pairs=8,
        many_pairs=8,
        shots=3,
        trained_depth=2,
        width=4,
        linear_steps=4,
        linear_batch=4,
        softmax_steps=4,
        norm_steps=4,
        softmax_batch=4,
        trained_runs=2,
        trained_pairs=8,
    ),
    "laptop": Config(),
    "gpu": Config(
        trained_kinds=KINDS,
        widths=(2, 8, 32),
        depth=8,
        gains=(0.03, 0.1, 0.3, 1.0, 3.0),
        runs=64,
        pairs=1024,
        many_pairs=8192,
        shots=20,
        linear_steps=20_000,
        linear_batch=256,
        softmax_steps=50_000,
        norm_steps=50_000,
        softmax_batch=256,
        learning_rate=0.003,
        norm_learning_rate=0.001,
        width=64,
        heads=4,
        trained_depth=6,
        trained_runs=16,
        trained_pairs=2048,
    ),
}
