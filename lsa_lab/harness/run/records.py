"""config.json: what a run was and what it found, read without opening the result.

Verdicts count for the file that they were given to, whose sha256 is ``result``, and under the
criteria that gave them: ``criteria`` is a digest of what each statement measures and of its bounds,
``claims`` of the code that takes samples and judges them. Where today's are others the verdicts are
not shown, and ``report``, which judges every result anew, brings the record up to date. ``record``
is a digest of all the rest. A record of before these were kept is read as it is.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from lsa_lab import judging
from lsa_lab.harness.refusal import RefusalError, refused
from lsa_lab.harness.run.laboratory import Experiment
from lsa_lab.judging.claims import Claim, Verdict
from lsa_lab.judging.statements import METHODS, Statement, cells_of
from lsa_lab.judging.statistics import confidence_or
from lsa_lab.store import provenance, results, safe_files

_ADVICE = "; run the experiment again, or delete the file"
# What decides a verdict, given the samples; the rest of a statement is words.
_DECIDING = ("measured", "statistic", "bounds", "margin", "over", "overlap", "standard_errors")
_NUMBER = int | float | None
_KINDS: dict[str, Any] = {"tier": str, "config": dict, "verdicts": dict, "methods": dict | None}
_KINDS |= dict.fromkeys(("wall_time", "memory", "confidence", "family_confidence"), _NUMBER)
_KINDS |= dict.fromkeys(("start", "criteria", "result", "claims"), str | None)


def record_of(experiment: Experiment, folder: Path, tier: str | None = None) -> dict | None:
    """The record of a folder, None without one, whose result is what its place says: a result of
    this experiment, at this tier if one is named, and the very file that was judged.

    Whoever shows or draws a result asks here. Raises RefusalError with what it is instead.
    """
    facts = last_run(folder)
    if facts is not None:
        check_origin(experiment, facts, folder, tier)
        file = folder / "result.nc"
        if facts.get("result") and file.exists():
            with refused(ValueError, before=f"{experiment.name}: ", after="; run it again"):
                digest = results.digest(file)
            if facts["result"] != digest:
                raise RefusalError(
                    f"{file} is not the file that config.json beside it was written for{_ADVICE}"
                )
    return facts


def check_origin(
    experiment: Experiment, facts: Mapping[str, Any], folder: Path, tier: str | None
) -> None:
    """Refuse what says that it is of another experiment, package or tier."""
    expected = {"experiment": experiment.name, "package": experiment.package, "tier": tier}
    for name, own in expected.items():
        other = facts.get(name, own)
        if own is not None and other != own:
            words = f"{experiment.name} --tier {tier}" if tier else experiment.name
            what = f"{other} tier" if name == "tier" else f"{name} {other}"
            raise RefusalError(f"{folder} holds the {what}: run {words}")


def last_run(folder: Path) -> dict | None:
    """What config.json tells; None where there is none. Raises RefusalError if it is damaged, or if
    a file beside it is no plain one."""
    path = folder / "config.json"
    try:
        safe_files.check_plain(folder)
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except safe_files.NotPlainError as error:
        raise RefusalError(f"{error}: remove it, and run the experiment again") from None
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else "no JSON"
        raise RefusalError(f"{path} cannot be read ({why}){_ADVICE}") from None
    if isinstance(facts, dict) and (schema := facts.get("schema", 1)) != provenance.SCHEMA:
        raise RefusalError(str(provenance.another_schema(schema, path)))
    wrong = _wrong(facts)
    if not wrong and facts.pop("record", None) not in (None, _digest(facts)):  # older ones lack it
        wrong = "it is not as it was written"
    if wrong:
        raise RefusalError(f"{path} is no record of a run: {wrong}{_ADVICE}")
    return facts


def _wrong(facts: Any) -> str:
    """The first thing that is not as ``run`` writes it."""
    if not isinstance(facts, dict):
        return f"a {type(facts).__name__}"
    for name, kind in _KINDS.items():
        if not isinstance(facts.get(name), kind):
            return f"{name} is {facts.get(name)!r}"
    strange = [each for each in facts["verdicts"].values() if each not in get_args(Verdict)]
    return f"a verdict is {strange[0]!r}" if strange else ""


def _digest(facts: dict) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


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


def judges(experiment: Experiment) -> str:
    """A digest of the code that takes the samples and judges them: the claims door with what lies
    beside it and above it in its theme, but for what computes and draws, and the judging room."""
    door = Path(experiment.door("claims").__file__ or "")
    depth = len(experiment.module.split(".")) - 1  # folders within the package
    files = [path for folder in door.parents[:depth] for path in folder.glob("*.py")]
    files = [path for path in files if path.stem not in ("compute", "figure")]
    files += Path(judging.__file__).parent.glob("*.py")
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(path.name.encode() + path.read_bytes())
    return total.hexdigest()[:16]


def judgement(
    experiment: Experiment, config: dict, claims: Sequence[Claim], file: Path
) -> dict[str, Any]:
    """What config.json tells of a judged result: the verdicts, to which file they were given, and
    by what."""
    cells = cells_of(statements(experiment, results.namespace(config)))
    return {
        "result": results.digest(file),
        "criteria": criteria(experiment, config),
        "claims": judges(experiment),
        "confidence": confidence_or(None),
        "methods": {name: METHODS[name] for name in sorted({cell.statistic for cell in cells})},
        "verdicts": {f"{experiment.name}.{claim.id}": claim.verdict for claim in claims},
    }


def is_current(experiment: Experiment, facts: dict) -> bool:
    """Whether the verdicts of a record were given by the criteria of today."""
    try:
        by = judges(experiment)
        same = facts.get("criteria") == criteria(experiment, facts["config"])
        return same and facts.get("claims", by) == by
    except Exception:  # another version's configuration, which today's statements do not fit
        return False


def write(folder: Path, facts: dict) -> None:
    text = json.dumps(facts | {"record": _digest(facts)}, indent=2, ensure_ascii=False)
    results.write(folder / "config.json", f"{text}\n".encode())


def judge_again(folder: Path, new: dict) -> bool:
    """Give the record of a folder the verdicts and criteria ``new``; whether that changed it."""
    facts = last_run(folder)
    if facts is None or facts | new == facts:
        return False
    write(folder, facts | new)
    return True
