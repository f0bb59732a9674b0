"""Decoders from disk, for the analyses and selections of this library.

``import lsa_lab.lm`` does not need jax, nor do its texts, sources and readings.
"""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lsa_lab.files import cache_folder

if TYPE_CHECKING:
    from jax.typing import DTypeLike

    from lsa_lab.lm.config import Config
    from lsa_lab.lm.tokens import Tokenizer
    from lsa_lab.lm.weights import Params

__all__ = ["Decoder", "load", "save"]


class Decoder(NamedTuple):
    """A language model; without a tokenizer, it takes the ids of tokens alone."""

    config: "Config"
    params: "Params"
    tokenizer: "Tokenizer | None"


def load(path: str | Path, dtype: "DTypeLike" = "float32") -> Decoder:
    """Load the decoder of a GGUF file, or of a folder with config.json and safetensors.

    A GGUF file is dequantised once: later loads read a folder in the cache, if a Llama or a Qwen.
    """
    from lsa_lab.lm import folder, gguf, leaves, sources, tokens

    path, dtype = _check_exists(path), leaves.check_dtype(dtype)
    if path.is_dir():
        config, names, tensors = folder.read(path)
        file = path / "tokenizer.json"
        tokenizer = tokens.from_file(file) if file.exists() else None
    else:
        copy = cache_folder() / "decoders" / f"{path.stem}-{sources.hash_model(path)[:16]}"
        if (copy / "model.safetensors").exists():  # the file that is written last
            return load(copy, dtype)
        config, names, tensors, metadata = gguf.read(path)
        tokenizer = tokens.from_gguf(metadata) if "tokenizer.ggml.tokens" in metadata else None
    params = leaves.read_params(tensors, names, config, dtype)
    if tokenizer is not None:
        tokens.check_fits(tokenizer, config.vocabulary)
    decoder = Decoder(config, params, tokenizer)
    if not path.is_dir() and dtype == "float32":
        with contextlib.suppress(ValueError, OSError):  # another family, or no room
            save(copy, decoder)
            return load(copy, dtype)  # the bits of every later load
    return decoder


def save(path: str | Path, decoder: Decoder) -> None:
    """Write a decoder of Llama's or Qwen's kind as a folder that ``load`` reads, in float32."""
    from lsa_lab.lm import folder

    text = None if decoder.tokenizer is None else decoder.tokenizer.rules.to_str()
    folder.write(Path(path), decoder.config, decoder.params, text)


def _check_exists(path: str | Path) -> Path:
    if (path := Path(path)).exists():
        return path
    raise FileNotFoundError(
        f"there is no {path}; expected a GGUF file, or a folder with config.json and safetensors"
    )
