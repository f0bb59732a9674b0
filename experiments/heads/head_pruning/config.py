"""The sizes of `head_pruning`, and the ways to take heads away."""

from dataclasses import dataclass

from experiments.models.named import Named, choose_pairs
from experiments.models.specs import Spec, restored

FULL, PRUNED, FIRST = CHOSEN = ("full", "pruned", "top head of layer 1")
OTHERS, ANY = RANDOM = ("random later heads", "as many at random")
MIXED, TRAINED = "best of all mixings", "trained so"
TREATMENTS = (*CHOSEN, *RANDOM, MIXED, TRAINED)
ONLY_PRUNED = ("long training", "dense")  # models whose importances nobody asks for

_NAMES = ("depth 3", "depth 5", *ONLY_PRUNED, "narrow keys", "softmax")
_MODELS = choose_pairs(_NAMES)


@dataclass(frozen=True)
class Importance:
    """Heads of trained models are taken away, one at a time; how much does the risk rise?

    N_l = exp(entropy) of the rises in layer l, each at least 0, as shares of their sum: the number
    of effective heads. h heads that matter alike count h. It is a property of what a layer computes
    where keys are narrow or a softmax forbids that heads are mixed, and else of their weights.
    """

    n: int = 16  # demonstrations of a prompt
    prompts: int = 1024  # the same for all models of a task
    softmax_prompts: int = 512  # for the kernel that is slow
    seed: int = 0


@dataclass(frozen=True)
class Config:
    """Trained models with heads taken away, judged on prompts of their own in every run.

    A run is a seed of a model's last, full variant. Heads are chosen and mixed on other prompts
    than those on which the choice is judged.
    """

    models: Named = _MODELS  # trained models, by name
    n: int = 16
    # To measure importance on, and as many others to judge on, for each run.
    prompts: int = 512
    search: int = 256  # prompts for the search through mixings
    draws: int = 4  # of each random control
    # Random mixings, of which the best is improved, as is the best head as it is.
    starts: int = 16
    climbs: int = 60  # steps that improve them
    seed: int = 0
    importance: Importance = Importance()  # of single heads, before any is removed


def mixable_and_own(models) -> tuple[dict[str, Spec], dict[str, Spec]]:
    """A config's models whose heads can be mixed, and those whose heads are their layers' own."""
    kinds = {}, {}
    for name, saved in models:
        spec = restored(saved)
        kinds[not can_be_mixed(spec)][name] = spec
    return kinds


def can_be_mixed(spec: Spec) -> bool:
    """Whether the heads of a layer can be any: they are linear, with keys that are wide enough
    (docs/theory, "Heads are not unique")."""
    architecture = spec.architecture
    narrow = architecture.key_width is not None and architecture.key_width < spec.token_width
    return architecture.kernel == "linear" and not narrow


TIERS = {
    "smoke": Config(
        models=choose_pairs(("depth 3", "softmax"), small=True),
        n=8,
        prompts=32,
        search=32,
        draws=2,
        starts=2,
        climbs=2,
        importance=Importance(4, 8, 8),
    ),
    "laptop": Config(),
}
