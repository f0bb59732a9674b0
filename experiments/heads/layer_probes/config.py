"""Settings, criteria and texts of `layer_probes`, fixed before its first run on trained models.

After it the number of prompts was lowered, for time, and the control of R² was restricted to
architectures of which every training has finished.
"""

from dataclasses import dataclass

from experiments.models.named import Named, named
from lsa_lab.harness import checks

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

    models: Named = _MODELS
    retrain: bool = False
    panels: tuple[str, ...] = _PANELS
    dissected: tuple[str, ...] = _DISSECTED  # whose first layer is looked at
    n: int = 16
    prompts: int = 1536  # to learn from, and as many others to judge on, for each run
    left_out: float = 0.02  # of the prompts to learn from; for R², of those to judge on too
    descents: int = 1024  # prompts to descend on: half to choose the step, half to judge it
    steps: int = 256
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

    def __post_init__(self):
        for name in ("n", "descents", "steps"):
            checks.between(self, name, 2, None)
        checks.between(self, "left_out", 0.0, 0.5)
        checks.between(self, "share", 0.0, 0.99)
        for name in ("share", "readable", "unchanged", "worse", "faster", "held", "more"):
            checks.positive(self, name)
        checks.positive(self, "nothing")
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


_A4 = "modelled on Chen et al. 2408.04532"
_HERE = "derived here"
_READER = "geometric mean over seeds of the risk of the best linear reader"
_DESCENT = "geometric mean over seeds of the risk of descent on layer 1's tokens at its best step"
_WORST = "at the worst family,"
_R2 = "mean over seeds of R² of r_j x_j, read linearly from the query's token after layer 1"

CLAIMS = {  # name: source, statement, what is measured, {side: criterion}
    "steady": (
        _A4,
        "Every layer of the full model makes the answer more readable",
        f"{_READER} after a layer over that before it, at the worst layer of any family,",
        {"at_most": "readable"},
    ),
    "not_yet": (
        _A4,
        "The first layer prepares and does not answer: after it ridge is better",
        f"{_READER} after layer 1 of the full model over that of ridge, at the family where it is "
        "least,",
        {"at_least": "readable"},
    ),
    "at_last": (
        _A4,
        "After the last layer the answer is more readable than ridge knows it, at any noise",
        f"{_READER} after the last layer of the full model over that of ridge, {_WORST}",
        {"at_most": "readable"},
    ),
    "pruned": (
        _A4,
        "Without all but one head of each later layer the answer is still there to be read",
        f"{_READER} after the last layer of the pruned model over that of the full one, {_WORST}",
        {"at_most": "unchanged"},
    ),
    "single": (
        _A4,
        "In a model with a single head in every layer the answer is less readable",
        f"{_READER} after its last layer over that of the full model, at the family where it is "
        "least,",
        {"at_least": "worse"},
    ),
    "descent_raw": (
        _A4,
        "Descent on the full model's first-layer tokens learns more than on raw covariates",
        f"{_DESCENT} over that on raw covariates, {_WORST}",
        {"at_most": "faster"},
    ),
    "descent_single": (
        _A4,
        "Descent on the full model's first-layer tokens learns more than on the single-head one's",
        f"{_DESCENT} over that on the single-head model's, {_WORST}",
        {"at_most": "faster"},
    ),
    "descent_formula": (
        _A4,
        "Descent on the full model's first-layer tokens does as well as on r_j x_j themselves",
        f"{_DESCENT} over that on r_j x_j, {_WORST}",
        {"at_most": "unchanged"},
    ),
    "descent_control": (
        _HERE,
        "Control: where layer 1 has read shuffled labels, nothing is gained over raw covariates",
        f"{_DESCENT} over that on raw covariates, layer 1 having read shuffled labels, at the "
        "family where it is least,",
        {"at_least": "readable"},
    ),
    "held": (
        _A4,
        "The full model's first layer holds the preprocessed covariates",
        f"{_R2}, {_WORST}",
        {"at_least": "held"},
    ),
    "held_by_more": (
        _A4,
        "The full model's first layer holds more of them than the single-head one's",
        f"{_R2}, full minus single head, {_WORST}",
        {"at_least": "more"},
    ),
    "control": (
        _HERE,
        "Control: of other prompts' preprocessed covariates the first layer holds nothing",
        "mean over seeds of R² of r_j x_j of other prompts, at the family and architecture where "
        "it is most,",
        {"at_most": "nothing"},
    ),
}

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
    "paper": Config(
        models=named("paper", _DEPTHS),
        panels=_DEPTHS,
        dissected=("depth 3", "depth 5"),
        n=32,
        prompts=8192,
        descents=2048,
        steps=1024,
    ),
}
