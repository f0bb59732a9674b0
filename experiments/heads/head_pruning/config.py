"""The sizes and the statements of `head_pruning`.

After its first run numbers of prompts were lowered, for time. Then it was seen that heads as wide
as a token can be mixed: what was judged of their importance is judged of narrow keys and of
softmax, and of mixed heads the best that any mixing can keep. Risks are at one n since then.
"""

from dataclasses import dataclass

from experiments.heads.head_pruning.statements import statements as statements
from experiments.heads.kinds import by_kind
from experiments.models.named import Named, more_seeds, named
from lsa_lab.harness import checks

_NAMES = ("depth 3", "depth 5", "long training", "dense", "narrow keys", "softmax")
_MODELS = named("laptop", _NAMES)


@dataclass(frozen=True)
class Config:
    """Trained models with heads taken away, judged on prompts of their own in every run.

    A run is a seed of a model's last, full variant. Heads are chosen, mixed and fitted on other
    prompts than those on which the choice is judged.
    """

    models: Named = _MODELS  # trained models, by name
    retrain: bool = False  # train again instead of reading committed weights
    fitted: tuple[str, ...] = ("depth 3",)  # whose later layers are also fitted anew
    n: int = 16
    prompts: int = 512  # to measure importance on, and as many others to judge on, for each run
    search: int = 256  # prompts for the search through subsets and mixings, and for greedy pruning
    most_choices: int = 512  # of one head for each later layer: all are tried, if not more
    draws: int = 4  # of each random control
    starts: int = 16  # random mixings, of which the best is improved, as is the best head as it is
    climbs: int = 60  # steps that improve them
    fit_steps: int = 300  # on fresh prompts
    fit_prompts: int = 128  # in each of these steps
    seed: int = 0
    # Criteria, on geometric means over runs.
    unchanged: float = 1.1  # at most this ratio of risks is none to speak of
    worse: float = 1.0  # a control's risk over the pruned model's: more
    all_first: float = 0.75  # of layer 1's heads, at least, that greedy pruning keeps
    one_later: float = 1.5  # heads of a later layer, at most, that it keeps

    def __post_init__(self):
        checks.kinds(self)
        for name in ("n", "prompts", "search", "draws", "most_choices", "starts", "climbs"):
            checks.between(self, name, 1, None)
        for name in ("fit_steps", "fit_prompts"):
            checks.between(self, name, 1, None)
        for name in ("unchanged", "worse", "all_first", "one_later"):
            checks.positive(self, name)
        checks.seed(self, "seed")
        mixed, own = by_kind(self.models)
        if not own:
            raise ValueError("models: choose one at least whose heads cannot be mixed")
        if {*self.fitted} - {name for name, _ in mixed}:
            raise ValueError(f"fitted = {self.fitted!r}: choose from models of mixed heads")


TIERS = {
    "smoke": Config(
        models=named("smoke", ("depth 3", "softmax")),
        fitted=("depth 3",),
        n=8,
        prompts=32,
        search=32,
        draws=2,
        starts=2,
        climbs=2,
        fit_steps=2,
        fit_prompts=8,
    ),
    "laptop": Config(),
    "paper": Config(models=more_seeds(_MODELS)),
    "gpu": Config(
        models=named("gpu", ("depth 3", "depth 4", "depth 5", "depth 6", "softmax")),
        fitted=(),
        n=32,
        prompts=1024,
        search=128,
        draws=8,
    ),
}
