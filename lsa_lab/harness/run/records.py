"""config.json: what a run was and what it found, read without opening the result.

Verdicts count under the criteria that gave them: ``criteria`` is a digest of what each statement
measures and of its bounds. Where today's are others the verdicts are not shown, and ``report``,
which judges every result anew, brings the file up to date.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run.laboratory import Experiment
from lsa_lab.judging.claims import Claim, Verdict
from lsa_lab.judging.statements import METHODS, Statement, cells_of
from lsa_lab.judging.statistics import confidence_or
from lsa_lab.store import provenance, results

_ADVICE = "; run the experiment again, or delete the file"
# What decides a verdict, given the samples; the rest of a statement is words.
_DECIDING = ("measured", "statistic", "bounds", "margin", "over", "overlap", "standard_errors")
_NUMBER = int | float | None
_OPTIONAL = {"wall_time": _NUMBER, "memory": _NUMBER, "start": str | None, "criteria": str | None}
_OPTIONAL |= {"confidence": _NUMBER, "family_confidence": _NUMBER}


def last_run(folder: Path) -> dict | None:
    """What config.json tells; None where there is none. Raises RefusalError if it is damaged."""
    path = folder / "config.json"
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else "no JSON"
        raise RefusalError(f"{path} cannot be read ({why}){_ADVICE}") from None
    if isinstance(facts, dict) and (schema := facts.get("schema", 1)) != provenance.SCHEMA:
        raise RefusalError(str(provenance.another_schema(schema, path)))
    wrong = _wrong(facts)
    if wrong:
        raise RefusalError(f"{path} is no record of a run: {wrong}{_ADVICE}")
    return facts


def _wrong(facts: Any) -> str:
    """The first thing that is not as ``run`` writes it."""
    if not isinstance(facts, dict):
        return f"a {type(facts).__name__}"
    for name, kind in (("tier", str), ("config", dict), ("verdicts", dict)):
        if not isinstance(facts.get(name), kind):
            return f"{name} is {facts.get(name)!r}"
    for name, optional in _OPTIONAL.items():
        if not isinstance(facts.get(name), optional):
            return f"{name} is {facts[name]!r}"
    strange = [
        verdict for verdict in facts["verdicts"].values() if verdict not in get_args(Verdict)
    ]
    return f"a verdict is {strange[0]!r}" if strange else ""


def statements(experiment: Experiment, config: Any) -> Sequence[Statement]:
    """What an experiment judges at a configuration."""
    return tuple(experiment.door("claims").statements(config))


def criteria(experiment: Experiment, config: dict) -> str:
    """A digest of what decides at a plain configuration: what is measured, how, within which bounds
    and by intervals of which confidence and method."""
    cells = cells_of(statements(experiment, results.namespace(config)))
    rows = sorted([cell.id, *(str(getattr(cell, name)) for name in _DECIDING)] for cell in cells)
    judged_by = [confidence_or(None), *METHODS.items()]
    return hashlib.sha256(json.dumps([rows, judged_by]).encode()).hexdigest()[:16]


def verdicts(experiment: Experiment, claims: Sequence[Claim]) -> dict[str, str]:
    """The verdicts as config.json names them."""
    return {f"{experiment.name}.{claim.id}": claim.verdict for claim in claims}


def judgement(experiment: Experiment, config: dict, claims: Sequence[Claim]) -> dict[str, Any]:
    """What config.json tells of a judged result: the verdicts, and what they were given by."""
    return {
        "criteria": criteria(experiment, config),
        "confidence": confidence_or(None),
        "verdicts": verdicts(experiment, claims),
    }


def is_current(experiment: Experiment, facts: dict) -> bool:
    """Whether the verdicts of a record were given by the criteria of today."""
    try:
        return facts.get("criteria") == criteria(experiment, facts["config"])
    except Exception:  # another version's configuration, which today's statements do not fit
        return False


def write(folder: Path, facts: dict) -> None:
    text = json.dumps(facts, indent=2, ensure_ascii=False)
    results.write(folder / "config.json", f"{text}\n".encode())


def judge_again(folder: Path, new: dict) -> bool:
    """Give the record of a folder the verdicts and criteria ``new``; whether that changed it."""
    facts = last_run(folder)
    if facts is None or facts | new == facts:
        return False
    write(folder, facts | new)
    return True
