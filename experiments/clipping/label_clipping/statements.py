"""What `label_clipping` judges, by the criteria in its Config."""

from lsa_lab.claims import Statement

FIGURE_1 = "A2 (2406.03768), figure 1, in our setting"
FIGURE_2 = "A2 (2406.03768), figure 2, our reading, in our setting"
SECTION_2 = "A2 (2406.03768), section 2.2, in our setting"
PARTS = ("attention", "mlp")

# After a look at these models with other prompts: no shallow layer collapses, so that differences
# are thousandths, of which no sign says anything.
REVISION = "a difference of {flat:g} counts; it was any above 0"
REDRAWN = "fresh prompts, as many"


def shots(config) -> tuple[int, int]:
    """The fewest and the most demonstrations."""
    lengths = config.model.task.lengths
    return min(lengths), max(lengths)


def statements(config) -> tuple[Statement, ...]:
    listed = [row for part in PARTS for row in _about_ends(config, part)]
    return (*listed, *_about_gains(config), *_about_models(config))


def _about_ends(config, part):
    few, n = shots(config)
    place = {"attention": "attention", "mlp": "MLPs"}[part]
    shallow, deep = (f"{end} {config.ends} layers" for end in ("the first", "the last"))
    high = f"averaged over rates >= {config.high:g}"
    revised = dict(revision=REVISION.format(flat=config.flat), redrawn=REDRAWN)
    less = f"at {few} shots less that at {n}, {shallow}, one at a time, {high},"
    return (
        Statement(
            f"{part}_deep_is_flat",
            FIGURE_1,
            f"In the {place} of our classifiers deep layers can be reduced drastically without "
            "much degradation",
            f"the change of accuracy, {deep}, one at a time, {high},",
            at_least=-config.flat,
        ),
        Statement(
            f"{part}_shallow_collapses",
            FIGURE_1,
            f"Clipping the {place} of a shallow layer sharply leaves our classifiers guessing",
            f"accuracy less .5, {shallow}, one at a time, clipped at {max(config.rates):g},",
            margin=config.guess,
        ),
        Statement(
            f"{part}_deep_tolerates_more",
            FIGURE_1,
            f"In the {place} of our classifiers deep layers tolerate more clipping than shallow "
            "ones",
            f"accuracy with {deep} clipped less that with {shallow}, one at a time, {high},",
            at_least=config.flat,
            **revised,
        ),
        Statement(
            f"{part}_few_shots_fall_less",
            FIGURE_2,
            f"With fewer shots, clipping shallow {place} costs less accuracy",
            f"the fall of accuracy {less}",
            at_most=-config.flat,
            **revised,
        ),
        Statement(
            f"{part}_few_shots_lose_less",
            FIGURE_2,
            f"With fewer shots, clipping shallow {place} costs a smaller share of what accuracy "
            "is above .5",
            f"the fall of accuracy over accuracy - .5 {less}",
            at_most=-config.flat,
            note="at few shots there is less to lose: the share takes that out",
            **revised,
        ),
    )


def _about_gains(config):
    few, n = shots(config)
    chosen = "by the edit that is best for the other runs"
    rows = [
        Statement(
            f"helps_{name}",
            FIGURE_1,
            f"At {count} shots clipping one part of one layer improves our classifiers",
            f"the change of accuracy {chosen},",
            at_least=config.gain,
            note="leaving out the run that is judged, no edit is chosen by its own result",
        )
        for name, count in (("few", few), ("trained", n))
    ]
    threshold = Statement(
        "threshold",
        "derived here",
        "A threshold that is moved does as well as the best edit",
        "the accuracy at the threshold that is best for the other half of the prompts less that "
        f"{chosen}, at {n} shots,",
        at_least=-config.gain,
        note="our classes are as frequent: on language models, clipping moved the threshold",
    )
    return [*rows, threshold]


def _about_models(config):
    few, n = shots(config)
    near = [
        Statement(
            f"near_bayes_{name}",
            "derived here",
            f"At {count} shots our classifiers are nearly as good as the Bayes rule",
            "the accuracy of the Bayes rule on the same prompts less theirs,",
            at_most=config.near,
            note="if not, they are not well trained and the other rows judge nobody",
        )
        for name, count in (("few", few), ("trained", n))
    ]
    return (
        *near,
        Statement(
            "more_shots_are_better",
            SECTION_2,
            "Without clipping our classifiers improve with the number of shots",
            f"accuracy at {n} shots less that at {few},",
            at_least=0.0,
        ),
        Statement(
            "more_shots_narrow",
            f"{SECTION_2}, our reading",
            "More shots narrow what our classifiers answer",
            f"the mean entropy of the label's probability, in bits, at {n} shots less at {few},",
            at_most=0.0,
            note="the Bayes rule's entropy falls as well; A2 speaks of all words, we have two",
        ),
        Statement(
            "untrained_guesses",
            "derived here",
            "Untrained, our classifiers guess",
            f"accuracy less .5 at {n} shots,",
            at_most=2 * config.guess,
            note="the control; one is as often below .5 as above",
        ),
    )
