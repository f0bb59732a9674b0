"""The trained transformers that experiments on clipping share: the fields of their configs."""

from dataclasses import dataclass

from lsa_lab.harness import checks


@dataclass(frozen=True)
class TransformerConfig:
    """Softmax transformers with a norm and an MLP; with the same fields, the same weights.

    As they stand, the fields are those of the named model "transformer" (``experiments.models``),
    whose weights are committed.
    """

    d: int = 8
    n: int = 20
    noise_std: float = 0.5
    depth: int = 4
    heads: int = 4
    width: int = 32  # of the stream
    mlp_width: int = 64  # of the hidden layer
    runs: int = 9
    steps: int = 30_000
    batch: int = 64
    learning_rate: float = 3e-3
    checkpoints: int = 5  # equal parts of the training, after each of which weights are kept
    training_seed: int = 0  # the seed of the weights

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 1, 64)
        checks.between(self, "n", 2, None)
        checks.between(self, "depth", 2, 16)
        checks.between(self, "runs", 2, None)
        checks.divides(self, "heads", "width")
        checks.divides(self, "checkpoints", "steps")
        for name in ("mlp_width", "batch"):
            checks.between(self, name, 1, None)
        for name in ("noise_std", "learning_rate"):
            checks.positive(self, name)
        checks.seed(self, "training_seed")


SMOKE = dict(d=2, n=4, depth=2, heads=2, width=4, mlp_width=4, runs=2)
SMOKE |= dict(steps=10, batch=8, checkpoints=2)
PAPER = dict(runs=36, training_seed=1)  # the "transformer" of that tier, other seeds
GPU = dict(d=10, n=40, depth=6, heads=4, width=64, mlp_width=256, steps=50_000, batch=256)

PARTS = {"attention": "attention", "MLP": "mlp"}  # of a block, which A2 clips whole
OWN_PROMPTS = "each run has its own prompts; they were shared"


def fresh(config) -> str:
    """The runs that judge every row since the look that all experiments on these models have had.

    Those of the paper tier are none of the laptop's.
    """
    runs = f"{config.runs} runs at 1.1 times the risk of least squares, noise 0.5"
    return f"{runs}; 12 at 12 times, noise 0.1, before"
