"""What `head_pruning` judges, and the ways to take heads away."""

import math
from functools import partial

from experiments.heads.kinds import by_kind
from lsa_lab.claims import Statement

FULL, PRUNED, BEST, FIRST = CHOSEN = ("full", "pruned", "best later heads", "top head of layer 1")
OTHERS, ANY = RANDOM = ("random later heads", "as many at random")
MIXED, TRAINED = "best of all mixings", "trained so"
TREATMENTS = (*CHOSEN, *RANDOM, MIXED, TRAINED)

CONTROLS = {"first_layer": FIRST, "random_heads": OTHERS, "at_random": ANY}  # id: treatment
_SHORT = {"narrow keys": "narrow", "softmax": "softmax"}  # ids of pruned models

A4 = "A4 (2408.04532), abstract, in our setting"
READING = "A4 (2408.04532), abstract, our reading, in our setting"
MODELLED = "modelled on A4 (2408.04532), abstract"
HERE = "derived here"

_OVER_FULL = "the risk over that of the full model"
_WAS = "it was heads that can be mixed"
_OWN = f"narrow keys and softmax; {_WAS}"
_LOOKED = "added after a look at these runs"


def all_are_tried(config, counts) -> bool:
    """Whether the search goes through every choice of one head for each later layer."""
    return math.prod(counts[1:]) <= config.most_choices


def key_of(name: str) -> str:
    return name.replace(" ", "_")


def ways(config) -> dict[str, tuple[str, str]]:  # {id: (model, treatment)}
    """How a model gets one head in each later layer: over mixings, pruned, chosen, trained so."""
    treated, (mixed, own) = {}, by_kind(config.models)
    for name, spec in mixed:
        treated[f"best_mixed_{key_of(name)}"] = name, MIXED
        if "first" in spec.architecture.places:
            treated[f"trained_{key_of(name)}"] = name, TRAINED
    for name, spec in own:
        treated[_SHORT.get(name, f"pruned_{key_of(name)}")] = name, PRUNED
        if all_are_tried(config, spec.architecture.rows[-1]):
            treated[f"best_{key_of(name)}"] = name, BEST
        if "first" in spec.architecture.places:
            treated[f"trained_{key_of(name)}"] = name, TRAINED
    return treated


def statements(config) -> tuple[Statement, ...]:
    mixed, own = by_kind(config.models)
    seeds = {name: spec.training.seeds for name, spec in (*mixed, *own)}

    def ratio(name):
        return partial(Statement, statistic="ratio", over=f"{seeds[name]} seeds")

    each = [
        _one_head(config, ratio(way[0]), {*dict(mixed)}, id, *way)
        for id, way in ways(config).items()
    ]
    each += [_control(config, ratio(way[0]), id, *way) for id, way in controls(config).items()]
    over = f"{max(seeds[name] for name, _ in own)} seeds"
    return (*each, *_about_greed(config, partial(Statement, over=over)))


def _one_head(config, ratio, mixed: set[str], id: str, name: str, treatment: str):
    title, row = name.capitalize(), partial(ratio, id, at_most=config.unchanged)
    if treatment == PRUNED:
        return row(
            source=A4,
            says=f"{title}: all heads but the most important one of each later layer can be "
            "removed",
            measured=_OVER_FULL,
        )
    if treatment == BEST:
        return row(
            source=HERE,
            says=f"{title}: with the best choice of one head for each later layer, whatever its "
            "importance, nothing is lost",
            measured=f"{_OVER_FULL}, the choice being the best of all on other prompts,",
            revision=_LOOKED,
        )
    if treatment == TRAINED:
        return row(
            source=READING,
            says=f"{title}: a model trained with one head in each later layer is as good as the "
            "full one",
            measured=_OVER_FULL,
            revision="" if name in mixed else _LOOKED,
        )
    control = (
        "Control: on the dense task, which needs no preprocessing, " if name == "dense" else ""
    )
    return row(
        source=HERE if control else MODELLED,
        says=f"{control or title + ': '}one head in each later layer, the best of all that mixing "
        "the heads of the layer can give, costs nothing",
        measured=f"{_OVER_FULL}, the heads being chosen and mixed on other prompts,",
        note="an upper bound, by search, on the least over all mixings",
        revision=_LOOKED
        if name == "long training"
        else "it was the most important head as trained, which mixing changes",
    )


def controls(config) -> dict[str, tuple[str, str]]:  # {id: (model, treatment)}
    """The treatments beside which a pruned model is put, for each whose heads cannot be mixed."""
    own = by_kind(config.models)[1]
    return {
        f"{id}_{key_of(name)}": (name, treatment)
        for name, _ in own
        for id, treatment in CONTROLS.items()
    }


def _control(config, ratio, id: str, name: str, treatment: str):
    says = {
        FIRST: "to keep only the top head of the first layer costs more than pruning the later "
        "layers",
        OTHERS: "to keep other heads of the later layers than the top ones costs more",
        ANY: "to remove as many heads at random costs more",
    }
    return ratio(
        id,
        MODELLED,
        f"{name.capitalize()}: {says[treatment]}",
        "the risk over that of the pruned model",
        at_least=config.worse,
        revision=f"narrow keys and softmax apart, since a look at these runs; {_WAS}",
    )


def _about_greed(config, row):
    end = "left when one more removal would make the risk more than"
    return (
        row(
            "greedy_first",
            MODELLED,
            "Greedy pruning, free to choose any layer, keeps the heads of the first one",
            f"the share of layer 1's heads that are {end} {config.unchanged:g} of the full "
            "model's, for the worst model,",
            at_least=config.all_first,
            revision=_OWN,
        ),
        row(
            "greedy_later",
            MODELLED,
            "Greedy pruning, free to choose any layer, leaves one head in each later one",
            "the heads of a later layer that are left then, averaged over these, for the worst "
            "model,",
            at_most=config.one_later,
            revision=_OWN,
        ),
    )
