"""What every reader of a folder as transformers writes it needs: its JSON, and its safetensors."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def fields(path: Path) -> dict[str, Any]:
    """The fields of a JSON file."""
    try:
        document = json.loads(path.read_text("utf-8"))
        if not isinstance(document, dict):
            raise ValueError(f"a {type(document).__name__}")
        return document
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON with fields ({error}): fetch it again") from error


def shards(path: Path) -> dict[Path, list[str] | None]:
    """Return the safetensors files of the model in a folder, with the tensors to read from each.

    None stands for all tensors of the file. Where an index exists it decides: other shards may hold
    older copies of a tensor.
    """
    whole, index = path / "model.safetensors", path / "model.safetensors.index.json"
    if whole.is_file():
        return {whole: None}
    if not index.is_file():
        raise FileNotFoundError(
            f"{path} holds neither {whole.name} nor {index.name}; pickles (*.bin, *.pt) are never "
            "read: convert them where you trust them, by save_pretrained of transformers"
        )
    places = fields(index).get("weight_map")
    if not isinstance(places, dict) or not all(_is_beside(name) for name in places.values()):
        raise ValueError(
            f"{index} has no weight_map from tensors to files beside it: fetch it again"
        )
    files: dict[Path, list[str] | None] = {
        path / name: sorted(tensor for tensor in places if places[tensor] == name)
        for name in sorted(set(places.values()))
    }
    missing = [shard.name for shard in files if not shard.is_file()]
    if missing:
        raise FileNotFoundError(
            f"{path} lacks {', '.join(missing)} of the {len(files)} files that {index.name} names"
            ": fetch them again"
        )
    return files


def check_held(shard: Path, held: Sequence[str], names: Sequence[str] | None) -> Sequence[str]:
    """Return the tensors to read from a shard, of those it holds; None stands for all."""
    absent = sorted(set(names or ()) - set(held))
    if absent:
        raise ValueError(f"{shard} lacks {absent[0]}, which its index names: fetch it again")
    return held if names is None else names


def _is_beside(name: Any) -> bool:
    return isinstance(name, str) and Path(name).name == name
