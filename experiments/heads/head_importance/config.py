"""Settings, criteria and texts of `head_importance`, fixed before its first run on trained weights.

One seed of some families had been looked at before, with other programs: at n = 16 the full model
of depth 3 counted about (3.0, 3.1, 3.5) effective heads a layer, that of depth 5 (1.7, 3.3, 1.06,
1.04, 2.5), that of the dense task one in each layer. The first two bounds are older than that.
After the first run on trained weights (depth 3) prompts went from 2048 to 1024, for time, and
`first_of_median` was added. `later_that_matter` is no longer judged where no later layer matters,
as in "narrow keys", where it held vacuously. The other criteria are as they were.
"""

from dataclasses import dataclass

from experiments.models.named import Named, named
from lsa_lab.harness import checks

_MODELS = named("laptop")


@dataclass(frozen=True)
class Config:
    """Heads of trained models are taken away, one at a time; how much does the risk rise?

    N_l = exp(entropy) of the rises in layer l, each at least 0, as shares of their sum: the number
    of effective heads. h heads that matter alike count h.
    """

    models: Named = _MODELS  # "depth 3" is what others are compared with
    retrain: bool = False  # train again instead of reading the committed weights
    n: int = 16  # demonstrations of a prompt
    prompts: int = 1024  # the same for all models of a task
    softmax_prompts: int = 512  # for the kernel that is slow
    ablation_prompts: int = 512  # for the other two ways of taking a head away
    pattern_prompts: int = 64  # on which attention patterns are compared
    seed: int = 0
    # Criteria.
    all_matter: float = 0.75  # N_1 over the number of heads h: at least this is all of them
    one_later: float = 1.5  # N_l of a later layer: at most this is one
    dead: float = 0.05  # sum of a later layer's rises over the first's: below, it does not matter
    found: float = 1.0  # risk over ridge's: at most this is an algorithm that knows of sparsity
    fewer: float = 0.0  # N_1 of the dense task minus that of the sparse one: at most
    settled: float = 0.5  # |change of N_1 over the last part of the training|, in heads: at most
    agree: float = 0.8  # rank correlation of the rises with those of another ablation: at least
    alike: float = 0.1  # similarity of trained heads minus that of random ones: at least

    def __post_init__(self):
        if "depth 3" not in dict(self.models):
            raise ValueError("models: 'depth 3' is what others are compared with")
        checks.between(self, "n", 1, None)
        for name in ("prompts", "softmax_prompts", "ablation_prompts", "pattern_prompts"):
            checks.between(self, name, 2, None)
        checks.between(self, "all_matter", 0, 1)
        checks.between(self, "one_later", 1, None)
        checks.between(self, "dead", 0, 1)
        for name in ("found", "settled"):
            checks.positive(self, name)
        for name in ("agree", "alike"):
            checks.between(self, name, -1, 1)
        checks.between(self, "fewer", None, None)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        models=named("smoke", ("depth 3",)),
        n=4,
        prompts=8,
        softmax_prompts=8,
        ablation_prompts=8,
        pattern_prompts=4,
    ),
    "laptop": Config(),
    "paper": Config(
        models=named("paper"),
        n=32,
        prompts=65_536,
        softmax_prompts=16_384,
        ablation_prompts=4096,
        pattern_prompts=256,
    ),
}

# Of which models the claims are made, where a tier has them: family, and which architecture of it,
# "full" (as many heads in every layer) or "first" (one head in the later layers).
SUBJECTS = (
    ("depth 3", "full"),
    ("depth 5", "full"),
    ("depth 5", "first"),
    ("long training", "full"),
    ("narrow keys", "full"),
    ("softmax", "full"),
)
ON_THE_WAY = ("depth 3", "depth 5", "long training")  # looked at during training too
REPRESENTED = ("depth 3", "depth 5")  # of which other representatives are looked at
COMPARED = ("depth 3", "depth 5", "narrow keys", "softmax")  # across seeds

_A4 = "Chen et al. 2408.04532, in our setting, modelled on theirs"
_HERE = "derived here"
_MEAN = "mean over seeds of"
_RANDOM = "random heads of their size, matched alike, for the model where it is least,"
_LATER = "the later layer with the most effective heads on average"

# Source, statement, what is measured, {side: criterion}. {model} is one of SUBJECTS.
ABOUT_MODELS = {
    "first": (
        _A4,
        "All heads of the first layer matter: {model}",
        f"{_MEAN} N_1 / h",
        {"at_least": "all_matter"},
    ),
    "first_of_median": (
        _HERE,
        "All heads of the first layer matter to the median prompt: {model}",
        f"{_MEAN} N_1 / h, importance being the rise of the median squared error (added after a "
        "first run, in which prompts that explode without a head ruled the mean),",
        {"at_least": "all_matter"},
    ),
    "later": (
        _A4,
        "One head of each later layer is enough: {model}",
        f"{_MEAN} N_l in {_LATER}",
        {"at_most": "one_later"},
    ),
    "later_that_matter": (
        _A4,
        "One head of each later layer that matters is enough: {model}",
        f"{_MEAN} N_l in {_LATER}, among those whose rises sum to the share `dead` of the first "
        "layer's or more on average (not judged if there is none, declared as 0 heads before),",
        {"at_most": "one_later"},
    ),
}

CLAIMS = {
    "found": (
        _A4,
        "The models have found an algorithm that knows of sparsity: they beat ridge",
        f"{_MEAN} risk over ridge's on the same prompts, for the worst of the models judged here,",
        {"at_most": "found"},
    ),
    "dense": (
        _HERE,
        "Control: a dense task needs fewer heads in the first layer",
        f"{_MEAN} N_1 of the dense task minus that of the sparse one (depth 3, all heads, seeds "
        "paired in order, trained independently)",
        {"at_most": "fewer"},
    ),
    "settled": (
        _HERE,
        "The count of first-layer heads has settled at the end of the training: {model}",
        f"{_MEAN} |N_1 at the end - N_1 at the look before|, the last part of its training,",
        {"at_most": "settled"},
    ),
    "ablations": (
        _HERE,
        "Zero, mean and resample ablation rank the heads of a layer alike (depth 3, all heads)",
        f"{_MEAN} the rank correlation with zero ablation, over the heads of a layer, averaged "
        "over layers; the other ablation that agrees less",
        {"at_least": "agree"},
    ),
    "representative": (
        _HERE,
        "All heads of the first layer matter in the orthogonal representative of the same model "
        "too: {model}",
        f"{_MEAN} N_1 / h, the model where it is least,",
        {"at_least": "all_matter"},
    ),
    "construction": (
        _A4,
        "Heads of the first layer resemble those of preprocess_then_optimise: {model}",
        f"{_MEAN} the similarity to its matched head, minus that of {_RANDOM}",
        {"at_least": "alike"},
    ),
    "seeds": (
        _HERE,
        "Attention patterns of the first layer are alike from seed to seed: {model}",
        f"{_MEAN} the correlation of matched heads' attention with other seeds' (they share pairs: "
        f"the interval is too narrow), minus that of {_RANDOM}",
        {"at_least": "alike"},
    ),
}
