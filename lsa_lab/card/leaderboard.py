"""Cards on disk: check a saved card, write weights, and write the leaderboard of a folder."""

import io
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.card.formats import hash_card
from lsa_lab.card.leaderboard_page import render_leaderboard
from lsa_lab.card.page import GROUPS
from lsa_lab.card.probe import Probe
from lsa_lab.files import write_file

SCHEMA = 1  # of card.json, described in docs/card.md
_FACTS = (
    *("name", "schema", "tier", "d", "noise_std", "runs", "trained", "causal", "parameters"),
    *("seconds", "weights_sha256", "program_sha256", "versions", "date", "curves", "probes"),
    *("sha256", "first_sha256", "rates"),
)
_HEADLINE_PROBES = ("nearest rule", "risk over Bayes, 8 times the length")
_OPTIONAL = {"clipping", "steps", "tracking", "precision"}  # groups that some models cannot have


def find_errors(folder: str | Path) -> list[str]:
    """Return the errors in the card of a folder; an empty list if schema and checksum are right."""
    path = Path(folder) / "card.json"
    try:
        body = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return [f"there is no {path}: name a folder that holds a card"]
    except (OSError, ValueError) as error:
        return [f"{path} cannot be read: {error}"]
    probes = body.get("probes", []) if isinstance(body, dict) else None
    if not isinstance(probes, list) or not all(isinstance(probe, dict) for probe in probes):
        return [f"{path} holds no card: write one with Card.save"]
    if missing := [name for name in _FACTS if name not in body]:
        return [f"{path} lacks {', '.join(missing)}: write it with Card.save"]
    if body["schema"] != SCHEMA:
        return [f"{path} has schema {body['schema']}, and this version reads schema {SCHEMA}"]
    errors = [f"{path}{error}" for error in _find_probe_errors(body)]
    if hash_card(body) != body["sha256"]:
        errors.append(f"{path} was changed after it was written: its checksum is not sha256")
    if Path(folder).name != body["name"]:
        errors.append(f"{path} is the card of {body['name']}: name the folder {body['name']}")
    return errors


def _find_probe_errors(body: dict[str, Any]) -> list[str]:
    """Return the missing probes and groups of a card, and the probes with wrong fields."""
    names = {probe.get("name") for probe in body["probes"]}
    required = *_HEADLINE_PROBES, f"risk over Bayes, n = {8 * body['d']}"
    errors = [f" lacks the probe {name!r}" for name in required if name not in names]
    groups = set(GROUPS) - _OPTIONAL - {probe.get("group") for probe in body["probes"]}
    errors += [f" has no probe of the group {group}" for group in sorted(groups)]
    fields, verdicts = set(Probe.__dataclass_fields__), ("holds", "fails", "undecided", "")
    return errors + [
        f": the probe {probe.get('name')!r} has the fields {sorted(probe)}"
        for probe in body["probes"]
        if set(probe) != fields or probe["verdict"] not in verdicts
    ]


def write_weights(folder: str | Path, params: Any) -> None:
    """Write the params of one run to ``weights.npz``, a leaf by its path, bfloat16 as float32."""
    file, leaves = io.BytesIO(), jax.tree.leaves_with_path(params)
    arrays: dict[str, Any] = {jax.tree_util.keystr(path): _to_numpy(leaf) for path, leaf in leaves}
    np.savez(file, **arrays)
    write_file(Path(folder) / "weights.npz", file.getvalue())


def _to_numpy(leaf: Any) -> np.ndarray:
    dtype = jnp.result_type(leaf)
    return np.asarray(leaf, np.float32 if dtype == jnp.bfloat16 else dtype)


def write_leaderboard(root: str | Path) -> Path:
    """Write ``index.html``, the table of all valid cards in the folders of ``root``."""
    folders = sorted(path.parent for path in Path(root).glob("*/card.json"))
    bodies: list[dict[str, Any]] = [
        json.loads((folder / "card.json").read_text("utf-8"))
        for folder in folders
        if not find_errors(folder)
    ]
    path = Path(root) / "index.html"
    write_file(path, render_leaderboard(bodies).encode())
    return path
