"""What every reader of a folder as transformers writes it needs: its JSON, and its safetensors."""

import json
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


def shards(path: Path) -> list[Path]:
    """The safetensors files that make up the model in a folder."""
    whole, index = path / "model.safetensors", path / "model.safetensors.index.json"
    if whole.is_file():
        return [whole]
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
    files = [path / name for name in sorted(set(places.values()))]
    missing = [shard.name for shard in files if not shard.is_file()]
    if missing:
        raise FileNotFoundError(
            f"{path} lacks {', '.join(missing)} of the {len(files)} files that {index.name} names"
            ": fetch them again"
        )
    return files


def _is_beside(name: Any) -> bool:
    return isinstance(name, str) and Path(name).name == name
