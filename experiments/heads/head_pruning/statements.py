"""What `head_pruning` judges, by the criteria in its Config, and the ways to take heads away."""

import math
from functools import partial

from experiments.models.specs import restored
from lsa_lab.claims import Statement

FULL, PRUNED, BEST, FIRST = CHOSEN = ("full", "pruned", "best later heads", "top head of layer 1")
OTHERS, ANY = RANDOM = ("random later heads", "as many at random")
TRAINED = "trained so"
TREATMENTS = (*CHOSEN, *RANDOM, TRAINED)

CONTROLS = {"first_layer": FIRST, "random_heads": OTHERS, "at_random": ANY}  # id: treatment
BESIDE = {"dense": "dense", "narrow": "narrow keys", "softmax": "softmax"}  # id: model

CHEN = "modelled on Chen et al. 2408.04532"
HERE = "derived here"

_ratio = partial(Statement, statistic="ratio", over="seeds")
_OVER_FULL = "the risk over that of the full model"


def all_are_tried(config, counts) -> bool:
    """Whether the search goes through every choice of one head for each later layer."""
    return math.prod(counts[1:]) <= config.most_choices


def ways(config, case: str) -> dict[str, str]:  # {id: treatment}
    """How a model gets one head in each later layer: pruned, with the best, trained so."""
    architecture = restored(dict(config.models)[case]).architecture
    treatments = {"pruned": PRUNED}
    if all_are_tried(config, architecture.variants[-1]):
        treatments["best"] = BEST
    if "first" in architecture.places:
        treatments["trained"] = TRAINED
    return {f"{way}_{case.replace(' ', '_')}": name for way, name in treatments.items()}


def beside(config) -> dict[str, str]:  # {id: model}
    """The models beside the deep ones that are judged, pruned."""
    return {id: case for id, case in BESIDE.items() if case in dict(config.models)}


def statements(config) -> tuple[Statement, ...]:
    deep = [statement for case in config.deep for statement in _about_depth(config, case)]
    return (*deep, *_about_controls(config), *_about_others(config), *_about_greed(config))


def _about_depth(config, case):
    name, key, ids = case.capitalize(), case.replace(" ", "_"), ways(config, case)
    pruned = _ratio(
        f"pruned_{key}",
        CHEN,
        f"{name}: all heads but the most important one of each later layer can be removed",
        _OVER_FULL,
        at_most=config.unchanged,
    )
    best = _ratio(
        f"best_{key}",
        HERE,
        f"{name}: with the best choice of one head for each later layer, whatever its importance, "
        "nothing is lost",
        f"{_OVER_FULL}, the choice being the best of all on other prompts,",
        at_most=config.unchanged,
    )
    trained = _ratio(
        f"trained_{key}",
        CHEN,
        f"{name}: a model trained with one head in each later layer is as good as the full one",
        _OVER_FULL,
        at_most=config.unchanged,
    )
    return [statement for statement in (pruned, best, trained) if statement.id in ids]


def _about_controls(config):
    more = "the risk over that of the pruned model, at the depth where it is least,"
    return (
        _ratio(
            "first_layer",
            CHEN,
            "To keep only the top head of the first layer costs more than pruning the later layers",
            more,
            at_least=config.worse,
        ),
        _ratio(
            "random_heads",
            CHEN,
            "To keep other heads of the later layers than the top ones costs more",
            more,
            at_least=config.worse,
        ),
        _ratio(
            "at_random",
            CHEN,
            "To remove as many heads at random costs more",
            more,
            at_least=config.worse,
        ),
    )


def _about_others(config):
    three = (
        _ratio(
            "dense",
            HERE,
            "Control: on the dense task, which needs no preprocessing, pruning costs nothing",
            _OVER_FULL,
            at_most=config.unchanged,
        ),
        _ratio(
            "narrow",
            CHEN,
            "With keys too narrow for heads to be mixed, later layers can be pruned",
            _OVER_FULL,
            at_most=config.unchanged,
        ),
        _ratio(
            "softmax",
            CHEN,
            "Later layers of softmax attention can be pruned",
            _OVER_FULL,
            at_most=config.unchanged,
        ),
    )
    return [statement for statement in three if statement.id in beside(config)]


def _about_greed(config):
    mean = partial(Statement, over="seeds")
    end = "left when one more removal would make the risk more than"
    return (
        mean(
            "greedy_first",
            CHEN,
            "Greedy pruning, free to choose any layer, keeps the heads of the first one",
            f"the share of layer 1's heads that are {end} {config.unchanged:g} of the full "
            "model's, at the worst depth,",
            at_least=config.all_first,
        ),
        mean(
            "greedy_later",
            CHEN,
            "Greedy pruning, free to choose any layer, leaves one head in each later one",
            "the heads of a later layer that are left then, averaged over these, at the worst "
            "depth,",
            at_most=config.one_later,
        ),
    )
