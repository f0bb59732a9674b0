"""Texts in classes, and how they are put to a model: label words and template; no jax."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class TextTask:
    """Sentences of some classes, each text up to so many words, as a prompt writes them."""

    title: str  # as figures call it
    source: str  # of lsa_lab.lm.text.sentences, or "invented"
    classes: tuple[str, ...]  # those of its classes that are told apart
    words: tuple[str, ...]  # the label of each, one token of the model
    form: str  # of a demonstration
    most_words: int  # of a text, the later ones are cut off
    balanced: bool = True  # demonstrations have the classes equally often, else as they come


_REVIEW = "Review: {text}\nSentiment: {label}\n\n"
_FILMS = dict(classes=("negative", "positive"), words=("negative", "positive"), form=_REVIEW)

TASKS = {
    "rotten_tomatoes": TextTask("Rotten Tomatoes", "rotten_tomatoes", most_words=32, **_FILMS),
    "imdb": TextTask("IMDB", "imdb", most_words=32, **_FILMS),
    "reuters": TextTask(
        "Reuters R8, acq/earn",
        "reuters",
        classes=("acq", "earn"),
        words=("acquisition", "earnings"),
        form="News: {text}\nTopic: {label}\n\n",
        most_words=32,
    ),
    "invented": TextTask("invented sentences", "invented", most_words=8, **_FILMS),
}


def named(*names: str, **changes) -> tuple[tuple[str, TextTask], ...]:
    """Some of these by name, as a Config holds them, with fields replaced in each."""
    return tuple((name, dataclasses.replace(TASKS[name], **changes)) for name in names)


def variant(label: str, name: str, **changes) -> tuple[str, TextTask]:
    """One of these with fields replaced, under a name of its own."""
    return label, dataclasses.replace(TASKS[name], **changes)
