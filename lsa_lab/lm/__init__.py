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
    copy, tokenizer = None, None
    if path.is_dir():
        config, tensors = folder.read(path)
        if (path / "tokenizer.json").exists():
            tokenizer = tokens.from_json((path / "tokenizer.json").read_text("utf-8"))
    else:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        copy = cache_folder() / "decoders" / f"{path.stem}-{digest[:16]}.safetensors"
        if copy.exists():
            return _read_copy(copy, dtype)
        config, tensors, metadata = gguf.read(path)
        if "tokenizer.ggml.tokens" in metadata:
            tokenizer = tokens.from_gguf(metadata)
    params = leaves.read_params(tensors, config, dtype)
    if tokenizer is not None:
        tokens.check_fits(tokenizer, config.vocabulary)
    decoder = Decoder(config, params, tokenizer)
    if copy is not None and dtype == "float32":
        with contextlib.suppress(OSError):  # no room
            _write_copy(copy, decoder)
    return decoder


def _write_copy(path: Path, decoder: Decoder) -> None:
    leaves = {name: leaf for name, leaf in vars(decoder.params).items() if leaf is not None}
    metadata = {"config": json.dumps(dataclasses.asdict(decoder.config))}
    if decoder.tokenizer is not None:
        metadata["tokenizer"] = decoder.tokenizer.rules.to_str()
    write_file(path, import_extra("safetensors.flax", "lm").save(leaves, metadata))


def _read_copy(path: Path, dtype: "np.dtype") -> Decoder:
    from lsa_lab.lm import tokens
    from lsa_lab.lm.config import Config
    from lsa_lab.lm.weights import Params

    with import_extra("safetensors", "lm").safe_open(path, "flax") as file:
        metadata, names = file.metadata(), list(file.keys())
        leaves = {name: file.get_tensor(name).astype(dtype) for name in names}
    document = metadata.get("tokenizer")
    tokenizer = None if document is None else tokens.from_json(document)
    return Decoder(Config(**json.loads(metadata["config"])), Params(**leaves), tokenizer)
