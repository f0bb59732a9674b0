"""Decoders from disk, whose walk the analyses and selections of this library take.

``import lsa_lab.lm`` leaves jax out, for those who read texts, fetch sources or judge scores.
"""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jax import Array
    from jax.typing import DTypeLike

    from lsa_lab.lm.config import Config
    from lsa_lab.lm.tokens import Tokenizer
    from lsa_lab.lm.weights import Params

__all__ = ["Decoder", "init", "load", "save", "shape"]


class Decoder(NamedTuple):
    """A language model; without a tokenizer, it takes the ids of tokens alone."""

    config: "Config"
    params: "Params"
    tokenizer: "Tokenizer | None"


def shape(path: str | Path) -> "Config":
    """The shape of the decoder at a path, whose weights stay on disk; errors as in ``load``."""
    from lsa_lab.lm import folder, gguf

    path = _there(path)
    return folder.read(path)[0] if path.is_dir() else gguf.read(path)[0]


def load(path: str | Path, dtype: "DTypeLike" = "float32") -> Decoder:
    """The decoder of a GGUF file, or of a folder with config.json and safetensors.

    A GGUF is dequantised once for every ``dtype``: later loads map a copy in the cache.
    """
    from lsa_lab.lm import converted, folder, leaves, tokens

    path, dtype = _there(path), leaves.check_dtype(dtype)
    if path.is_dir():
        config, names, tensors = folder.read(path)
        params = leaves.params(tensors, names, config, dtype)
        file = path / "tokenizer.json"
        tokenizer = tokens.from_file(file) if file.exists() else None
    else:
        config, params, metadata = converted.load(path, dtype)
        tokenizer = tokens.from_gguf(metadata) if "tokenizer.ggml.tokens" in metadata else None
    if tokenizer is not None:
        tokens.check_fits(tokenizer, config.vocabulary)
    return Decoder(config, params, tokenizer)


def save(path: str | Path, decoder: Decoder) -> None:
    """Write a decoder of Llama's or Qwen's kind as a folder that ``load`` reads, in float32."""
    from lsa_lab.lm import folder

    folder.write(Path(path), decoder.config, decoder.params)
    if decoder.tokenizer is not None:
        decoder.tokenizer.rules.save(str(Path(path) / "tokenizer.json"))


def init(key: "Array", config: "Config", dtype: "DTypeLike" = "float32") -> "Params":
    """Weights before a training, as ``learning.init`` has them; ``training.fit`` does the steps."""
    from lsa_lab.lm import learning

    return learning.init(key, config, dtype)


def _there(path: str | Path) -> Path:
    if (path := Path(path)).exists():
        return path
    raise FileNotFoundError(
        f"there is no {path}; expected a GGUF file, or a folder with config.json and safetensors"
    )
