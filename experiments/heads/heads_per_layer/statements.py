"""What `heads_per_layer` judges, by the criteria in its Config; fixed before its first run."""

from functools import partial

from experiments.heads.rule_names import EQUIVARIANT, RULES, SPARSE_BAYES
from experiments.models.specs import Spec, restored
from lsa_lab.claims import Statement

LONG = "long training"  # of the first model, if a tier has it

# Whose risk is divided by whose: a variant (Architecture.places) or a rule.
PAIRS = {
    "beats_bound": ("full", EQUIVARIANT),
    "single_beats_bound": ("single", EQUIVARIANT),
    "near_bayes": ("full", SPARSE_BAYES),
    "more_heads": ("full", "single"),
    "first_layer_helps": ("first", "single"),
    "first_layer_suffices": ("first", "full"),
    "first_before_later": ("first", "later"),
}

A4 = "A4 (2408.04532)"
CHECK = "a check of this experiment"


def depths(config) -> list[tuple[str, Spec]]:
    """The models that differ in depth alone, by name."""
    return [(name, restored(spec)) for name, spec in config.models if name != LONG]


def pairs(spec: Spec) -> dict[str, tuple[str, str]]:
    """PAIRS of which a model has both."""
    names = {*RULES, *spec.architecture.places}
    return {id: pair for id, pair in PAIRS.items() if names.issuperset(pair)}


def statements(config) -> tuple[Statement, ...]:
    rows = []
    for _, spec in depths(config):
        depth, ids = spec.architecture.depth, {*pairs(spec)}
        if "first" in spec.architecture.places:
            ids |= {"beats_ridge", "beats_descent"}
        mean = partial(Statement, over=f"{spec.training.seeds} seeds")
        kinds = (_at_every_n, _against_rules, _against_variants)
        about = [row for rows_of in kinds for row in rows_of(config, depth, mean)]
        rows += [row for row in about if row.id.removesuffix(f"_{depth}") in ids]
        rows.append(_stopped_falling(config, depth, mean))
    if LONG in dict(config.models):
        rows.append(_long_enough(config, depths(config)[0][1].architecture.depth, mean))
    return tuple(rows)


def _at_every_n(config, depth: int, mean):
    model, layers = "Many heads in layer 1 and one in each later layer", f"({depth} layers)"
    lengths = ", ".join(map(str, config.shots))
    row = partial(
        mean,
        source=f"{A4}, abstract, in our setting",
        at_most=config.beats,
        note="no sign of the pattern: see single_beats_bound, with one head in each layer",
        revision="added after a look at these runs",
    )
    return (
        row(
            f"beats_ridge_{depth}",
            says=f"{model} beat ridge at every n {layers}",
            measured=f"the risk of (H, 1, ..., 1) over ridge's, at the n of {lengths} where it is "
            "most,",
        ),
        row(
            f"beats_descent_{depth}",
            says=f"{model} beat gradient descent of as many steps at every n {layers}",
            measured="the risk of (H, 1, ..., 1) over that of descent with a tuned size for each "
            f"of {depth} steps, at the n of {lengths} where it is most,",
        ),
    )


def _against_rules(config, depth: int, mean):
    layers, at = f"({depth} layers)", f"at n = {config.judged}"
    return (
        mean(
            f"beats_bound_{depth}",
            f"modelled on {A4}, abstract",
            f"With all heads everywhere, a model beats every rule that ignores directions {layers}",
            f"the risk of the full model over the best such rule's {at}",
            at_most=config.beats,
        ),
        mean(
            f"single_beats_bound_{depth}",
            'open before: docs/theory, "Trials before the experiments"',
            f"One head in each layer is enough to beat every rule that ignores directions {layers}",
            f"the risk of the single-head model over the best such rule's {at}",
            at_most=config.beats,
        ),
        mean(
            f"near_bayes_{depth}",
            f"modelled on {A4}, its comparison with the Lasso",
            f"With all heads everywhere, a model comes near the sparse Bayes rule {layers}",
            f"the risk of the full model over the sparse Bayes rule's {at}",
            at_most=config.near,
        ),
    )


def _against_variants(config, depth: int, mean):
    layers, at = f"({depth} layers)", f"at n = {config.judged}"
    first, later = "(H, 1, ..., 1)", "(1, H, ..., H)"
    return (
        mean(
            f"more_heads_{depth}",
            f"{A4}, figure 1b, in our setting",
            f"Many heads do better than one in each layer {layers}",
            f"the risk of the full model over the single-head one's {at}",
            at_most=config.helps,
        ),
        mean(
            f"first_layer_helps_{depth}",
            f"{A4}, its mechanism, in our setting",
            f"More heads in the first layer alone help {layers}",
            f"the risk of {first} over the single-head model's {at}",
            at_most=config.helps,
        ),
        mean(
            f"first_layer_suffices_{depth}",
            f"{A4}, its mechanism, our reading, in our setting",
            f"One head in each later layer is enough {layers}",
            f"the risk of {first} over the full model's {at}",
            at_most=config.suffices,
        ),
        mean(
            f"first_before_later_{depth}",
            f"modelled on {A4}, its mechanism",
            f"Heads do more in the first layer than in all later ones {layers}",
            f"the risk of {first} over {later} {at}",
            at_most=config.beats,
        ),
    )


def _stopped_falling(config, depth: int, mean):
    return mean(
        f"stopped_falling_{depth}",
        CHECK,
        f"The full model's loss has stopped falling ({depth} layers)",
        "the loss in the last sixth of the training over that in the sixth before",
        at_least=config.level,
    )


def _long_enough(config, depth: int, mean):
    return mean(
        "long_enough",
        CHECK,
        f"Four times the training lowers the full model's risk by little ({depth} layers)",
        f"the risk after it over the risk before at n = {config.judged}",
        at_least=config.longer,
    )
