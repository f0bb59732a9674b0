"""Where results lie: a folder an experiment, in it one for each larger tier and each change."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from lsa_lab.harness.run import process
from lsa_lab.harness.run.laboratory import TIERS, Experiment
from lsa_lab.store import results

FIGURES = Path("figures")  # in the working folder
_LONGEST_NAME = 120  # of the folder of a changed configuration


def reproductions() -> Path:
    """Where what is committed is computed again."""
    return process.cache() / "reproduced"


def folder_of(
    experiment: Experiment, tier: str, out: Path | None = None, config: Any = None
) -> Path:
    """figures/NAME, in it paper; smoke goes to the cache unless ``out`` is given.

    A ``config`` that is not the tier's has a folder of its own in there, named for what differs.
    """
    root = out or (process.cache() / "smoke" if tier == "smoke" else FIGURES)
    folder = root / experiment.name
    folder = folder / tier if tier in TIERS[2:] else folder
    if config is None or config == experiment.tiers[tier]:
        return folder
    return folder / named_for(changes_of(experiment.tiers[tier], config))


def changes_of(declared: Any, config: Any) -> dict[str, Any]:
    """The keys whose values differ, in the config's order; of a part "part.key"."""
    usual = dict(results.named_values(results.plain(declared)))
    here = results.named_values(results.plain(config))
    return {key: value for key, value in here if value != usual.get(key)}


def named_for(changes: Mapping[str, Any]) -> str:
    """A folder's name, as "n=5,lengths=1_2"; where that is long, every key and a digest. A model is
    named by its digest, wherever it lies."""
    if {"model", "model_name", "sha256"} <= set(changes):
        model, digest = changes["model_name"], str(changes["sha256"])[:12]
        rest = {k: v for k, v in changes.items() if k not in ("model", "model_name", "sha256")}
        changes = {"model": f"{model}-{digest}"} | rest
    name = ",".join(f"{key}={_word(value)}" for key, value in changes.items())
    if len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{','.join(changes)[: _LONGEST_NAME - 9]}-{digest}"


def changed_folders(experiment: Experiment, root: Path | None = None) -> list[Path]:
    """The folders of results whose configuration is no tier's, in ``folder_of``'s places."""
    tops = [folder_of(experiment, tier, root) for tier in TIERS]
    inside = {path.parent for top in tops for path in top.glob("[!.]*/config.json")}
    return sorted(inside - set(tops))


def reported_of_others(root: Path, names: Collection[str]) -> list[str]:
    """The experiments of other packages that the ledger under ``root`` tells of."""
    ledger = root / "CLAIMS.md"
    text = ledger.read_text(encoding="utf-8") if ledger.exists() else ""
    told_of = dict.fromkeys(re.findall(r"^\| \[(\w+)", text, re.MULTILINE))
    return [name for name in told_of if name not in names and (root / name).exists()]


def _word(value: Any) -> str:
    """A value as part of a folder's name, [1, 2] as "1_2"."""
    if isinstance(value, list | tuple):
        return "_".join(map(_word, value))
    return re.sub(r"[^\w.+-]+", "-", json.dumps(value).strip('"'))
