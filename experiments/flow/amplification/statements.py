"""What `amplification` judges, by the criteria in its Config; fixed before its first run."""

from lsa_lab.claims import Statement

THEOREM = "A1 (2508.00385), Theorem 1"
OWN = "derived here"
CHANGE = "the change of the median log ratio from the first layer to the last"
WITH_WHAT = {"softmax": "", "norm": " with norm", "MLP": " with norm and MLP"}


def statements(config) -> tuple[Statement, ...]:
    return (
        *_about_random_linear_stacks(config),
        *_about_nonlinear_and_trained_stacks(config),
        *_about_constructions(config),
        *_about_residual_connections(config),
        *_about_self_coupling(config),
    )


def _about_random_linear_stacks(config):
    return (
        Statement(
            "theorem_1",
            THEOREM,
            "In random linear stacks the ratio of two flows grows with every layer",
            "the share of pairs for which it does, at the gain and tying with the most,",
            "median",
            at_least=config.generic,
        ),
        Statement(
            "order",
            f"modelled on {THEOREM}",
            "In random linear stacks the demonstration ahead after one layer stays ahead",
            "the share of pairs that turn, at the gain and tying with the fewest,",
            "median",
            at_most=1 - config.generic,
        ),
        Statement(
            "large",
            OWN,
            "Random linear stacks of the largest gain amplify, each demonstration alone",
            f"{CHANGE}, tied or not, whichever is less,",
            "median",
            at_least=config.clear,
        ),
        Statement(
            "small",
            OWN,
            "Random linear stacks of the smallest gain leave the ratio as it is",
            f"{CHANGE}, tied or not, whichever is further from 0,",
            "median",
            margin=config.clear,
        ),
        Statement(
            "shared_prompt",
            "modelled on A1 (2508.00385), its third open question",
            "Random linear stacks amplify when both demonstrations share a prompt",
            CHANGE,
            "median",
            at_least=config.clear,
            note="statement added after a first run",
        ),
    )


def _about_nonlinear_and_trained_stacks(config):
    source = "A1 (2508.00385), its second open question"
    amplifies = {"statistic": "median", "at_least": config.clear}
    for kind in config.kinds[1:]:
        says = f"Random softmax stacks{WITH_WHAT[kind]} amplify"
        yield Statement(f"{kind}_random", source, says, CHANGE, **amplifies)
    for kind in config.trained_kinds:
        if kind == "linear":
            what, of_kind = "linear stacks", f"modelled on {THEOREM}"
        else:
            what, of_kind = f"softmax stacks{WITH_WHAT[kind]}", source
        says = f"Trained {what} amplify"
        yield Statement(f"{kind}_trained", of_kind, says, CHANGE, **amplifies)


def _about_constructions(config):
    equalise = {
        "pull": "Negative feedback, w_kq = -w_pv = cI, equalises",
        "descent": "Layers that are steps of gradient descent equalise",
        "GD++": "Layers that are steps of GD++ equalise",
        "prior": "Steps of descent from a prior in the weights equalise",
    }
    says = "Positive feedback, w_kq = w_pv = cI, amplifies"
    yield Statement("push", OWN, says, CHANGE, "median", at_least=config.clear)
    for name, says in equalise.items():
        yield Statement(name, OWN, says, CHANGE, "median", at_most=-config.clear)


def _about_residual_connections(config):
    for kind in ("linear", "softmax"):
        if kind in config.kinds:
            yield Statement(
                f"{kind}_residual",
                "A1 (2508.00385), its limitation on residual connections",
                f"The residual connection dampens amplification in random {kind} stacks",
                f"{CHANGE}, with a residual weight of {config.skips[0]:g} minus that with 1,",
                "median",
                at_least=0,
            )


def _about_self_coupling(config):
    order = "The order of self-couplings κ = d·K P d"
    right = "the share of pairs with κ > -1 for which it is right"
    return (
        Statement(
            "kappa_contribution",
            OWN,
            f"{order} decides which contribution grows, where demonstrations are frozen",
            right,
            "median",
            at_least=config.exact,
        ),
        Statement(
            "kappa_frozen",
            OWN,
            f"{order} predicts which flow grows, where demonstrations are frozen",
            right,
            "median",
            at_least=config.predicts,
        ),
        Statement(
            "kappa",
            OWN,
            f"{order} predicts which flow grows in tied stacks without a mask, as A1's",
            right,
            "median",
            at_least=config.predicts,
        ),
    )
