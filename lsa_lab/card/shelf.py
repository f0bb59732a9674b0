"""Cards on disk: one read back and checked, and the table of all that stand side by side."""

import json
from pathlib import Path
from typing import Any

from lsa_lab.card import page
from lsa_lab.card.probe import Probe
from lsa_lab.store import safe_files

SCHEMA = 1  # of card.json, described in docs/card.md
_FACTS = "name schema tier d noise_std runs trained causal parameters seconds weights_sha256 "
_FACTS += "program_sha256 versions date curves probes sha256"
_NEEDED = ("nearest rule", "risk over Bayes, 8 times the length")  # of the headline


def faults(folder: str | Path) -> list[str]:
    """What is wrong with the card in a folder; nothing if its schema and its sum are right."""
    path = Path(folder) / "card.json"
    try:
        body = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        return [f"{path} cannot be read: {error}"]
    if not isinstance(body, dict):
        return [f"{path} holds no card: write one by Card.save"]
    if lacking := [name for name in _FACTS.split() if name not in body]:
        return [f"{path} lacks {', '.join(lacking)}: write it by Card.save"]
    if body["schema"] != SCHEMA:
        return [f"{path} has schema {body['schema']}, and this version reads {SCHEMA}"]
    wrong = []
    if page.digest(body) != body["sha256"]:
        wrong.append(f"{path} was changed after it was written: its sum is not sha256")
    names = {probe.get("name") for probe in body["probes"]}
    wrong += [f"{path} lacks the probe {name!r}" for name in _NEEDED if name not in names]
    fields = set(Probe.__dataclass_fields__)
    wrong += [
        f"{path}: the probe {probe.get('name')!r} has the fields {sorted(probe)}"
        for probe in body["probes"]
        if set(probe) != fields or probe["verdict"] not in ("holds", "fails", "undecided", "")
    ]
    if Path(folder).name != body["name"]:
        wrong.append(f"{path} is the card of {body['name']}: a folder has the name of its card")
    return wrong


def write_index(root: str | Path) -> Path:
    """``index.html`` beside the folders of cards, of those that are right."""
    folders = sorted(path.parent for path in Path(root).glob("*/card.json"))
    bodies: list[dict[str, Any]] = [
        json.loads((folder / "card.json").read_text("utf-8"))
        for folder in folders
        if not faults(folder)
    ]
    place = Path(root) / "index.html"
    safe_files.write(place, page.index(bodies).encode())
    return place
