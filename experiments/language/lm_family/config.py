"""The sizes of `lm_family`: its decoders, what they are trained on, and what is read."""

from dataclasses import dataclass

from experiments.language.language_config import RANDOM, Model

MAPPED = ("mapping", "shuffled")  # label words of classes, and labels drawn anew


@dataclass(frozen=True)
class Size:
    """A decoder in Llama's layout with heads 16 wide and an MLP twice as wide as the stream."""

    name: str  # as ids and figures call it
    depth: int
    width: int  # of the stream, a multiple of 16
    copying: bool = True  # False: it is shown mapping in place of copying


SHALLOW, SMALL = Size("shallow", 1, 64), Size("small", 2, 64)
UNCOPIED = Size("uncopied", 2, 64, copying=False)


@dataclass(frozen=True)
class Mixture:
    """What every decoder is trained on: windows of text, and tasks in words."""

    sources: tuple[str, ...] = ("rotten_tomatoes", "imdb")  # texts; the first has the sentiments
    text_words: int = 200_000  # of the texts, as many of each source
    vocabulary: int = 512  # words, those of the tasks among them
    length: int = 48  # tokens of a prompt
    sentence: int = 15  # tokens of a review whose sentiment is asked
    # Prompts of a batch: of text, mapping, copying, counting, sentiment.
    shares: tuple[int, int, int, int, int] = (4, 24, 28, 4, 4)


@dataclass(frozen=True)
class Config(Model):
    """Sizes x seeds x checkpoints, read on fresh prompts; another decoder reads the same ones."""

    sizes: tuple[Size, ...] = (SMALL, SHALLOW, UNCOPIED)  # of the family
    mixture: Mixture = Mixture()
    runs: int = 3  # seeds of every size
    steps: int = 1600
    learning_rate: float = 4e-3  # the largest
    look: int = 100  # steps between two checkpoints
    # Demonstrations before a query.
    shots: tuple[int, ...] = (0, 1, 2, 4, 8)
    prompts: int = 300  # fresh ones, for every number read
    other_prompts: int = 60  # of them, those that the other decoder reads
    seed: int = 2


TIERS = {
    "smoke": Config(
        model=RANDOM,
        model_name="a tiny random decoder",
        sha256="",
        sizes=(Size("shallow", 1, 16), Size("small", 2, 16), Size("uncopied", 2, 16, False)),
        mixture=Mixture(("invented",), 500, 160, 24, 5, (1, 1, 1, 1, 1)),
        runs=2,
        steps=4,
        look=2,
        prompts=8,
        other_prompts=4,
    ),
    "laptop": Config(),
    # 16 decoders of 107 000 to 230 000 weights.
    "paper": Config(
        sizes=(SHALLOW, SMALL, Size("deep", 4, 64), UNCOPIED),
        mixture=Mixture(text_words=12_000_000, vocabulary=1024),
        runs=4,
        prompts=600,
        other_prompts=200,
        seed=11,
    ),
}
