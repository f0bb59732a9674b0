"""The sizes and the statements of `order`, fixed before its first run."""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

KINDS = ("linear", "softmax", "descent")  # random, random, and constructed linear attention
MASKS = {"non-causal": "demonstrations", "causal": "causal"}


@dataclass(frozen=True)
class Config:
    """Predictions of random and constructed stacks for demonstrations in many orders."""

    d: int = 4
    n: int = 16
    noise_std: float = 0.5
    depth: int = 4
    heads: int = 2
    key_width: int = 4
    scale: float = 1.0  # of random weights, times 1 / √inputs
    runs: int = 16
    prompts: int = 16  # for each run
    orders: int = 16  # of each prompt, and as many other draws of its demonstrations
    seed: int = 0
    # Criteria, on the largest change of a prediction over the size of predictions.
    exact: float = 1e-10  # at most this is no effect
    clear: float = 1e-6  # at least this is one

    def __post_init__(self):
        checks.between(self, "d", 1, 64)
        checks.between(self, "n", 2, None)
        checks.between(self, "depth", 2, 8)
        checks.between(self, "heads", 1, None)
        checks.between(self, "key_width", 1, None)
        for name in ("runs", "prompts", "orders"):
            checks.between(self, name, 2, None)
        for name in ("noise_std", "scale", "exact", "clear"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(d=2, n=4, depth=2, heads=1, key_width=2, runs=2, prompts=2, orders=2),
    "laptop": Config(),
    "paper": Config(d=8, n=64, depth=6, heads=4, key_width=8, runs=64, prompts=64, orders=64),
}


def statements(config) -> tuple[Statement, ...]:
    change = "the largest change, relative, at the"
    return (
        Statement(
            "free",
            "derived here; A3's open question on order",
            "Where all tokens read all demonstrations, their order has no effect at any depth",
            f"{change} worst depth and kernel",
            at_most=config.exact,
        ),
        Statement(
            "one_causal_layer",
            "derived here",
            "One causal layer does not see the order: its query reads all demonstrations",
            f"{change} worst kernel",
            at_most=config.exact,
        ),
        Statement(
            "two_causal_layers",
            "derived here",
            "Two causal layers see the order, linear or softmax, random or constructed",
            f"{change} kernel with the least",
            at_least=config.clear,
        ),
        Statement(
            "batches_of_one",
            "A2 (2406.03768), Remark 1",
            "The order matters as in descent with batches of one, in the paper's own masked model",
            f"{change} depth and kernel with the most",
            at_least=config.clear,
        ),
    )
