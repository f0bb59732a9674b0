"""The sizes of `layer_probes`, and what its readers and descents are on."""

from dataclasses import dataclass

from experiments.heads.rule_names import RIDGE, SPARSE_BAYES
from experiments.models.named import Named, choose_pairs

RULES = (RIDGE, SPARSE_BAYES)  # whose risks are beside those of readers
FEATURES = OF_FULL, OF_SINGLE, RAW, FORMULA = (  # that descent is on
    "layer 1, full",
    "layer 1, single head",
    "raw covariates",
    "r_j x_j",
)
OF_TOKENS = 2  # the first of these are tokens, made white
PER_WIDTH = 20  # prompts for each coordinate of a token, at least, as analyses.probes asks

_PANELS, _DISSECTED = ("little noise", "depth 3", "much noise", "depth 5"), ("depth 3", "depth 5")
_MODELS = choose_pairs(_PANELS)


@dataclass(frozen=True)
class Config:
    """Linear readers of the query's token after each layer, and descent on layer 1's tokens.

    A reader sees c h, the token in the units of the labels (``prompts.normalise``), and is fitted
    and judged by squared errors in these units. On a rare prompt a stack explodes, and least
    squares would fit that prompt alone: the prompts whose tokens are longest after the last layer
    are left out of the fit. They are not left out of the judgement, where predictions are cut.
    """

    models: Named = _MODELS  # trained models, by name
    panels: tuple[str, ...] = _PANELS  # models that are judged and have a panel
    dissected: tuple[str, ...] = _DISSECTED  # whose first layer is looked at
    n: int = 16
    prompts: int = 1536  # to learn from, and as many others to judge on, for each run
    # Of the prompts to learn from; for R², of those to judge on too.
    left_out: float = 0.02
    # Prompts to descend on: half to choose the step, half to judge it.
    descents: int = 1024
    steps: int = 256  # of descent, at most
    # Of the largest step size that converges, in each prompt.
    share: float = 0.5
    seed: int = 0

    @property
    def learned(self) -> int:
        """The prompts that are not left out."""
        return self.prompts - int(self.left_out * self.prompts)


TIERS = {
    "smoke": Config(
        models=choose_pairs(("depth 3",), small=True),
        panels=("depth 3",),
        dissected=("depth 3",),
        n=8,
        prompts=192,
        descents=16,
        steps=4,
    ),
    "laptop": Config(),
}
