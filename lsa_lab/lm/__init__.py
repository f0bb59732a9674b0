"""Decoders from disk, for the analyses and selections of this library.

``import lsa_lab.lm`` does not need jax, nor do its texts, sources and readings.
"""

import contextlib
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lsa_lab.files import cache_folder, import_extra, write_file

if TYPE_CHECKING:
    import numpy as np
    from jax.typing import DTypeLike

    from lsa_lab.lm.config import Config
    from lsa_lab.lm.tokens import Tokenizer
    from lsa_lab.lm.weights import Params

__all__ = ["Decoder", "load"]
_COPY = "decoder.safetensors"


class Decoder(NamedTuple):
    """A language model; without a tokenizer, it takes the ids of tokens alone."""

    config: "Config"
    params: "Params"
    tokenizer: "Tokenizer | None"


def load(path: str | Path, dtype: "DTypeLike" = "float32") -> Decoder:
    """Load the decoder of a GGUF file, or of a folder with config.json and safetensors.

    A GGUF file is dequantised once: later loads read a copy in the cache.
    """
    from lsa_lab.lm import folder, gguf, leaves, tokens

    path, dtype = Path(path), leaves.check_dtype(dtype)
    if not path.exists():
        raise FileNotFoundError(
            f"there is no {path}; expected a GGUF file, or a folder with config.json and "
            "safetensors"
        )
    if path.is_dir():
        config, names, tensors = folder.read(path)
        tokenizer = _read_tokenizer(path)
    else:
        copy = cache_folder() / "decoders" / f"{path.stem}-{_hash_file(path)[:16]}"
        if (copy / _COPY).exists():
            return _read_copy(copy, dtype)
        config, names, tensors, metadata = gguf.read(path)
        tokenizer = tokens.from_gguf(metadata) if "tokenizer.ggml.tokens" in metadata else None
    params = leaves.read_params(tensors, names, config, dtype)
    if tokenizer is not None:
        tokens.check_fits(tokenizer, config.vocabulary)
    decoder = Decoder(config, params, tokenizer)
    if not path.is_dir() and dtype == "float32":
        with contextlib.suppress(OSError):  # no room
            _write_copy(copy, decoder)
    return decoder


def _hash_file(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_tokenizer(folder: Path) -> "Tokenizer | None":
    from lsa_lab.lm import tokens

    file = folder / "tokenizer.json"
    return tokens.from_file(file) if file.exists() else None


def _write_copy(folder: Path, decoder: Decoder) -> None:
    """Write the leaves of Params in float32, the config and the tokenizer."""
    leaves = {name: leaf for name, leaf in vars(decoder.params).items() if leaf is not None}
    config = {"config": json.dumps(dataclasses.asdict(decoder.config))}
    if decoder.tokenizer is not None:
        write_file(folder / "tokenizer.json", decoder.tokenizer.rules.to_str().encode())
    content = import_extra("safetensors.flax", "lm").save(leaves, config)
    write_file(folder / _COPY, content)  # last: then all is there


def _read_copy(folder: Path, dtype: "np.dtype") -> Decoder:
    from lsa_lab.lm.config import Config
    from lsa_lab.lm.weights import Params

    with import_extra("safetensors", "lm").safe_open(folder / _COPY, "flax") as file:
        config = Config(**json.loads(file.metadata()["config"]))
        names = list(file.keys())
        leaves = {name: file.get_tensor(name).astype(dtype) for name in names}
    return Decoder(config, Params(**leaves), _read_tokenizer(folder))
