"""Settings and criteria of `clipping_curves`, fixed before its first run."""

from dataclasses import dataclass

from experiments.clipping import transformer_config as clipped
from lsa_lab.harness import checks


@dataclass(frozen=True)
class Config(clipped.TransformerConfig):
    """The mean risk of trained transformers after one module of one layer is clipped.

    Shots 4 and 10 are A2's. It also has 0, at which attention over demonstrations reads nothing.
    Its rates 0.99 and 0.995 keep as little of a matrix of rank 32 as 0.95: one direction.
    """

    shots: tuple[int, ...] = (4, 10, 40)  # beside the n of training, some of them fewer, some more
    rates: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
    prompts: int = 500  # the same for all runs and edits
    ends: int = 2  # layers that are called shallow, and deep
    high: float = 0.75  # from this rate on clipping is drastic
    seed: int = 0
    # Criteria, on changes of the risk over the risk unclipped unless they say otherwise.
    flat: float = 0.1  # at most this is not much
    gain: float = 0.01  # a fall by at least this is an improvement

    def __post_init__(self):
        super().__post_init__()
        checks.each_between(self, "shots", 1, None)
        few, many = min(self.shots), max(self.shots)
        if list(self.shots) != sorted({*self.shots} - {self.n}) or not few < self.n < many:
            nearest = tuple(sorted({*self.shots, max(1, self.n // 2), 2 * self.n} - {self.n}))
            raise ValueError(
                f"shots = {self.shots!r}: choose increasing numbers, some below n = {self.n} and "
                f"some above; nearest {nearest}"
            )
        checks.each_between(self, "rates", 0.0, 0.999)
        if list(self.rates) != sorted({*self.rates}):
            raise ValueError(
                f"rates = {self.rates!r}: choose increasing rates; nearest "
                f"{tuple(sorted({*self.rates}))}"
            )
        checks.between(self, "prompts", 2, None)
        checks.between(self, "ends", 1, self.depth // 2)
        checks.between(self, "high", min(self.rates), max(self.rates))
        for name in ("flat", "gain"):
            checks.positive(self, name)
        checks.seed(self, "seed")


_A2 = "A2 (2406.03768)"
_SHALLOW, _DEEP = "the first {ends} layers", "the last {ends} layers"
_MOVED = "mean over runs of the change of the risk, relative,"
_HIGH = "averaged over rates >= {high:g}"
# Source, statement, criterion, and the bounds: fields of Config, one with its sign, or numbers. In
# braces: fields of Config, and few and many, the least and the most shots.
CLAIMS = {}
for _part in ("attention", "MLP"):
    CLAIMS |= {
        f"{_part.lower()}_deep_bears_more": (
            f"{_A2}, figure 1",
            f"{_part}: shallow layers tolerate less clipping than deep ones",
            f"mean over runs of log10 of the risk with {_SHALLOW} clipped over that with {_DEEP} "
            f"clipped, one at a time, {_HIGH}, >= 0",
            {"at_least": 0.0},
        ),
        f"{_part.lower()}_deep_is_flat": (
            f"{_A2}, figure 1; its logs: +.003 of accuracy",
            f"{_part}: deep layers can be reduced drastically without much degradation",
            f"{_MOVED} of {_DEEP}, {_HIGH}, <= {{flat:g}}",
            {"at_most": "flat"},
        ),
        f"{_part.lower()}_few_shots_collapse_less": (
            f"{_A2}, figure 2",
            f"{_part}: with fewer shots, clipping shallow layers makes performance fall less",
            "mean over runs of the rise of the risk over d at {few} shots less that at {n}, "
            f"{_SHALLOW}, {_HIGH}, <= 0",
            {"at_most": 0.0},
        ),
    }
for _name, _shots in {"few": "{few}", "trained": "{n}", "many": "{many}"}.items():
    CLAIMS[f"helps_{_name}"] = (
        f"{_A2}, figures 1 and 2",
        f"At {_shots} shots some clipping improves the model",
        f"{_MOVED} by the edit of attention or MLP that is best for the other runs <= -{{gain:g}}",
        {"at_most": "-gain"},
    )
CLAIMS["keys_alone"] = (
    f"{_A2}, B.3",
    "Clipping the key projection of a shallow layer alone changes next to nothing",
    f"{_MOVED} of {_SHALLOW}, {_HIGH}, <= {{flat:g}}",
    {"at_most": "flat"},
)

TIERS = {
    "smoke": Config(**clipped.SMOKE, shots=(2, 8), rates=(0.5, 0.75), prompts=16, ends=1),
    "laptop": Config(),
    "paper": Config(
        **clipped.PAPER,
        shots=(4, 10, 20, 80),
        rates=(0.1, 0.25, 0.5, 0.625, 0.75, 0.875, 0.9, 0.95, 0.99),
        prompts=10_000,
    ),
}

DROPPED = 1.0  # the rate that stands for rank 0
