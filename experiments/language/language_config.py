"""What experiments on a language model share: the model, its texts and their sizes; no jax."""

from dataclasses import dataclass
from typing import Annotated

from experiments.language.text_tasks import TextTask, named
from lsa_lab.harness.run.bounds import Bounded, Seed, at_least
from lsa_lab.lm.sources import SOURCES

RANDOM = "random"  # in the place of a model: tiny random weights, of the smoke tier
_SMOLLM2 = next(iter(SOURCES["smollm2"].files.values()))


@dataclass(frozen=True)
class LanguageConfig(Bounded):
    """A decoder and texts in classes: every run has demonstrations and fresh sentences of its own.

    Another model takes its file or folder, its name, and the sha256 of the file ("" for a folder).
    """

    model: str = "smollm2"  # a source of lsa_lab.lm, "random", or a GGUF file or a folder
    model_name: str = "SmolLM2-135M, Q4_1"  # as captions and statements call it
    sha256: str = _SMOLLM2  # of the model's file
    tasks: tuple[tuple[str, TextTask], ...] = named(  # texts in classes, and how they are put
        "rotten_tomatoes", "imdb", "reuters"
    )
    shots: Annotated[int, at_least(0)] = 4  # demonstrations before every sentence
    fresh: Annotated[int, at_least(2)] = 200  # sentences of a run, in none of its demonstrations
    runs: Annotated[int, at_least(2)] = 12  # sets of demonstrations, each with sentences of its own
    seed: Seed = 1


def redrawn(config: LanguageConfig, before: int) -> str:
    """What rows say where a tier judges by more runs than those that first had a look."""
    return f"{config.runs} fresh runs, {before} before" if config.runs > before else ""


# What the smoke tier of every experiment on a language model has: nothing is fetched for it.
SMOKE = dict(
    model=RANDOM,
    model_name="a tiny random decoder",
    sha256="",
    tasks=named("invented"),
    shots=2,
    fresh=8,
    runs=2,
)
