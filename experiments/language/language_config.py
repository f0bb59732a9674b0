"""What experiments on a language model share: the model, texts in classes, their sizes; no jax."""

from dataclasses import dataclass, replace

RANDOM = "random"  # in the place of a model: tiny random weights, of the smoke tier
PARTS = {"attention": "attention", "MLP": "mlp"}  # of a block, which A2 clips whole
_SMOLLM2 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"  # of the file


@dataclass(frozen=True)
class TextTask:
    """Sentences of some classes, each text up to so many words, as a prompt writes them."""

    title: str  # as figures call it
    source: str  # of lsa_lab.lm.text.load_sentences, or "invented"
    classes: tuple[str, ...]  # those of its classes that are told apart
    words: tuple[str, ...]  # the label of each, of which the first token is scored
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
    "newsgroups": TextTask(
        "newsgroups, space/hockey",
        "newsgroups",
        classes=("sci.space", "rec.sport.hockey"),
        words=("space", "hockey"),
        form="Post: {text}\nTopic: {label}\n\n",
        most_words=32,
    ),
    "tweets": TextTask(
        "tweets, Clinton/Trump",
        "tweets",
        classes=("HillaryClinton", "realDonaldTrump"),
        words=("Clinton", "Trump"),
        form="Tweet: {text}\nAuthor: {label}\n\n",
        most_words=32,
    ),
    "invented": TextTask("invented sentences", "invented", most_words=8, **_FILMS),
}


def text_tasks(*names: str, **changes) -> tuple[tuple[str, TextTask], ...]:
    """Some of these by name, as a Config holds them, with fields replaced in each."""
    return tuple((name, replace(TASKS[name], **changes)) for name in names)


@dataclass(frozen=True)
class Model:
    """A decoder: another one takes its file or folder, its name, and its sha256."""

    model: str = "smollm2"  # a source of lsa_lab.lm, "random", or a GGUF file or a folder
    model_name: str = "SmolLM2-135M, Q4_1"  # as captions and statements call it
    sha256: str = _SMOLLM2  # of the model's file or folder, as lm.sources has it; "" asks for none


@dataclass(frozen=True)
class Texts:
    """Texts in classes: every run has demonstrations and fresh sentences of its own."""

    tasks: tuple[tuple[str, TextTask], ...] = text_tasks(  # texts in classes, and how they are put
        "rotten_tomatoes", "imdb", "reuters"
    )
    shots: int = 4  # demonstrations before every sentence
    fresh: int = 200  # sentences of a run, in none of its demonstrations
    runs: int = 12  # sets of demonstrations, each with sentences of its own
    seed: int = 1


@dataclass(frozen=True)
class LanguageConfig(Texts, Model):
    """A decoder and texts in classes."""


def redrawn(config, before: int) -> str:
    """What rows say where a tier judges by more runs than those that first had a look."""
    return f"{config.runs} fresh runs, {before} before" if config.runs > before else ""


# What the smoke tier of every experiment on a language model has: nothing is fetched for it.
SMOKE_TEXTS = dict(tasks=text_tasks("invented"), shots=2, fresh=8, runs=2)
SMOKE = dict(model=RANDOM, model_name="a tiny random decoder", sha256="") | SMOKE_TEXTS
