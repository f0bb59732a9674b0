"""The statements of `preprocess_then_optimise`, fixed before its first run."""

from lsa_lab.claims import Statement

HERE = "derived here"
CHEN = "modelled on Chen et al. 2408.04532"

OVER_RAW = "the risk over that of raw descent"
OVER_RIDGE = "the risk over that of ridge"
MORE_PROMPTS = "twice the prompts of first runs"


def statements(config) -> tuple[Statement, ...]:
    return (
        *_about_the_construction(config),
        *_about_a_few_steps(config),
        *_about_many_steps(config),
        *_about_learned_features(config),
        *_about_models(config),
    )


def _about_the_construction(config):
    yield Statement(
        "exact",
        HERE,
        "Heads that preprocess, then one head a step, are the algorithm, with d heads or fewer",
        "largest deviation over prompts, layers and numbers of heads",
        "value",
        at_most=config.exact,
    )
    yield Statement(
        "broken",
        HERE,
        "Control: without one of its first heads the construction is another algorithm",
        "largest deviation, for the number of heads where it is least,",
        "value",
        at_least=config.broken,
    )


def _about_a_few_steps(config):
    last = f"{OVER_RAW} after {config.depth} steps"
    later = f"the risk after {config.depth - 1} steps over that of raw descent after {config.depth}"
    yield Statement(
        "slow",
        HERE,
        "A few steps on preprocessed covariates, of one size for all prompts, are worse than as "
        "many on raw ones",
        f"{OVER_RAW}, at the number of steps where it is least,",
        "median",
        at_least=config.slow,
    )
    yield Statement(
        "mixed",
        HERE,
        "The mixed preconditioner is at no number of steps worse than plain descent",
        f"{OVER_RAW}, at the number of steps where it is most,",
        "median",
        at_most=config.no_worse,
        note="0.99, and it held, in a first run with another start of the search",
    )
    yield Statement(
        "mixed_gain",
        HERE,
        f"After {config.depth} steps the mixed preconditioner is clearly better than plain descent",
        last,
        "median",
        at_most=config.gain,
    )
    yield Statement(
        "layer_for_layer",
        HERE,
        "The mixed preconditioner is better even if the layer that preprocesses costs a step",
        later,
        "median",
        at_most=config.layer,
    )
    yield Statement(
        "mixed_normalised",
        HERE,
        f"With R/|R| the mixed preconditioner is clearly better after {config.depth} steps",
        last,
        "median",
        at_most=config.gain,
        note="rule and criterion added after a first run",
    )
    yield Statement(
        "normalised_layer_for_layer",
        HERE,
        "With R/|R| it is better even if the layer that preprocesses costs a step",
        later,
        "median",
        at_most=config.layer,
        note="added after a first run",
    )


def _about_many_steps(config):
    yield Statement(
        "best_step",
        f"{HERE}; {CHEN}",
        "At its best step descent on x̃ beats every rotation-invariant rule linear in the labels",
        f"{OVER_RIDGE}, which reaches the bound,",
        "median",
        at_most=config.best,
    )
    yield Statement(
        "best_step_for_all",
        f"{HERE}; {CHEN}",
        "It does so even with one step size for all prompts, if the steps are many enough",
        OVER_RIDGE,
        "median",
        at_most=config.best,
    )
    yield Statement(
        "heads",
        CHEN,
        "Fewer than d heads preprocess less well",
        "the risk with d heads over that with fewer, each at its best step, where it is most,",
        "median",
        at_most=config.heads_gain,
    )
    yield Statement(
        "plateau",
        f"{HERE}; {CHEN}",
        "In a wide task with many demonstrations preprocessing pays for s coordinates",
        "n · excess / (σ² s) at the best step",
        "median",
        at_most=config.plateau,
    )
    yield Statement(
        "dense",
        f"{HERE}; {CHEN}",
        "There plain descent pays for all d coordinates",
        "n · excess / (σ² d) at the best step",
        "median",
        at_least=config.dense,
        note="four times the prompts of a first, undecided run",
    )


def _about_learned_features(config):
    def over_raw(features: str) -> str:
        return f"the risk of descent on {features} over that on raw covariates, at the best steps"

    yield Statement(
        "learned",
        CHEN,
        "Descent on what the first layer of the model with all heads writes beats raw descent",
        over_raw("its tokens"),
        at_most=config.learned,
        over="seeds",
        note=f"{MORE_PROMPTS}, one of which was undecided",
    )
    yield Statement(
        "learned_white",
        f"{HERE}; {CHEN}",
        "So does descent on these tokens made white over prompts: their scale is the model's own "
        "affair",
        over_raw("white tokens"),
        at_most=config.learned,
        over="seeds",
        note=f"{MORE_PROMPTS}, in which it held",
    )
    yield Statement(
        "pattern",
        CHEN,
        "So does descent on those of a model with all heads in its first layer only",
        over_raw("its tokens"),
        at_most=config.learned,
        over="seeds",
        note=f"{MORE_PROMPTS}, one of which was undecided",
    )
    yield Statement(
        "single",
        CHEN,
        "Descent on those of the single-head model does not",
        over_raw("its tokens"),
        at_least=config.unlearned,
        over="seeds",
    )
    yield Statement(
        "more_heads",
        CHEN,
        "All heads write better features than a single one",
        "the risk of descent on tokens of all heads over that on those of one, at the best steps",
        at_most=config.learned,
        over="seeds",
        note="twice the prompts of first, undecided runs",
    )
    yield Statement(
        "shuffled",
        HERE,
        "Control: features that the model makes of shuffled labels do not help",
        over_raw("them"),
        at_least=config.nothing,
        over="seeds",
    )


def _about_models(config):
    yield Statement(
        "later_layers",
        CHEN,
        "The later layers of the model with all heads do what descent on its features does",
        "the model's risk over that of descent on its tokens at the best step",
        at_least=1 / config.like_descent,
        at_most=config.like_descent,
        over="seeds",
    )
    yield Statement(
        "model",
        CHEN,
        "The model with all heads beats every rule that commutes with rotations",
        "its risk over that of the best such rule",
        at_most=config.sparse,
        over="seeds",
    )
