"""What `several_classes` judges: shares of the classes, and errors, of matched subsets."""

from lsa_lab.judging.statements import Statement, grid

TAGS = {"plain": "matching", "intercept": "matching, intercept"}  # rules, as ids have them
PROXIES = {"plain": "a proxy", "intercept": "a proxy with an intercept"}


def divergences(dataset, classes, tag):  # [R]
    return dataset.divergence.sel(classes=classes, rule=TAGS[tag]).values


def relative(dataset, classes, tag):  # [R]
    """The KL over the mean of random subsets in all runs."""
    kl = dataset.divergence.sel(classes=classes)
    return (kl.sel(rule=TAGS[tag]) / kl.sel(rule="random").mean("run")).values


def errors(dataset, classes, tag):  # [R]
    """The share of wrong answers less that of random subsets."""
    wrong = dataset.wrong.sel(classes=classes)
    return (wrong.sel(rule=TAGS[tag]) - wrong.sel(rule="random")).values


def statements(config) -> tuple[Statement, ...]:
    paper = "A3 (2506.04579), table 6"
    where = f"{{classes}} classes, {config.n} shots"
    before = "36, 48 and 12" if config.runs > 48 else "12"
    fresh = dict(redrawn=f"{config.runs} fresh runs, {before} before")

    def cells(end):
        pairs = [(f"plain_{k}{end}", f"intercept_{k}{end}") for k in config.classes]
        return grid(" ".join(sum(pairs, ())), classes=config.classes, tag=TAGS)

    matched = dict(
        words=lambda classes, tag: dict(proxy=PROXIES[tag]), label="{tag}, {classes}", **fresh
    )
    return (
        Statement(
            "random",
            f"{paper}, in our setting",
            f"Random subsets miss the shares of the classes as far as in the table ({where})",
            "the KL of their shares from the pool's, mean of draws",
            at_least=0.012,
            at_most=0.020,
            note="chance alone gives about (K - 1) / 2n",
            label="random, {classes}",
            sample=lambda data, classes: data.divergence.sel(classes=classes, rule="random").values,
            cells={f"random_{k}": dict(classes=k) for k in config.classes},
            message="Random subsets miss the shares of the classes as far as in the table, "
            "whatever the number of classes",
            **fresh,
        ),
        Statement(
            "matched",
            f"{paper}, in our setting",
            f"Matching by {{proxy}} keeps the shares as well as in the table ({where})",
            "the KL of the subset's shares from the pool's",
            at_most=0.008,
            sample=divergences,
            cells=cells(""),
            message="Matching keeps the shares as well as in the table, by a proxy with an "
            "intercept and without one",
            **matched,
        ),
        Statement(
            "shares",
            f"modelled on {paper}",
            f"Matching by {{proxy}} keeps them twice as well as chance does ({where})",
            "the KL over the mean KL of random subsets in all runs",
            at_most=0.5,
            sample=relative,
            cells=cells("_shares"),
            message="Matching keeps the shares of the classes twice as well as chance does, by a "
            "proxy with an intercept and without one",
            **matched,
        ),
        Statement(
            "error",
            "A3 (2506.04579), abstract, in our setting",
            f"Demonstrations matched by {{proxy}} teach the classes better than random ones "
            f"({where})",
            "the share of wrong answers less the mean of random subsets, same queries",
            at_most=0.0,
            sample=errors,
            cells=cells("_error"),
            message="Demonstrations matched by a proxy teach the classes better than random ones, "
            "with an intercept and without one",
            **matched,
        ),
    )
