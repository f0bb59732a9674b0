"""The statements of `head_importance`; what was changed after its first run stands there."""

from functools import partial

from lsa_lab.claims import Statement

A4 = "A4 (2408.04532), abstract, in our setting"
HERE = "derived here"
OWN = "what each layer computes determines these heads, among those near them"
RESTRICTED = "models whose heads can be mixed are left out"

LATER = "N_l in the later layer with the most effective heads on average"


def id_of(statement: str, name: str) -> str:
    """The id of a statement about one model."""
    return f"{statement}.{name}_full".replace(" ", "_")


def about_mixing(config, name: str, seeds: int):
    """Statements about a model whose heads can be mixed, which changes no prediction."""
    row = partial(
        Statement,
        source=HERE,
        at_least=config.covered,
        over=f"{seeds} seeds",
        note=f"mixings of condition {config.condition:g} or less, chosen on other prompts; a lower "
        "bound, by search",
        revision="added after mixing had moved N_1 of one model from 1.1 to 4.0",
    )
    cover = "(largest - least N_l)/(h - 1) over mixings of the layer's heads"
    yield row(
        id_of("mixing_first", name),
        says=f"By mixing alone, which changes no prediction, N_1 of a trained model covers more "
        f"than half of its range [1, h]: {name}",
        measured=f"{cover}, l = 1",
    )
    yield row(
        id_of("mixing_later", name),
        says=f"So does N_l of each later layer: {name}",
        measured=f"{cover}, at the later layer where it is least",
    )


def about_a_model(config, name: str, spec):
    """Statements about a model whose heads are its layers' own."""
    heads = " ".join(map(str, spec.architecture.rows[-1]))
    model, row = f"{name}: {heads}", partial(Statement, over=f"{spec.training.seeds} seeds")
    yield row(
        id_of("first", name),
        A4,
        f"All heads of the first layer matter: {model}",
        "N_1 / h",
        at_least=config.all_matter,
        note=OWN,
    )
    yield row(
        id_of("first_of_median", name),
        HERE,
        f"All heads of the first layer matter to the median prompt: {model}",
        "N_1 / h, importance being the rise of the median squared error,",
        at_least=config.all_matter,
        note=OWN,
        revision="added after a look at these runs, in which prompts that explode without a head "
        "ruled the mean",
    )
    yield row(
        id_of("later", name),
        A4,
        f"One head of each later layer is enough: {model}",
        LATER,
        at_most=config.one_later,
        note=OWN,
    )
    yield row(
        id_of("later_that_matter", name),
        A4,
        f"One head of each later layer that matters is enough: {model}",
        f"{LATER}, among those whose rises sum to {config.dead:g} of the first layer's or more on "
        "average,",
        at_most=config.one_later,
        note=f"not judged if there is none; {OWN}",
        revision="layers without such rises counted as 0 heads",
    )


def about_all(config, seeds: int):
    """Statements about these models beside each other."""
    row = partial(Statement, over=f"{seeds} seeds")
    yield row(
        "found",
        A4,
        "The models have found an algorithm that knows of sparsity: they beat ridge",
        "the risk over ridge's on the same prompts, for the worst of the models judged here,",
        at_most=config.beaten,
        revision=RESTRICTED,
    )
    yield row(
        "ablations",
        HERE,
        "Zero, mean and resample ablation rank the heads of a layer alike",
        "the rank correlation with zero ablation over the heads of a layer, averaged over layers, "
        "for the model and the other ablation that agree least,",
        at_least=config.agree,
        revision=f"it was one model, of depth 3; {RESTRICTED}",
    )
