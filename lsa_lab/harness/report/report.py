"""What the results say: a page and a ledger for all, a README for each, the front page's table."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lsa_lab.harness.draw import pictures
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.report import gallery, pages
from lsa_lab.harness.report.cells import Index
from lsa_lab.harness.report.gallery import pixels
from lsa_lab.harness.report.headlines import first_of
from lsa_lab.harness.report.levels import Levels
from lsa_lab.harness.report.result import Result
from lsa_lab.harness.run import records
from lsa_lab.harness.run.folders import folder_of
from lsa_lab.harness.run.laboratory import TIERS, Experiment, constant_of
from lsa_lab.harness.run.runner import draw, load
from lsa_lab.judging.claims import evidence, judge
from lsa_lab.judging.statistics import confidence_or
from lsa_lab.store import results

BEGIN = "<!-- findings: begin -->"
END = "<!-- findings: end -->"
_ABSENT = "not recorded"


def collect(experiments: Iterable[Experiment], root: Path) -> tuple[list[Result], dict[str, str]]:
    """Every result of a tier under ``root``, and {name: why} of those that cannot be read.

    Results of a changed configuration have folders of their own and are not looked at.
    """
    whole, broken = [], {}
    for experiment in experiments:
        for tier in TIERS[1:]:
            folder = folder_of(experiment, tier, root)
            if not (folder / "result.nc").exists():
                continue
            try:
                whole.append(_read(root, folder, experiment, tier))
            except Exception as error:  # one broken folder does not stop the others
                why = f"{error}"
                if not isinstance(error, RefusalError):
                    why = (
                        f"{type(error).__name__}: {error}; if its doors have changed, run it again"
                    )
                broken[folder.relative_to(root).as_posix()] = why
    return whole, broken


def largest(whole: Iterable[Result]) -> list[Result]:
    """One result an experiment, that of its largest tier; it knows the smaller ones."""
    tiers: dict[str, list[Result]] = {}
    for result in whole:
        tiers.setdefault(result.name, []).append(result)
    return [replace(last, smaller=tuple(before)) for *before, last in tiers.values()]


def levels_of(package: str, whole: Sequence[Result]) -> Levels:
    """What is read first of a package, beside its results."""
    headlines = constant_of(package, "headlines", "HEADLINES", ())
    messages = constant_of(package, "messages", "MESSAGES", {})
    return Levels(headlines, messages, Index(whole), first_of(package))


def write(
    experiments: Iterable[Experiment],
    root: Path,
    package: str,
    readme: Path | None = None,
    papers: Iterable[Path] = (),
    theory: Iterable[Path] = (),
    findings: Iterable[Path] = (),
) -> dict[str, str]:
    """CLAIMS.md, the pages of figures and a README.md in each folder under ``root``, the table of
    the front page, and the verdicts of the rows that the pages ``papers`` name; what could not be
    read, by folder. The pages ``theory`` say which theorems an experiment rests on; ``findings``
    are linked first."""
    every, broken = collect(experiments, root)
    whole = largest(every)
    levels = levels_of(package, whole)
    broken |= levels.strange
    for result in every:
        experiment, folder = result.experiment, root / result.folder
        config = results.plain(experiment.tiers[result.tier])
        new = records.judgement(experiment, config, result.claims, folder / "result.nc")
        if levels.lines:
            new["family_confidence"] = levels.confidence
        if records.judge_again(folder, new):
            print(folder / "config.json")
    about = gallery.about(package, Path("CITATION.cff"))
    texts = {root / each.folder / "README.md": pages.page(each, about) for each in every}
    texts[root / "CLAIMS.md"] = pages.ledger(whole, broken, levels)
    theorems = gallery.theorems(theory)
    notes = gallery.findings(findings)
    figures = gallery.pages(root, whole, broken, levels, theorems, about, notes)
    texts |= {root / name: text for name, text in figures.items()}
    if readme is not None and readme.exists() and levels.first:
        old = readme.read_text(encoding="utf-8")
        texts[readme] = between_markers(old, pages.front_lines(levels, root))
    for paper in papers:
        text = pages.with_counts(paper.read_text(encoding="utf-8"), levels.index)
        texts[paper] = pages.with_verdicts(text, whole)
    for path, text in texts.items():
        if not path.exists() or path.read_bytes() != text.encode():
            results.write(path, text.encode())
            print(path)
    return broken


def between_markers(text: str, new: str) -> str:
    """``text`` with ``new`` between the two markers; unchanged if it has none."""
    if BEGIN not in text or END not in text:
        return text
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    return f"{before}{BEGIN}\n\n{new}\n{END}{after}"


def _device(facts: Mapping[str, Any]) -> str:
    """What has computed. Several processes may share a device, and a result does not say whether
    they did: devices are counted for one process only."""
    kind, processes = facts["device"], facts.get("process_count", 1)
    own = facts["device_count"] // processes
    if processes == 1:
        return f"{own} x {kind}"
    return f"{kind}, in {processes} processes" + (f" with {own} each" if own > 1 else "")


def _commit(facts: Mapping[str, Any], whose: str) -> str:
    dirty = ", with uncommitted changes" if facts.get(f"{whose}_dirty") else ""
    return facts.get(f"{whose}_commit", _ABSENT) + dirty


def _weights(facts: Mapping[str, Any]) -> str:
    """The models that a result rests on, each with the start of its digest."""
    config, digests = json.loads(facts["config"]), json.loads(facts.get("weights", "{}"))
    if config.get("sha256"):
        digests[str(config.get("model_name", "decoder"))] = str(config["sha256"])
    listed = ", ".join(f"{name} {digest[:16]}" for name, digest in digests.items())
    return listed or ("none" if "package" in facts else _ABSENT)


def _caption(folder: Path) -> str:
    """That of the picture which lies there, as it was drawn."""
    try:
        return " ".join((folder / "caption.txt").read_text(encoding="utf-8").split())
    except FileNotFoundError:
        raise RefusalError(f"{folder} has no caption.txt: draw it again") from None


def _read(root: Path, folder: Path, experiment: Experiment, tier: str) -> Result:
    dataset = load(experiment, tier, folder)
    facts = dataset.attrs
    seconds = facts.get("wall_time")
    versions = json.loads(facts["versions"]).items()
    provenance = {
        "tier": tier,
        "package": f"{experiment.package}, commit {_commit(facts, 'package')}",
        "commit of lsa_lab": _commit(facts, "git"),
        "weights": _weights(facts),
        "device": _device(facts),
        "precision": str(facts["precision"]),
        "versions": ", ".join(f"{package} {version}" for package, version in versions),
        "wall time": "unknown, for it was resumed" if seconds is None else f"{seconds:.1f} s",
        "date": str(facts["date"]),
        "contents": f"sha256 {facts['contents_sha256']}",
    }
    for name, own in json.loads(facts.get("parts", "{}")).items():
        words = f"computed by itself, {own['date']}, commit {own.get('git_commit', 'unknown')}"
        provenance[f"part {name}"] = f"{words}, contents sha256 {own['contents_sha256']}"
    stale = pictures.data_of(folder / "figure.png") not in ("", facts["contents_sha256"])
    if stale or (records.last_run(folder) or {}).get("confidence") != confidence_or(None):
        draw(experiment, folder)  # it is of other data, or has intervals of another confidence
    caption = _caption(folder)
    relative = folder.relative_to(root).as_posix()
    basis = evidence(experiment.door("claims"), dataset)
    claims = judge(*basis)
    more = sorted(folder.glob("appendix*.png"))
    sizes = pixels(folder / "figure.png"), {path.name: pixels(path) for path in more}
    return Result(experiment, tier, relative, caption, claims, basis, provenance, *sizes)
