"""Cards on disk: one read back and checked, and the table of all that stand side by side."""

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.card import page, probes
from lsa_lab.card.probe import Probe
from lsa_lab.card.recipe import Tier
from lsa_lab.card.subject import Forward, subject_of
from lsa_lab.store import checkpoints, safe_files

SCHEMA = 1  # of card.json, described in docs/card.md
_FACTS = "name schema tier d noise_std runs trained causal parameters seconds weights_sha256 "
_FACTS += "program_sha256 versions date curves probes sha256"
_SAME = 0.02  # of a risk, on another machine
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


def write_weights(folder: str | Path, params: Any) -> None:
    """``weights.npz``: the leaves of one run's params by their paths."""
    file, leaves = io.BytesIO(), jax.tree.leaves_with_path(params)
    rows: dict[str, Any] = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}
    np.savez(file, **rows)
    safe_files.write(Path(folder) / "weights.npz", file.getvalue())


def unlike(folder: str | Path, forward: Forward, init: Callable) -> list[str]:
    """What differs when the first run's weights are read and its risks computed anew."""
    body = json.loads((Path(folder) / "card.json").read_text("utf-8"))
    leaves, tree = jax.tree.flatten_with_path(jax.eval_shape(init, jax.random.key(0)))
    with np.load(Path(folder) / "weights.npz", allow_pickle=False) as file:
        if lacking := {jax.tree_util.keystr(path) for path, _ in leaves} ^ set(file):
            return [f"{folder}: the weights and init differ in {', '.join(sorted(lacking))}"]
        weights = [jnp.asarray(file[jax.tree_util.keystr(path)]) for path, _ in leaves]
    params = jax.tree.unflatten(tree, weights)
    if checkpoints.digest(params) != body["first_sha256"]:
        return [f"{folder}: weights.npz is not the first run's, whose sum is first_sha256"]
    tier = Tier(**{field.name: body[field.name] for field in dataclasses.fields(Tier)})
    subject = subject_of(forward, params, tier.d, tier.n, body["causal"])
    bench = probes.Bench(subject, [params], tier, tier.law())
    probes.risk_over_bayes(bench)
    (again,), kept = bench.curves["risk"]["runs"], body["curves"]["risk"]["runs"][0]
    far = np.abs(np.log(np.array(again) / np.array(kept, float))).max()
    return [f"{folder}: a risk differs by {far:.2g} of itself"] if far > _SAME else []


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
