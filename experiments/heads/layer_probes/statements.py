"""What `layer_probes` judges, by the criteria in its Config; fixed before its first run."""

from functools import partial

from lsa_lab.claims import Statement

CHEN = "modelled on Chen et al. 2408.04532"
HERE = "derived here"

_ratio = partial(Statement, statistic="ratio", over="seeds")
_WORST, _LEAST = "at the worst model,", "at the model where it is least,"


def statements(config) -> tuple[Statement, ...]:
    return (*_about_readers(config), *_about_descent(config), *_about_the_first_layer(config))


def _about_readers(config):
    reader = "the risk of the best linear reader"
    return (
        _ratio(
            "steady",
            CHEN,
            "Every layer of the full model makes the answer more readable",
            f"{reader} after a layer over that before it, at the worst layer of any model,",
            at_most=config.readable,
        ),
        _ratio(
            "not_yet",
            CHEN,
            "The first layer prepares and does not answer: after it ridge is better",
            f"{reader} after layer 1 of the full model over that of ridge, {_LEAST}",
            at_least=config.readable,
        ),
        _ratio(
            "at_last",
            CHEN,
            "After the last layer more of the answer is readable than ridge knows, at any noise",
            f"{reader} after the last layer of the full model over that of ridge, {_WORST}",
            at_most=config.readable,
        ),
        _ratio(
            "pruned",
            CHEN,
            "Without all but one head of each later layer the answer can still be read",
            f"{reader} after the last layer of the pruned model over that of the full one, "
            f"{_WORST}",
            at_most=config.unchanged,
        ),
        _ratio(
            "single",
            CHEN,
            "In a model with a single head in every layer the answer is less readable",
            f"{reader} after its last layer over that of the full model, {_LEAST}",
            at_least=config.worse,
        ),
    )


def _about_descent(config):
    descent = "the risk of descent on layer 1's tokens at its best step"
    return (
        _ratio(
            "descent_raw",
            CHEN,
            "Descent on the full model's first-layer tokens learns more than on raw covariates",
            f"{descent} over that on raw covariates, {_WORST}",
            at_most=config.faster,
        ),
        _ratio(
            "descent_single",
            CHEN,
            "Descent on the full model's first-layer tokens learns more than on those of the "
            "single-head model",
            f"{descent} over that on the single-head model's, {_WORST}",
            at_most=config.faster,
        ),
        _ratio(
            "descent_formula",
            CHEN,
            "Descent on the full model's first-layer tokens does as well as on r_j x_j themselves",
            f"{descent} over that on r_j x_j, {_WORST}",
            at_most=config.unchanged,
        ),
        _ratio(
            "descent_control",
            HERE,
            "Control: where layer 1 has read shuffled labels, nothing is gained over raw "
            "covariates",
            f"{descent} over that on raw covariates, layer 1 having read shuffled labels, {_LEAST}",
            at_least=config.readable,
        ),
    )


def _about_the_first_layer(config):
    mean = partial(Statement, over="seeds")
    share = "R² of r_j x_j, read linearly from the query's token after layer 1"
    return (
        mean(
            "held",
            CHEN,
            "The full model's first layer holds the preprocessed covariates",
            f"{share}, {_WORST}",
            at_least=config.held,
        ),
        mean(
            "held_by_more",
            CHEN,
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
            note="since a first run among the variants of which every training has finished",
        ),
    )
