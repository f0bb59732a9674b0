"""Decoders from disk, whose walk the analyses and selections of this library take."""

from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike

from lsa_lab.lm import folder, leaves
from lsa_lab.lm.config import Config
from lsa_lab.lm.weights import Params

__all__ = ["Config", "Decoder", "Params", "load"]


class Decoder(NamedTuple):
    """A language model as it lies on disk; without a tokenizer it takes token ids alone."""

    config: Config
    params: Params
    tokenizer: Any = None


def load(path: str | Path, dtype: DTypeLike = jnp.float32) -> Decoder:
    """The decoder of a GGUF file, or of a folder with config.json and safetensors."""
    path = Path(path)
    config, names, tensors = folder.read(path)
    return Decoder(config, leaves.params(tensors, names, config, dtype))
