"""The sizes of `lm_family`: its decoders, what they are trained on, and what is read."""

from dataclasses import dataclass
from typing import Annotated

from experiments.language.language_config import RANDOM, Model
from lsa_lab.harness.run.bounds import INCREASING, POSITIVE, Bounded, Seed, at_least, divides

MAPPED = ("mapping", "shuffled")  # label words of classes, and labels drawn anew


@dataclass(frozen=True)
class Size(Bounded):
    """A decoder in Llama's layout with heads 16 wide and an MLP twice as wide as the stream."""

    name: str  # as ids and figures call it
    depth: Annotated[int, at_least(1)]
    width: Annotated[int, at_least(16)]  # of the stream, a multiple of 16
    copying: bool = True  # False: it is shown mapping in place of copying


SHALLOW, SMALL = Size("shallow", 1, 64), Size("small", 2, 64)
UNCOPIED = Size("uncopied", 2, 64, copying=False)


@dataclass(frozen=True)
class Mixture(Bounded):
    """What every decoder is trained on: windows of text, and tasks in words."""

    sources: tuple[str, ...] = ("rotten_tomatoes", "imdb")  # texts; the first has the sentiments
    text_words: Annotated[int, at_least(1)] = 200_000  # of the texts, as many of each source
    vocabulary: Annotated[int, at_least(120)] = 512  # words, those of the tasks among them
    length: Annotated[int, at_least(24)] = 48  # tokens of a prompt
    sentence: Annotated[int, at_least(1)] = 15  # tokens of a review whose sentiment is asked
    # Prompts of a batch: of text, mapping, copying, counting, sentiment.
    shares: Annotated[tuple[int, int, int, int, int], at_least(1)] = (4, 24, 28, 4, 4)


@dataclass(frozen=True)
class Config(Model):
    """Sizes x seeds x checkpoints, read on fresh prompts; another decoder reads the same ones."""

    sizes: tuple[Size, ...] = (SMALL, SHALLOW, UNCOPIED)  # of the family
    mixture: Mixture = Mixture()
    runs: Annotated[int, at_least(2)] = 3  # seeds of every size
    steps: Annotated[int, at_least(2)] = 1600
    learning_rate: Annotated[float, POSITIVE] = 4e-3  # the largest
    look: Annotated[int, divides("steps")] = 100  # steps between two checkpoints
    # Demonstrations before a query.
    shots: Annotated[tuple[int, ...], at_least(0), INCREASING] = (0, 1, 2, 4, 8)
    prompts: Annotated[int, at_least(2)] = 300  # fresh ones, for every number read
    other_prompts: Annotated[int, at_least(2)] = 60  # of them, those that the other decoder reads
    seed: Seed = 2


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
