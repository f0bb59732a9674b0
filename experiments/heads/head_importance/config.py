"""The sizes and the statements of `head_importance`, fixed before its first run on trained weights.

One seed of some models had been looked at before, with other programs: at n = 16 the full model of
depth 3 counted about (3.0, 3.1, 3.5) effective heads a layer, that of depth 5 (1.7, 3.3, 1.06,
1.04, 2.5), that of the dense task one in each layer. The first two bounds are older than that.
After the first run on trained weights (depth 3) prompts went from 2048 to 1024, for time, and
`first_of_median` was added. `later_that_matter` is no longer judged where no later layer matters,
as in "narrow keys", where it held vacuously. The other criteria are as they were.
"""

from dataclasses import dataclass
from itertools import chain

from experiments.heads.head_importance.statements import about_a_model, about_all_models
from experiments.models.named import Named, named
from experiments.models.specs import restored
from lsa_lab.claims import Statement
from lsa_lab.harness import checks

# Of which models the statements are, where a config has them: the name, and which variant,
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
STATES = ("trained", "random")
REPRESENTATIVES = ("as trained", "orthogonal", "turned")  # ways to write the same model

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


def statements(config) -> tuple[Statement, ...]:
    names = [name for name, _ in config.models]
    longest = [name for name in ON_THE_WAY if name in names][-1]
    each = [about_a_model(config, *subject) for subject in subjects(config)]
    return tuple(chain(*each, about_all_models(config, names, longest)))


def subjects(config) -> list[tuple[str, str, str]]:
    """The SUBJECTS that a config has, with their heads of each layer, as "4 1 1"."""
    rows, models = [], {name: restored(spec).architecture for name, spec in config.models}
    for name, form in SUBJECTS:
        if name in models and form in models[name].places:
            heads = models[name].rows[models[name].places[form]]
            rows.append((name, form, " ".join(map(str, heads))))
    return rows
