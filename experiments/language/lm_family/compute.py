"""Train the family, keep its decoders, and ask them and another decoder the same prompts."""

import jax
import numpy as np
import xarray as xr

from experiments.language import decoders, vocabulary
from experiments.language.lm_family import family, mixture
from experiments.language.lm_family.config import MAPPED, Config
from lsa_lab import lm
from lsa_lab.lm import weights
from lsa_lab.training.status import refuse_divergence


def compute(config: Config, *, progress=None, checkpoints=None):
    corpus = mixture.read(config.mixture, config.seed)
    by_size = []
    for size in config.sizes:
        run = family.train(size, config, corpus, progress)
        refuse_divergence(run.status, f"lm_family: {size.name}")
        keep(run, size, config, corpus)
        by_size.append({name: np.asarray(rows) for name, rows in run.history["watch"].items()})
    axes = "size", "run", "step", "shots"
    rows = {name: np.stack([own[name] for own in by_size]) for name in by_size[0]}
    variables = {name: (axes[: values.ndim], values) for name, values in rows.items()}
    variables |= {f"other_{name}": ("shots", own) for name, own in ask_other(config).items()}
    counts = [weights.count_weights(family.shape_of(size, config)) for size in config.sizes]
    names, steps = [size.name for size in config.sizes], range(0, config.steps + 1, config.look)
    places = dict(size=names, step=list(steps), shots=list(config.shots))
    return xr.Dataset(variables | {"weights": ("size", counts)}, places)


def keep(run, size, config: Config, corpus: mixture.Corpus) -> None:
    """Write every decoder as a folder beside the checkpoint, for ``--model`` to name."""
    place, shape = family.place_of(size, config), family.shape_of(size, config)
    for i in range(config.runs):
        params = jax.tree.map(lambda leaf, i=i: leaf[i], run.params)
        decoder = lm.Decoder(shape, params, corpus.tokenizer)
        lm.save(place.with_name(f"{place.name}-{i + 1}"), decoder)


def ask_other(config: Config) -> dict[str, np.ndarray]:  # each [shots]
    """What the config's own decoder answers on prompts of the same law."""
    model = decoders.decoder(config)
    if model.tokenizer is None:
        raise ValueError(f"{config.model_name} has no tokenizer: prompts are written in words")
    keys = jax.random.split(jax.random.key(config.seed), config.other_prompts)
    words, shape = vocabulary.words_of(model.tokenizer), model.config
    ask = jax.jit(lambda params: family.shares_right(params, shape, words, config.shots, keys))
    shares = (np.asarray(share, float) for share in ask(model.params))
    return dict(zip(MAPPED, shares, strict=True))
