"""The statements of `head_importance`, fixed before its first run on trained weights."""

from lsa_lab.claims import Statement

CHEN = "Chen et al. 2408.04532, in our setting, modelled on theirs"
HERE = "derived here"

LATER = "N_l in the later layer with the most effective heads on average"
RANDOM = "that of random heads of their size, matched alike, for the model where it is least,"


def id_of(statement: str, name: str, form: str) -> str:
    """The id of a statement about one model."""
    return f"{statement}.{name}_{form}".replace(" ", "_")


def about_a_model(config, name: str, form: str, heads: str):
    """Statements about the model of that name with its heads of each layer, as "4 1 1"."""
    model = f"{name}: {heads}"
    yield Statement(
        id_of("first", name, form),
        CHEN,
        f"All heads of the first layer matter: {model}",
        "N_1 / h",
        at_least=config.all_matter,
        over="seeds",
    )
    yield Statement(
        id_of("first_of_median", name, form),
        HERE,
        f"All heads of the first layer matter to the median prompt: {model}",
        "N_1 / h, importance being the rise of the median squared error,",
        at_least=config.all_matter,
        over="seeds",
        note="added after a first run, in which prompts that explode without a head ruled the mean",
    )
    if form == "first":
        return
    yield Statement(
        id_of("later", name, form),
        CHEN,
        f"One head of each later layer is enough: {model}",
        LATER,
        at_most=config.one_later,
        over="seeds",
    )
    yield Statement(
        id_of("later_that_matter", name, form),
        CHEN,
        f"One head of each later layer that matters is enough: {model}",
        f"{LATER}, among those whose rises sum to {config.dead:g} of the first layer's or more on "
        "average,",
        at_most=config.one_later,
        over="seeds",
        note="not judged if there is none, declared as 0 heads before",
    )


def about_all_models(config, names, longest: str):
    """Statements about models beside each other; ``longest`` is the one trained for longest."""
    yield Statement(
        "found",
        CHEN,
        "The models have found an algorithm that knows of sparsity: they beat ridge",
        "the risk over ridge's on the same prompts, for the worst of the models judged here,",
        at_most=config.found,
        over="seeds",
    )
    if "dense" in names:
        yield Statement(
            "dense",
            HERE,
            "Control: a dense task needs fewer heads in the first layer (depth 3, all heads)",
            "N_1 of the dense task minus that of the sparse one, seeds paired in order, trained "
            "independently,",
            at_most=config.fewer,
            over="seeds",
        )
    yield Statement(
        "settled",
        HERE,
        f"The count of first-layer heads has settled at the end of the training: {longest}",
        "|N_1 at the end - N_1 before the last part of the training|",
        at_most=config.settled,
        over="seeds",
    )
    yield Statement(
        "ablations",
        HERE,
        "Zero, mean and resample ablation rank the heads of a layer alike (depth 3, all heads)",
        "the rank correlation with zero ablation over the heads of a layer, averaged over layers, "
        "for the other ablation that agrees less,",
        at_least=config.agree,
        over="seeds",
    )
    yield Statement(
        "representative",
        HERE,
        "All heads of the first layer matter in the orthogonal representative of the model too",
        "N_1 / h, for the model where it is least,",
        at_least=config.all_matter,
        over="seeds",
    )
    yield Statement(
        "construction",
        CHEN,
        "Heads of the first layer resemble those of preprocess_then_optimise",
        f"the similarity to its matched head, minus {RANDOM}",
        at_least=config.alike,
        over="seeds",
    )
    yield Statement(
        "seeds",
        HERE,
        "Attention patterns of the first layer are alike from seed to seed",
        f"the correlation of matched heads' attention with other seeds', minus {RANDOM}",
        at_least=config.alike,
        over="seeds",
        note="seeds share pairs: the interval is too narrow",
    )
