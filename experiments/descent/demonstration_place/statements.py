"""What `demonstration_place` judges, by the criteria in its Config."""

from functools import partial

from lsa_lab.claims import Statement

CAUSAL = "causal attention"  # the name of a model
A2 = "A2 (2406.03768), Remark 1, our reading, in our setting"
SHARES = "as a share of the mean over places"


def statements(config) -> tuple[Statement, ...]:
    about = (about_relevance, about_noisy_labels, about_influence, about_the_models)
    return tuple(row for rows in about for row in rows(config))


def about_relevance(config) -> tuple[Statement, ...]:
    """Performance by the place of the demonstration that answers the query."""
    middle = "the error with it in the middle half of the places less that with it"
    return (
        Statement(
            "beginning",
            A2,
            "To trained causal models the relevant demonstration is worth more at the beginning "
            "than in the middle",
            f"{middle} in the first place, {SHARES},",
            at_least=config.more,
            note="of Liu et al. (2024) A2 reports that models do better with information at the "
            "beginning or at the end; ours have no positions, only the mask",
        ),
        Statement(
            "end",
            A2,
            "To trained causal models it is worth more at the end than in the middle",
            f"{middle} in the last place, {SHARES},",
            at_least=config.more,
        ),
        Statement(
            "u_shape",
            A2,
            "Over its places the performance of trained causal models has the shape of a U",
            f"{middle} in the first quarter or the last, whichever is worse on average over the "
            f"other runs, {SHARES},",
            at_least=config.more,
            note="the same on both sides, without a single place that sticks out",
        ),
        Statement(
            "untrained",
            "derived here",
            "Untrained causal models have no such shape",
            f"{middle} in the first and the last quarter, {SHARES},",
            margin=config.flat,
            note="the control; that without the mask no place differs is a theorem",
        ),
    )


def about_noisy_labels(config) -> tuple[Statement, ...]:
    """The same where more weight on the relevant demonstration is no gain by itself."""
    runs = config.causal.training.seeds
    row = partial(
        Statement,
        source=A2,
        at_least=config.more,
        revision="added: an exact label rewards whatever weight a place has",
        redrawn=f"{runs} fresh runs, 9 before" if runs > 9 else "",
    )
    middle = "the error with it in the middle half of the places less that with it"
    return (
        row(
            "noisy_beginning",
            says="With a label as noisy as the others' it is worth more at the beginning than in "
            "the middle",
            measured=f"{middle} in the first place, {SHARES},",
        ),
        row(
            "noisy_end",
            says="With a label as noisy as the others' it is worth more at the end than in the "
            "middle",
            measured=f"{middle} in the last place, {SHARES},",
        ),
        row(
            "noisy_u_shape",
            says="With a label as noisy as the others' performance over places has the shape of a "
            "U",
            measured=f"{middle} in the first quarter or the last, whichever is worse on average "
            f"over the other runs, {SHARES},",
        ),
    )


def about_influence(config) -> tuple[Statement, ...]:
    """The other reading: what the label of any demonstration moves, by its place."""
    size = "the root mean square of ∂ŷ/∂y_i"
    middle = f"less that in the middle half, {SHARES},"
    return (
        Statement(
            "influence_beginning",
            A2,
            "Of demonstrations as in training, the first moves trained causal models more than "
            "those in the middle do",
            f"{size} of the first place {middle}",
            at_least=config.more,
            note="the other reading: to the Bayes rule all places are alike",
        ),
        Statement(
            "influence_end",
            A2,
            "The last moves them more than those in the middle do",
            f"{size} of the last place {middle}",
            at_least=config.more,
        ),
        Statement(
            "influence_u_shape",
            A2,
            "Over places the influence of demonstrations has the shape of a U",
            f"{size} in the first quarter or the last, whichever is less on average over the "
            f"other runs, {middle}",
            at_least=config.more,
        ),
        Statement(
            "influence_untrained",
            "derived here",
            "On untrained causal models no place has more influence",
            f"{size} in the first and the last quarter {middle}",
            margin=config.flat,
            note="the control: what the mask does by itself; random weights differ widely, and "
            "some hundred runs would decide",
        ),
    )


def about_the_models(config) -> tuple[Statement, ...]:
    return (
        Statement(
            "it_helps",
            "derived here",
            "The relevant demonstration helps trained causal models, wherever it stands",
            "the error with it in its worst place over that with a demonstration as in training in "
            "its stead,",
            "ratio",
            at_most=config.helps,
            note="if not, no place of it says anything",
        ),
        Statement(
            "well_trained",
            "derived here",
            "The causal models are well trained",
            "the excess risk over that of least squares, on prompts as in training,",
            "ratio",
            at_most=config.near,
            note="if not, the rows on trained models judge nobody and are left out",
        ),
    )
