"""Registration: what will be judged, and on which draws, written down before the full run.

``registered.json`` in the folder of the experiments holds, for each experiment, its registrations
in order: date, configuration of the full tier with its seeds, and a hash of each claim. A result is
"registered" in a claim only if the commit that computed it already held that hash, and the result
has the registered configuration.
"""

import datetime
import hashlib
import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lsa_lab.files import write_file
from lsa_lab.lab.catalogue import Experiment, UsageError, relative
from lsa_lab.lab.claims import Claim
from lsa_lab.lab.results import plain_config
from lsa_lab.lab.sources import digest_function

Registration = dict[str, Any]  # date, config, claims: {id: hash}


def read_committed(experiment: Experiment) -> list[Registration]:
    """Return the registrations that the current commit holds; none outside a git repository."""
    name = f"HEAD:./{experiment.registry.relative_to(experiment.root).as_posix()}"
    try:
        answer = subprocess.run(
            ["git", "show", name], cwd=experiment.root, capture_output=True, text=True, timeout=20
        )
    except OSError:
        return []
    return _parse(answer.stdout, name).get(experiment.name, []) if answer.returncode == 0 else []


def _parse(text: str, name: str) -> dict[str, list[Registration]]:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{name} is damaged ({error}): restore it from git") from None


def hash_claim(claim: Claim, package: str) -> str:
    """Return a hash of what decides a claim: statement, quantity, bounds, cells and sample."""
    deciding = [
        claim.statement,
        claim.quantity,
        claim.statistic,
        [claim.at_least, claim.at_most],
        claim.simultaneous,
        claim.cells,
        digest_function(claim.sample, package),
    ]
    return hashlib.sha256(json.dumps(deciding, default=str).encode()).hexdigest()[:16]


def register(experiment: Experiment) -> Registration:
    """Write down the claims and the full configuration of an experiment, to be committed.

    A script may have ``predictions(config)``, a dictionary of numbers that theory gives; they are
    written to ``figures/NAME/prediction.json``. Raises UsageError if nothing changed, or if a seed
    was registered and committed before.
    """
    module, name = experiment.load(), experiment.name
    config = plain_config(module.TIERS["full"])
    hashes = {claim.id: hash_claim(claim, experiment.package) for claim in module.CLAIMS}
    if len(hashes) < len(module.CLAIMS):
        raise UsageError(f"{name}: two claims have one id")
    committed = read_committed(experiment)
    for earlier in committed:
        if (earlier["config"], earlier["claims"]) == (config, hashes):
            raise UsageError(f"{name} is registered as it stands since {earlier['date']}")
    check_seeds(experiment, config, committed)
    today = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    new = {"date": today, "config": config, "claims": hashes}
    path = experiment.registry
    text = path.read_text("utf-8") if path.exists() else "{}"
    _write(path, _parse(text, relative(path)) | {name: [*committed, new]})
    if hasattr(module, "predictions"):
        content = {"date": today, "predictions": module.predictions(module.TIERS["full"])}
        _write(experiment.figures / "prediction.json", content)
    return new


def _write(path: Path, content: Any) -> None:
    write_file(path, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())


def check_seeds(experiment: Experiment, config: Any, earlier: list[Registration]) -> None:
    """Raise UsageError if a seed of a configuration was registered before."""
    used = {seed: entry["date"] for entry in earlier for _, seed in find_seeds(entry["config"])}
    for name, seed in find_seeds(config):
        if seed in used:
            raise UsageError(
                f"{experiment.name}: {name} = {seed} was registered on {used[seed]}; "
                "choose a seed that no registration has used"
            )


def find_seeds(config: Any) -> list[tuple[str, int]]:
    """Return names and values of the seeds in a plain configuration, also in nested parts."""
    seeds = re.findall(r'"(\w*seed)": (-?\d+)', json.dumps(config))
    return [(name, int(seed)) for name, seed in seeds]


def find_current(experiment: Experiment, config: Any) -> Registration:
    """Return the committed registration that a full run with this configuration belongs to.

    Empty if there is none. Raises UsageError if a seed belongs to an older one.
    """
    committed = read_committed(experiment)
    plain = plain_config(config)
    if not committed or committed[-1]["config"] != plain:
        check_seeds(experiment, plain, committed)
        return {}
    return committed[-1]


def find_status(claim: Claim, package: str, facts: Mapping[str, Any]) -> str:
    """Return "registered" if the commit of the run already held the claim as it stands.

    ``facts`` are the attributes of the result.
    """
    registration = json.loads(facts.get("registration", "{}"))
    if not registration or registration["config"] != json.loads(facts["config"]):
        return "exploratory"
    same = registration["claims"].get(claim.id) == hash_claim(claim, package)
    return "registered" if same else "exploratory"
