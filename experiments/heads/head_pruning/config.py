"""The sizes and the statements of `head_pruning`, fixed before its first run on trained models.

After it only the numbers of prompts were lowered, for time.
"""

import math
from dataclasses import dataclass

from experiments.heads.head_pruning.statements import statements as statements
from experiments.heads.rule_names import RIDGE, SPARSE_BAYES
from experiments.models.named import Named, named
from lsa_lab.harness import checks

RULES = (RIDGE, SPARSE_BAYES)  # that the deep models are compared with

_DEEP = ("depth 3", "depth 5")
_BESIDE = ("narrow keys", "softmax", "long training", "two of four")
_BESIDE += ("little noise", "much noise", "dense")
_MODELS = named("laptop", (*_DEEP, *_BESIDE))


@dataclass(frozen=True)
class Config:
    """Trained models with heads taken away, judged on prompts of their own in every run.

    A run is a seed of a model's last, full variant. Heads are chosen on other prompts than those on
    which the choice is judged.
    """

    models: Named = _MODELS
    retrain: bool = False
    deep: tuple[str, ...] = _DEEP  # followed over n, and taken apart
    n: int = 16
    lengths: tuple[int, ...] = (8, 12, 16, 24, 32, 64)
    prompts: int = 512  # to measure importance on, and as many others to judge on, for each run
    search: int = 192  # prompts for the search through subsets, and for greedy pruning
    most_choices: int = 512  # of one head for each later layer: all are tried, if not more
    draws: int = 4  # of each random control
    seed: int = 0
    # Criteria, on geometric means over runs, at n.
    unchanged: float = 1.1  # at most this ratio of risks is none to speak of
    worse: float = 1.0  # a control's risk over the pruned model's: more
    all_first: float = 0.75  # of layer 1's heads, at least, that greedy pruning keeps
    one_later: float = 1.5  # heads of a later layer, at most, that it keeps

    def __post_init__(self):
        checks.one_of(self, "n", self.lengths)
        checks.each_between(self, "lengths", 1, None)
        for name in ("prompts", "search", "draws", "most_choices"):
            checks.between(self, name, 1, None)
        for name in ("unchanged", "worse", "all_first", "one_later"):
            checks.positive(self, name)
        checks.seed(self, "seed")
        names = tuple(name for name, _ in self.models)
        if not self.deep or self.deep != names[: len(self.deep)]:
            raise ValueError(f"deep = {self.deep!r}: choose the first of the models, {names}")

    @property
    def longest(self) -> int:
        """Every prompt is repeated up to it, which no model can tell: one program serves all n."""
        return math.lcm(*self.lengths)


_DEPTHS = ("depth 3", "depth 4", "depth 5", "depth 6")
TIERS = {
    "smoke": Config(
        models=named("smoke", ("depth 3",)),
        n=8,
        lengths=(4, 8),
        prompts=32,
        search=32,
        draws=2,
        deep=("depth 3",),
    ),
    "laptop": Config(),
    "paper": Config(
        models=named("paper", (*_DEPTHS, "softmax", "dense")),
        deep=_DEPTHS,
        n=32,
        lengths=(16, 24, 32, 48, 64, 128),
        prompts=1024,
        search=128,
        draws=8,
    ),
}
