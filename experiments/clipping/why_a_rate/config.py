"""Settings and criteria of `why_a_rate`, fixed before its first run."""

from dataclasses import dataclass

from experiments.clipping.transformer_config import PAPER, SMOKE, TransformerConfig
from lsa_lab.harness import checks

CONDITIONS = ("matched", "under-trained", "noisy", "shifted")
PREDICTORS = ("gap", "stable rank", "participation", "energy")


@dataclass(frozen=True)
class Config(TransformerConfig):
    """Clipped models that are trained or not, on prompts like those of training or not."""

    early: int = 1  # the look at which a model counts as under-trained
    noise: float = 0.5  # of the labels of noisy prompts
    shift: float = 1.5  # shifted prompts: covariates longer by this factor
    prompts: int = 160  # of each run and condition to choose with, and as many to judge all edits
    more_prompts: int = 640  # to judge the edit that was chosen
    # A2's rates, and of its rivals fewer.
    rates: tuple[float, ...] = (0.0, 0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995)
    rival_rates: tuple[float, ...] = (0.5, 0.9)
    energy: float = 0.99  # share of Σs² that the rule "energy" keeps
    seed: int = 0
    # Criteria. Gains are shares of the risk of the unclipped model.
    worthwhile: float = 0.01  # gain that counts as one
    varies: float = 0.1  # share of matrices whose best rank differs, beyond that by chance
    harmless: float = 0.05  # share of the risk by which dropping a layer may change it
    rank_correlation: float = 0.5  # of the predicted and the best rank, over the matrices
    regret: float = 0.01  # of the predicted rank beside the searched one

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "mlp_width", self.width)  # all matrices have one full rank
        checks.between(self, "early", 1, self.looks - 1)
        for name in ("prompts", "more_prompts"):
            checks.between(self, name, 2, None)
        for name in ("noise", "shift", "worthwhile", "varies", "harmless", "regret"):
            checks.positive(self, name)
        for name in ("energy", "rank_correlation"):
            checks.between(self, name, 0, 1)
        for name in ("rates", "rival_rates"):
            checks.each_between(self, name, 0, 0.999)
        checks.seed(self, "seed")
        if self.rates[0] != 0 or list(self.rates) != sorted(set(self.rates)):
            raise ValueError(f"rates = {self.rates!r}: they grow from 0, the unclipped model")
        strange = [rate for rate in self.rival_rates if rate not in self.rates]
        if strange:
            raise ValueError(f"rival_rates = {self.rival_rates!r}: {strange} are not among rates")


_A2, _HERE = "A2 (2406.03768)", "derived here; A2's open question on the search"
_GAIN = (
    "mean over runs of the test gain of the layer, module and rate that validation chose (prompts "
    "of its own for each run since a first one),"
)
_REGRET = (
    "(its risk - risk at the searched rank) / risk unclipped, on test prompts, over layers and "
    "modules,"
)
_RIVAL = "mean over runs of log(risk with it / risk clipped), over layers, modules and ranks,"
_BEST = "mean over runs and conditions of"
# Source, statement, what is averaged over runs, and its bounds: fields of Config, or numbers.
CLAIMS = {
    **{
        f"gain_{name.replace('-', '_')}": (
            f"{_A2}, appendix B.4",
            f"Searched clipping lowers the risk: {words}",
            _GAIN,
            {"at_least": "worthwhile"},
        )
        for name, words in {
            "matched": "trained models, prompts as in training",
            "under-trained": "under-trained models",
            "noisy": "trained models, noisier labels than in training",
            "shifted": "trained models, longer covariates than in training",
        }.items()
    },
    "single_module": (
        f"{_A2}, appendix B.3",
        "Clipping W_K alone, at its best layer and rate, gains nothing to speak of",
        f"{_GAIN} of W_K, in the condition where it is largest,",
        {"at_most": "worthwhile"},
    ),
    "rate_varies": (
        f"{_A2}, appendices B.4 and B.5",
        "The best rate changes with the noise of model and prompts, not by chance alone",
        "mean over runs and the other conditions of the share of matrices with another best rank "
        "than matched, less the share that differ between two sets of prompts of one condition,",
        {"at_least": "varies"},
    ),
    "same_rate": (
        f"{_A2}, appendix B.5",
        "The edit that is best for matched prompts costs nothing in the other conditions",
        f"{_BEST} its test loss there",
        {"at_most": 0.0},
    ),
    "dropping_is_harmless": (
        f"{_A2}, appendix B.6",
        "Dropping a layer neither harms nor improves",
        f"{_BEST} the median over layers of |risk without it / risk - 1|",
        {"at_most": "harmless"},
    ),
    "clip_or_drop": (
        f"{_A2}, appendix B.6",
        "Clipping at the searched rate predicts better than dropping",
        f"{_BEST} log(risk dropped / risk clipped), over layers and modules,",
        {"at_least": 0.0},
    ),
    "clip_or_prune": (
        f"{_A2}, Remark 6",
        "Clipping harms no more than pruning by magnitude to equally many numbers",
        _RIVAL,
        {"at_least": 0.0},
    ),
    "clip_or_project": (
        "derived here",
        "Clipping harms no more than a random projection to the same rank",
        _RIVAL,
        {"at_least": 0.0},
    ),
    "no_search_regret": (
        "derived here",
        "The whole matrix does as well as the searched rank, matrix by matrix",
        f"{_BEST} {_REGRET} (added after a first run)",
        {"at_most": "regret"},
    ),
}
for _name in PREDICTORS:
    _key = _name.replace(" ", "_")
    CLAIMS[f"{_key}_ranks"] = (
        _HERE,
        f"The spectrum's {_name} orders matrices by their best rank",
        f"{_BEST} Spearman's correlation over layers and modules",
        {"at_least": "rank_correlation"},
    )
    CLAIMS[f"{_key}_regret"] = (
        _HERE,
        f"The rank that the spectrum's {_name} predicts does as well as the searched one",
        f"{_BEST} {_REGRET}",
        {"at_most": "regret"},
    )


TIERS = {
    "smoke": Config(**SMOKE, prompts=4, more_prompts=4, rates=(0.0, 0.5, 0.9), rival_rates=(0.5,)),
    "laptop": Config(),
    "paper": Config(**PAPER, prompts=1024, more_prompts=8192),
}

RIVALS = ("prune", "project")
