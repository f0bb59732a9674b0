"""What `depth` judges, fixed before its first run but for what the rows say."""

from lsa_lab.claims import Statement


def statements(config) -> tuple[Statement, ...]:
    return (*about_descent(config), *about_plus_plus(config), *about_shapes(config))


# Stacks explode on rare prompts, and the mean over runs with them.
MEDIAN = "it was the mean"
TENTH = "the threshold of a tenth was chosen on earlier runs"
ADDED = f"added, for few of them were trained; {TENTH}"
RATIO = "the risk ratio, trained over tuned, at the worst depth and covariance"
FAR = "most of them are far from trained: says nothing of stacks that are"


def fresh(config) -> str:
    before = "24, and 8" if config.runs > 24 else "8"
    return f"{config.runs} fresh runs, {before} before"


def tuned(config) -> str:
    """What was changed when GD++, tuned on few prompts, had lost to these runs by a tenth."""
    return (
        f"the reference tuned on {config.tuning_prompts} prompts, not on {config.coarse_prompts}, "
        "after a look at these runs"
    )


def settled(config, source, id, says, measured, **more) -> Statement:
    """A statement about the runs whose training has settled, where enough have."""
    return Statement(
        f"{id}_settled",
        source,
        says,
        f"{measured} with {config.settled_runs} settled runs, over these,",
        "median",
        **more,
        note=f"settled: a Gauss-Newton step from half of the prompts changes the risk on the other "
        f"half by less than {config.settled:g} of it, which may be more than the bound allows for; "
        "the caption names the depths with so many",
    )


def about_descent(config) -> tuple[Statement, ...]:
    source = "von Oswald et al. 2212.07677, in our setting"
    says = "predict at least as well as L tuned steps of gradient descent"
    at_most = config.ratio_to_descent
    return (
        Statement(
            "descent",
            source,
            f"After {config.steps_per_layer} steps a layer our stacks of L layers {says}",
            RATIO,
            "median",
            at_most=at_most,
            note=FAR,
            revision=f"{MEDIAN}; {tuned(config)}",
        ),
        settled(
            config,
            source,
            "descent",
            f"L layers whose training has settled {says}",
            RATIO,
            revision=f"added after a look at these runs; {TENTH}; {tuned(config)}",
            at_most=at_most,
        ),
        Statement(
            "every_demonstration",
            "derived here",
            "A descent baseline that drops the last demonstration is worse than one that does not",
            "mean difference of squared errors on the same prompts, where it is least clear,",
            "estimate",
            at_least=0.0,
            note="the depth and covariance with the least difference for its error",
            revision=tuned(config),
        ),
    )


def about_plus_plus(config) -> tuple[Statement, ...]:
    source = "von Oswald et al. 2212.07677; Ahn et al. 2306.00297; in our setting"
    bounds = dict(at_least=1 / config.ratio_to_plus_plus, at_most=config.ratio_to_plus_plus)
    return (
        Statement(
            "plus_plus",
            source,
            f"After {config.steps_per_layer} steps a layer our stacks have the risk of tuned GD++",
            RATIO,
            "median",
            **bounds,
            note=FAR,
            revision=f"{MEDIAN}; {tuned(config)}",
        ),
        settled(
            config,
            source,
            "plus_plus",
            "Stacks whose training has settled have the risk of tuned GD++, and no less",
            RATIO,
            revision=f"{ADDED}; {tuned(config)}",
            **bounds,
        ),
    )


def about_shapes(config) -> tuple[Statement, ...]:
    source = "Ahn et al. 2306.00297, in our setting"
    distance = "the distance to that shape at the worst layer, depth and covariance"
    return (
        Statement(
            "shapes",
            source,
            f"After {config.steps_per_layer} steps a layer our stacks have A_l ∝ Σ^{{-1}}, B_l ∝ I",
            distance,
            "median",
            at_most=config.distance,
            note=FAR,
            revision=MEDIAN,
            redrawn=fresh(config),
        ),
        settled(
            config,
            source,
            "shapes",
            "Where training has settled, the learned matrices are A_l ∝ Σ^{-1} and B_l ∝ I",
            distance,
            revision=ADDED,
            redrawn=fresh(config),
            at_most=config.distance,
        ),
    )
