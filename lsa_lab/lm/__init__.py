"""Decoders from disk, whose walk the analyses and selections of this library take.

``import lsa_lab.lm`` leaves jax out, for those who read texts, fetch sources or judge scores.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jax.typing import DTypeLike

    from lsa_lab.lm.config import Config
    from lsa_lab.lm.weights import Params

__all__ = ["Decoder", "load"]


class Decoder(NamedTuple):
    """A language model as it lies on disk; without a tokenizer it takes token ids alone."""

    config: "Config"
    params: "Params"
    tokenizer: Any = None


def load(path: str | Path, dtype: "DTypeLike" = "float32") -> Decoder:
    """The decoder of a GGUF file, or of a folder with config.json and safetensors."""
    from lsa_lab.lm import folder, leaves

    path = Path(path)
    config, names, tensors = folder.read(path)
    return Decoder(config, leaves.params(tensors, names, config, dtype))
