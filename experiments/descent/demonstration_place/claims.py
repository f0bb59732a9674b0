"""What `demonstration_place` judges: what a place at an end has over the middle."""

from experiments.descent.demonstration_place.config import CAUSAL
from experiments.descent.demonstration_place.places import NEAR, Places
from experiments.descent.specs import spec_of
from lsa_lab.judging.statements import Statement, grid

A2 = "A2 (2406.03768), Remark 1, our reading, in our setting"
SHARES = "as a share of the mean over places"
PLACES = {"beginning": "first", "end": "last"}
READINGS = {"error": "exact", "noisy": "noisy"}  # an error by its label


def numbers(dataset) -> Places:
    return Places(dataset)


def statements(config) -> tuple[Statement, ...]:
    runs = spec_of(config, CAUSAL).training.seeds
    middle = "the error with it in the middle half of the places less that with it"
    more = dict(at_least=0.05)
    noisy = dict(
        lead="With a label as noisy as the others' it",
        shape="With a label as noisy as the others' performance over places",
        note="",
        revision="added: an exact label rewards whatever weight a place has",
        redrawn=f"{runs} fresh runs, 9 before" if runs > 9 else "",
        short="noisy label",
    )
    exact = dict(
        shape="Over its places the performance of trained causal models",
        revision="",
        redrawn="",
        short="error",
    )

    def end_words(reading, place):
        beginning = place == "beginning"
        lead = "the relevant demonstration" if beginning else "it"
        note = (
            "of Liu et al. (2024) A2 reports that models do better with information at the "
            "beginning or at the end; ours have no positions, only the mask"
        )
        own = dict(lead=f"To trained causal models {lead}", note=note if beginning else "")
        return (noisy if reading == "noisy" else exact | own) | dict(nth=PLACES[place])

    def u_words(reading):
        note = "the same on both sides, without a single place that sticks out"
        return noisy if reading == "noisy" else exact | dict(note=note)

    looked = dict(note="{note}", revision="{revision}", redrawn="{redrawn}")
    return (
        Statement(
            "worth_at_the_ends",
            A2,
            "{lead} is worth more at the {place} than in the middle",
            f"{middle} in the {{nth}} place, {SHARES},",
            label="{short}: {nth} place",
            sample=lambda c, reading, place: c.trained(c.end(reading, place)),
            cells=grid(
                "beginning end noisy_beginning noisy_end",
                reading=READINGS,
                place=PLACES,
            ),
            words=end_words,
            message="To trained causal models the relevant demonstration, its label exact or "
            "noisy, is worth more at the beginning and at the end than in the middle",
            **looked,
            **more,
        ),
        Statement(
            "worth_is_a_u",
            A2,
            "{shape} has the shape of a U",
            f"{middle} in the first quarter or the last, whichever is worse on average over the "
            f"other runs, {SHARES},",
            label="{short}: worse quarter",
            sample=lambda c, reading: c.trained(c.lesser_quarter(reading)),
            cells=grid("u_shape noisy_u_shape", reading=READINGS),
            words=u_words,
            message="Over the places of the relevant demonstration, its label exact or noisy, the "
            "performance of trained causal models has the shape of a U",
            **looked,
            **more,
        ),
        Statement(
            "untrained",
            "derived here",
            "Untrained causal models have no such shape",
            f"{middle} in the first and the last quarter, {SHARES},",
            margin=0.02,
            note="the control; that without the mask no place differs is a theorem",
            label="error, untrained: both",
            sample=lambda c: c.both_ends("error"),
        ),
        *about_influence(more),
        Statement(
            "it_helps",
            "derived here",
            "The relevant demonstration helps trained causal models, wherever it stands",
            "the error with it in its worst place over that with a demonstration as in training in "
            "its stead,",
            "ratio",
            at_most=0.9,
            note="if not, no place of it says anything",
            sample=lambda c: c.trained(c.worst_help),
        ),
        Statement(
            "well_trained",
            "derived here",
            "The causal models are well trained",
            "the excess risk over that of least squares, on prompts as in training,",
            "ratio",
            at_most=NEAR,
            note="if not, the rows on trained models judge nobody and are left out",
            sample=lambda c: c.over_least_squares,
        ),
    )


def about_influence(more) -> tuple[Statement, ...]:
    """The other reading: what the label of any demonstration moves, by its place."""
    size = "the root mean square of ∂ŷ/∂y_i"
    middle = f"less that in the middle half, {SHARES},"
    words = {
        "beginning": dict(
            lead="Of demonstrations as in training, the first moves trained causal models",
            note="the other reading: to the Bayes rule all places are alike",
        ),
        "end": dict(lead="The last moves them", note=""),
    }
    return (
        Statement(
            "influence_at_the_ends",
            A2,
            "{lead} more than those in the middle do",
            f"{size} of the {{nth}} place {middle}",
            note="{note}",
            label="influence: {nth} place",
            sample=lambda c, place: c.trained(c.end("influence", place)),
            cells=grid("influence_beginning influence_end", place=PLACES),
            words=lambda place: words[place] | dict(nth=PLACES[place]),
            message="Of demonstrations as in training, the first and the last move trained causal "
            "models more than those in the middle do",
            **more,
        ),
        Statement(
            "influence_u_shape",
            A2,
            "Over places the influence of demonstrations has the shape of a U",
            f"{size} in the first quarter or the last, whichever is less on average over the "
            f"other runs, {middle}",
            label="influence: lesser quarter",
            sample=lambda c: c.trained(c.lesser_quarter("influence")),
            **more,
        ),
        Statement(
            "influence_untrained",
            "derived here",
            "On untrained causal models no place has more influence",
            f"{size} in the first and the last quarter {middle}",
            margin=0.02,
            note="the control: what the mask does by itself; random weights differ widely, and "
            "some hundred runs would decide",
            label="influence, untrained: both",
            sample=lambda c: c.both_ends("influence"),
        ),
    )
