"""Cards on disk: one read back and checked, and the table of all that stand side by side."""

import dataclasses
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.card import page, probes
from lsa_lab.card.probe import Probe
from lsa_lab.card.recipe import Tier
from lsa_lab.card.subject import Forward, subject_of
from lsa_lab.files import write_file
from lsa_lab.training.checkpoints import hash_arrays

SCHEMA = 1  # of card.json, described in docs/card.md
_FACTS = "name schema tier d noise_std runs trained causal parameters seconds weights_sha256 "
_FACTS += "program_sha256 versions date curves probes sha256"
_SAME = 0.02  # of a risk, on another machine
_FACTS += " first_sha256 rates"
_NEEDED = ("nearest rule", "risk over Bayes, 8 times the length")  # of the headline
_OPTIONAL = {"clipping", "steps", "tracking", "precision"}  # groups that some models cannot have


def faults(folder: str | Path) -> list[str]:
    """What is wrong with the card in a folder; nothing if its schema and its sum are right."""
    path = Path(folder) / "card.json"
    try:
        body = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return [f"there is no {path}: name a folder that holds a card"]
    except (OSError, ValueError) as error:
        return [f"{path} cannot be read: {error}"]
    rows = body.get("probes", []) if isinstance(body, dict) else None
    if not isinstance(rows, list) or not all(isinstance(probe, dict) for probe in rows):
        return [f"{path} holds no card: write one by Card.save"]
    if lacking := [name for name in _FACTS.split() if name not in body]:
        return [f"{path} lacks {', '.join(lacking)}: write it by Card.save"]
    if body["schema"] != SCHEMA:
        return [f"{path} has schema {body['schema']}, and this version reads {SCHEMA}"]
    wrong = []
    if page.digest(body) != body["sha256"]:
        wrong.append(f"{path} was changed after it was written: its sum is not sha256")
    names = {probe.get("name") for probe in body["probes"]}
    needed = *_NEEDED, f"risk over Bayes, n = {8 * body['d']}"
    wrong += [f"{path} lacks the probe {name!r}" for name in needed if name not in names]
    without = set(page.GROUPS) - _OPTIONAL - {probe.get("group") for probe in body["probes"]}
    wrong += [f"{path} has no probe of the group {group}" for group in sorted(without)]
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
    """``weights.npz``: the leaves of one run's params by their paths, bfloat16 as float32."""
    file, leaves = io.BytesIO(), jax.tree.leaves_with_path(params)
    rows: dict[str, Any] = {jax.tree_util.keystr(path): _plain(leaf) for path, leaf in leaves}
    np.savez(file, **rows)
    write_file(Path(folder) / "weights.npz", file.getvalue())


def _plain(leaf: Any) -> np.ndarray:
    dtype = jnp.result_type(leaf)
    return np.asarray(leaf, np.float32 if dtype == jnp.bfloat16 else dtype)


def unlike(folder: str | Path, forward: Forward, init: Callable) -> list[str]:
    """What differs when the first run's weights are read and its risks computed anew, and when the
    ratios of all runs are computed from their risks."""
    try:
        return _unlike(folder, forward, init)
    except Exception as error:  # whatever a damaged file leads to
        return [f"{folder} cannot be computed again: {type(error).__name__}: {error}"]


def _unlike(folder: str | Path, forward: Forward, init: Callable) -> list[str]:
    body = json.loads((Path(folder) / "card.json").read_text("utf-8"))
    leaves, tree = jax.tree.flatten_with_path(jax.eval_shape(init, jax.random.key(0)))
    with np.load(Path(folder) / "weights.npz", allow_pickle=False) as file:
        if lacking := {jax.tree_util.keystr(path) for path, _ in leaves} ^ set(file):
            return [f"{folder}: the weights and init differ in {', '.join(sorted(lacking))}"]
        rows = [(jnp.asarray(file[jax.tree_util.keystr(path)]), leaf) for path, leaf in leaves]
    half = jnp.bfloat16
    weights = [row.astype(half) if leaf.dtype == half else row for row, leaf in rows]
    params = jax.tree.unflatten(tree, weights)
    if hash_arrays(params) != body["first_sha256"]:
        return [f"{folder}: weights.npz is not the first run's, whose sum is first_sha256"]
    tier = Tier(**{field.name: body[field.name] for field in dataclasses.fields(Tier)})
    subject = subject_of(forward, params, tier.d, tier.n, body["causal"])
    bench = probes.Bench(subject, [params], tier, tier.law())
    probes.risk_over_bayes(bench)
    (again,), every = bench.curves["risk"]["runs"], np.array(body["curves"]["risk"]["runs"], float)
    far = np.abs(np.log(np.array(again) / every[0])).max()
    wrong = [f"{folder}: a risk differs by {far:.2g} of itself"] if far > _SAME else []
    whole = replace(bench, params=[params] * len(every))
    best = whole.best(whole.batches(1, tier.law()), tier.places, tier.law())
    own = every[:, [body["curves"]["risk"]["places"].index(place) for place in tier.places]]
    values = {probe["name"]: probe["value"] for probe in body["probes"]}
    for place, ratio in zip(tier.places, np.exp(np.log(own / best).mean(0)), strict=True):
        name = f"risk over Bayes, n = {place}"
        if abs(np.log(float(values[name]) / ratio)) > _SAME:
            wrong.append(f"{folder}: {name} is {values[name]}, and by the runs' risks {ratio:.3g}")
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
    write_file(place, page.index(bodies).encode())
    return place
