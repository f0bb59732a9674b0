"""The sizes and the statements of `layer_probes`, fixed before its first run on trained models.

After it the number of prompts was lowered, for time, and the control of R² was restricted to
variants of which every training has finished. Then it was seen that pruning depends on how heads
are mixed, and descent on tokens on the basis of the stream: the first went, the second is on white
tokens.
"""

from dataclasses import dataclass

from experiments.heads.layer_probes.statements import statements as statements
from experiments.heads.rule_names import RIDGE, SPARSE_BAYES
from experiments.models.named import Named, more_seeds, named
from lsa_lab.harness import checks

RULES = (RIDGE, SPARSE_BAYES)  # whose risks are beside those of readers
FEATURES = OF_FULL, OF_SINGLE, SHUFFLED, RAW, FORMULA = (  # that descent is on
    "layer 1, full",
    "layer 1, single head",
    "layer 1 with shuffled labels",
    "raw covariates",
    "r_j x_j",
)
OF_TOKENS = 3  # the first of these are tokens, made white
PER_WIDTH = 20  # prompts for each coordinate of a token, at least, as analyses.probes asks

_PANELS, _DISSECTED = ("little noise", "depth 3", "much noise", "depth 5"), ("depth 3", "depth 5")
_MODELS = named("laptop", _PANELS)


@dataclass(frozen=True)
class Config:
    """Linear readers of the query's token after each layer, and descent on layer 1's tokens.

    A reader sees c h, the token in the units of the labels (``prompts.normalised``), and is fitted
    and judged by squared errors in these units. On a rare prompt a stack explodes, and least
    squares would fit that prompt alone: the prompts whose tokens are longest after the last layer
    are left out of the fit. They are not left out of the judgement, where predictions are cut.
    """

    models: Named = _MODELS  # trained models, by name
    retrain: bool = False  # train again instead of reading committed weights
    panels: tuple[str, ...] = _PANELS  # models that are judged and have a panel
    dissected: tuple[str, ...] = _DISSECTED  # whose first layer is looked at
    n: int = 16
    prompts: int = 1536  # to learn from, and as many others to judge on, for each run
    left_out: float = 0.02  # of the prompts to learn from; for R², of those to judge on too
    descents: int = 1024  # prompts to descend on: half to choose the step, half to judge it
    steps: int = 256  # of descent, at most
    share: float = 0.5  # of the largest step size that converges, in each prompt
    seed: int = 0
    # Criteria: ratios of risks, geometric means over runs, and R², means over runs.
    readable: float = 1.0  # risk after a layer over that before it, and over that of ridge
    unchanged: float = 1.1  # at most this ratio is none to speak of
    worse: float = 1.1  # risk of the single-head model's reader over the full model's: more
    faster: float = 0.9  # risk of descent on the full model's layer 1 over that on others: less
    held: float = 0.75  # R² of r_j x_j, at least, where the first layer has preprocessed
    more: float = 0.25  # R² of the full model minus that of the single-head one, at least
    nothing: float = 0.05  # R² of a control task, at most
    no_help: float = 0.95  # risk of descent on features without information over raw ones: more

    def __post_init__(self):
        checks.kinds(self)
        for name in ("n", "descents", "steps"):
            checks.between(self, name, 2, None)
        checks.between(self, "left_out", 0.0, 0.5)
        checks.between(self, "share", 0.0, 0.99)
        for name in ("share", "readable", "unchanged", "worse", "faster", "held", "more"):
            checks.positive(self, name)
        for name in ("nothing", "no_help"):
            checks.positive(self, name)
        checks.seed(self, "seed")
        models = dict(self.models)
        for name in ("panels", "dissected"):
            chosen = getattr(self, name)
            if not chosen or {*chosen} - {*models}:
                raise ValueError(f"{name} = {chosen!r}: choose from {list(models)}")
        width = max(spec.token_width for spec in models.values())
        least = PER_WIDTH * width
        if self.learned < least:
            needed = int(least / (1 - self.left_out)) + 1
            raise ValueError(
                f"prompts = {self.prompts}: {self.learned} are left for a probe of tokens of width "
                f"{width}, which needs {PER_WIDTH} for each coordinate; nearest {needed}"
            )

    @property
    def learned(self) -> int:
        """The prompts that are not left out."""
        return self.prompts - int(self.left_out * self.prompts)


_DEPTHS = ("depth 3", "depth 4", "depth 5", "depth 6")
TIERS = {
    "smoke": Config(
        models=named("smoke", ("depth 3",)),
        panels=("depth 3",),
        dissected=("depth 3",),
        n=8,
        prompts=128,
        descents=16,
        steps=4,
    ),
    "laptop": Config(),
    "paper": Config(models=more_seeds(_MODELS)),
    "gpu": Config(
        models=named("gpu", _DEPTHS),
        panels=_DEPTHS,
        dissected=("depth 3", "depth 5"),
        n=32,
        prompts=8192,
        descents=2048,
        steps=1024,
    ),
}
