"""The sizes and the statements of `head_importance`.

Bounds on N are older than its first run, but for one seed of some models, looked at before with
other programs. After it prompts went from 2048 to 1024, for time, and `first_of_median` was added.
Then it was seen that heads of linear attention as wide as a token can be mixed: rows about their
importance went, and how far mixing moves it came, after N_1 of one model had been moved from 1.1
to 4.0.
"""

from dataclasses import dataclass
from itertools import chain

from experiments.heads.head_importance.statements import about_a_model, about_all, about_mixing
from experiments.heads.kinds import by_kind
from experiments.models.named import Named, named
from lsa_lab.claims import Statement
from lsa_lab.harness import checks

ABLATIONS = ("zero", "mean", "resample", "zero, median prompt")  # how a head is taken away
ENDS = ("least", "as trained", "largest")  # of N_l over mixings

_NAMES = ("depth 3", "depth 5", "narrow keys", "softmax")
_MODELS = named("laptop", _NAMES)


@dataclass(frozen=True)
class Config:
    """Heads of trained models are taken away, one at a time; how much does the risk rise?

    N_l = exp(entropy) of the rises in layer l, each at least 0, as shares of their sum: the number
    of effective heads. h heads that matter alike count h. It is a property of what a layer computes
    where keys are narrow or a softmax forbids that heads are mixed, and else of their weights.
    """

    models: Named = _MODELS  # trained models, by name
    retrain: bool = False  # train again instead of reading the committed weights
    n: int = 16  # demonstrations of a prompt
    prompts: int = 1024  # the same for all models of a task
    softmax_prompts: int = 512  # for the kernel that is slow
    ablation_prompts: int = 512  # for the other two ways of taking a head away
    searched_prompts: int = 256  # on which mixings are chosen
    condition: float = 20.0  # of a mixing, at most
    starts: int = 16  # random mixings, of which the best is climbed from
    climbs: int = 30  # steps of each climb
    seed: int = 0
    # Criteria.
    all_matter: float = 0.75  # N_1 over the number of heads h: at least this is all of them
    one_later: float = 1.5  # N_l of a later layer: at most this is one
    dead: float = 0.05  # sum of a later layer's rises over the first's: below, it does not matter
    beaten: float = 1.0  # risk over ridge's: at most this is an algorithm that knows of sparsity
    agree: float = 0.8  # rank correlation of the rises with those of another ablation: at least
    covered: float = 0.5  # of [1, h], by N_l over mixings

    def __post_init__(self):
        checks.kinds(self)
        if not by_kind(self.models)[1]:
            raise ValueError("models: choose one at least whose heads cannot be mixed")
        checks.between(self, "n", 1, None)
        for name in ("prompts", "softmax_prompts", "ablation_prompts", "searched_prompts"):
            checks.between(self, name, 2, None)
        for name in ("starts", "climbs"):
            checks.between(self, name, 1, None)
        for name in ("one_later", "condition"):
            checks.between(self, name, 1, None)
        for name in ("all_matter", "dead", "covered"):
            checks.between(self, name, 0, 1)
        checks.positive(self, "beaten")
        checks.between(self, "agree", -1, 1)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        models=named("smoke", ("depth 3", "softmax")),
        n=4,
        prompts=8,
        softmax_prompts=8,
        ablation_prompts=8,
        searched_prompts=8,
        starts=2,
        climbs=2,
    ),
    "laptop": Config(),
    "paper": Config(models=named("paper", _NAMES)),
    "gpu": Config(
        models=named("gpu", ("depth 3", "depth 5", "softmax")),  # narrow keys, all of them
        n=32,
        prompts=65_536,
        softmax_prompts=16_384,
        ablation_prompts=4096,
        searched_prompts=4096,
        starts=64,
        climbs=200,
    ),
}


def statements(config) -> tuple[Statement, ...]:
    merged, own = by_kind(config.models)
    mixing = [about_mixing(config, name, spec.training.seeds) for name, spec in merged]
    each = [about_a_model(config, name, spec) for name, spec in own]
    seeds = max(spec.training.seeds for _, spec in own)
    return tuple(chain(*mixing, *each, about_all(config, seeds)))
