"""The decoder that a Config names, and what is measured with it in every run on every text task.

A decoder comes from a source, from a file or a folder, or is a tiny random one.
"""

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.language.language_config import RANDOM
from experiments.language.sentences import INVENTED_WORDS
from lsa_lab import lm
from lsa_lab.lm import sources, tokens, weights
from lsa_lab.lm.config import Config
from lsa_lab.lm.decoder import Params
from lsa_lab.lm.sources import SOURCES
from lsa_lab.training import checkpoints

_WORDS = ("Review:", "Sentiment:", "negative", "positive", *INVENTED_WORDS)


def decoder(config) -> lm.Decoder:
    """Config, params and tokenizer of ``config.model``; refused if its file is another one."""
    if config.model == RANDOM:
        return _random()
    path = sources.find(config.model) if config.model in SOURCES else Path(config.model)
    if config.sha256 and sources.hash_model(path) != config.sha256:
        raise ValueError(
            f"{path} is not the model whose sha256 the config holds: it is damaged, or give its "
            f"own, --config.sha256 {sources.hash_model(path)}, and --config.model-name its name"
        )
    return lm.load(path)


def _random() -> lm.Decoder:
    """Four layers of width 16, of Llama's kind; NumPy draws them, so that nothing is compiled."""
    shape = dict(num_layers=4, num_heads=4, num_groups=2, key_width=4, width=16, mlp_width=32)
    config = Config(**shape, vocabulary=1 + len(_WORDS), context=256, rotary_width=4, tied=True)
    rng, leaves = np.random.default_rng(0), {}
    for name, size in weights.shapes(config).items():
        normal = rng.standard_normal(size, np.float32)
        scaled = 1 + 0.1 * normal if name.endswith("_scale") else normal * size[-1] ** -0.5
        leaves[name] = jnp.asarray(scaled, jnp.float32)
    return lm.Decoder(config, Params(**leaves), tokens.make_word_tokenizer(_WORDS))


def _code() -> str:
    """A digest of this theme's source: what was measured by other code is not taken up."""
    total = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        total.update(path.read_bytes())
    return total.hexdigest()


def cells(
    places: Sequence[tuple[int, ...]],
    measure: Callable[..., Mapping[str, Any]],
    progress=None,
    folder: Path | None = None,
    label: str = "cells",
    **facts: str,
) -> dict[str, np.ndarray]:
    """Return the arrays of ``measure(*place)`` of all places, stacked. With a folder each place is
    kept there as soon as it is measured, and the same call resumes."""
    facts = {
        "measured": label,
        "jax": jax.__version__,
        "device": jax.devices()[0].device_kind,
    } | facts
    bar = progress.add_task(label, total=len(places)) if progress else None
    rows = []
    for place in places:
        file = folder and folder / f"{'-'.join(map(str, place))}.cell"
        if file and file.exists():
            saved, row = checkpoints.read(file)
            if saved != facts:
                raise ValueError(f"{file} has other facts than this call: delete it")
        else:
            row = {f"['{name}']": np.asarray(x) for name, x in measure(*place).items()}
            if file:
                checkpoints.save(file, {name[2:-2]: x for name, x in row.items()}, facts)
        rows.append(row)
        if progress:
            progress.advance(bar)
    return {name[2:-2]: np.stack([row[name] for row in rows]) for name in rows[0]}


def table(
    texts,
    measure: Callable[[int, int], Mapping[str, Any]],
    axes: Mapping[str, Sequence[str]],
    progress=None,
    folder: Path | None = None,
    label: str = "cells",
    /,
    **coordinates: Sequence[Any],
) -> xr.Dataset:
    """Variables with the axes task and run before their own, of ``measure(task, run)``.

    ``axes`` are the own ones of every array that it gives, ``coordinates`` what stands on them.
    With a folder each run is kept there.
    """
    shape = (len(texts.tasks), texts.runs)
    places = list(itertools.product(*map(range, shape)))
    arrays = cells(places, measure, progress, folder, label, code=_code())
    variables = {
        name: (("task", "run", *axes[name]), values.reshape(*shape, *values.shape[1:]))
        for name, values in arrays.items()
    }
    names = [name for name, _ in texts.tasks]
    return xr.Dataset(variables, {"task": names} | {k: list(v) for k, v in coordinates.items()})
