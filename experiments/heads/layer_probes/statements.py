"""What `layer_probes` judges, by the criteria in its Config; fixed before its first run."""

from functools import partial

from experiments.models.specs import restored
from lsa_lab.claims import Statement

A4 = "modelled on A4 (2408.04532), its probing"
HERE = "derived here"
WHITE = "white tokens, since a look at these runs with raw ones, whose basis is free"
_WORST, _LEAST = "at the worst model,", "at the model where it is least,"


def statements(config) -> tuple[Statement, ...]:
    row = partial(Statement, over=_seeds(config, config.dissected))
    ratio = partial(row, statistic="ratio")
    return (
        *_about_readers(config, partial(ratio, over=_seeds(config, config.panels))),
        *_about_descent(config, ratio),
        *_about_the_first_layer(config, row),
    )


def _seeds(config, names) -> str:
    models = dict(config.models)
    seeds = sorted({restored(models[name]).training.seeds for name in names})
    return f"{' or '.join(map(str, seeds))} seeds"


def _about_readers(config, ratio):
    reader = "the risk of the best linear reader"
    return (
        ratio(
            "steady",
            A4,
            "Every layer of the full model makes the answer more readable",
            f"{reader} after a layer over that before it, at the worst layer of any model,",
            at_most=config.readable,
        ),
        ratio(
            "not_yet",
            A4,
            "The first layer prepares and does not answer: after it ridge is better",
            f"{reader} after layer 1 of the full model over that of ridge, {_LEAST}",
            at_least=config.readable,
        ),
        ratio(
            "at_last",
            A4,
            "After the last layer more of the answer is readable than ridge knows, at any noise",
            f"{reader} after the last layer of the full model over that of ridge, {_WORST}",
            at_most=config.readable,
        ),
        ratio(
            "single",
            A4,
            "In a model with a single head in every layer the answer is less readable",
            f"{reader} after its last layer over that of the full model, {_LEAST}",
            at_least=config.worse,
        ),
    )


def _about_descent(config, ratio):
    descent = "the risk of descent on layer 1's white tokens at its best step"
    ratio = partial(ratio, revision=WHITE)
    return (
        ratio(
            "descent_raw",
            A4,
            "Descent on the full model's first-layer tokens learns more than on raw covariates",
            f"{descent} over that on raw covariates, {_WORST}",
            at_most=config.faster,
        ),
        ratio(
            "descent_single",
            A4,
            "Descent on the full model's first-layer tokens learns more than on those of the "
            "single-head model",
            f"{descent} over that on the single-head model's, {_WORST}",
            at_most=config.faster,
        ),
        ratio(
            "descent_formula",
            A4,
            "Descent on the full model's first-layer tokens does as well as on r_j x_j themselves",
            f"{descent} over that on r_j x_j, {_WORST}",
            at_most=config.unchanged,
        ),
        ratio(
            "descent_control",
            HERE,
            "Control: where layer 1 has read shuffled labels, nothing is gained over raw "
            "covariates",
            f"{descent} over that on raw covariates, layer 1 having read shuffled labels, {_LEAST}",
            at_least=config.no_help,
            note="a twentieth of the risk counts as nothing",
            revision=f"a margin; it was 0; {WHITE}",
        ),
    )


def _about_the_first_layer(config, mean):
    share = "R² of r_j x_j, read linearly from the query's token after layer 1"
    return (
        mean(
            "held",
            A4,
            "The full model's first layer holds the preprocessed covariates",
            f"{share}, {_WORST}",
            at_least=config.held,
        ),
        mean(
            "held_by_more",
            A4,
            "The full model's first layer holds more of them than the single-head one's",
            f"{share}, full minus single head, {_WORST}",
            at_least=config.more,
        ),
        mean(
            "control",
            HERE,
            "Control: of other prompts' preprocessed covariates the first layer holds nothing",
            "R² of r_j x_j of other prompts, at the model and variant where it is most,",
            at_most=config.nothing,
            revision="variants whose every training has finished, since a look at these runs",
        ),
    )
