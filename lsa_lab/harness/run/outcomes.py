"""What a run left, in words, and how it stands to what lay there before."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run.records import last_run
from lsa_lab.store import results

VERDICTS = {"holds": "hold", "fails": "fail", "undecided": "undecided"}  # one, and many


@dataclass(frozen=True)
class Outcome:
    """What a run left, beside what lay in its folder before."""

    facts: dict
    same: bool | None  # to the bit; None where there was no result
    moved: tuple[str, ...]  # "id: old verdict, now new verdict"

    @property
    def unmoved(self) -> bool:
        return bool(self.same) and not self.moved


def compare(facts: dict, new: Path, old: Path) -> Outcome:
    """The result in the folder ``new`` with ``facts``, beside what lies in ``old``."""
    try:
        earlier = last_run(old)
    except RefusalError:  # what is there is damaged, and replaced
        earlier = None
    if earlier is None or not (old / "result.nc").exists():
        return Outcome(facts, None, ())
    contents = []
    for folder in (old, new):
        try:
            contents.append(results.load(folder / "result.nc").attrs["contents_sha256"])
        except ValueError:  # the old one is damaged
            contents.append(None)
    same = contents[0] == contents[1] and earlier["config"] == facts["config"]
    before, now = earlier["verdicts"], facts["verdicts"]
    moved = [
        f"{key.partition('.')[2]}: {before.get(key, 'not judged')}, now {now.get(key, 'dropped')}"
        for key in dict.fromkeys([*before, *now])
        if before.get(key) != now.get(key)
    ]
    return Outcome(facts, same, tuple(moved))


def comparison(outcomes: Mapping[str, Outcome]) -> list[str]:
    """How the new results stand to those that lay there before, in a few lines."""
    again = {name: outcome for name, outcome in outcomes.items() if outcome.same is not None}
    if not again:
        return ["There was no earlier result to compare with."] if outcomes else []
    other = [name for name, outcome in again.items() if not outcome.same]
    moved = [f"{name}.{text}" for name, outcome in again.items() for text in outcome.moved]
    same = len(again) - len(other)
    lines = [f"{same} of {len(again)} results are the same to the bit as before, their files kept."]
    if other:
        lines.append(f"Other bits: {', '.join(other)}.")
    return [*lines, f"Verdicts that moved: {'; '.join(moved) or 'none'}."]


def describe(facts: dict) -> str:
    """What config.json tells, as "12.3 s cold, 0.9 GB; 3 hold, 1 fail, 0 undecided"."""
    seconds, start, memory = facts["wall_time"], facts.get("start"), facts.get("memory")
    spent = "resumed" if seconds is None else f"{seconds:.1f} s" + (f" {start}" if start else "")
    spent += f", {memory / 1e9:.1f} GB" if memory else ""
    return f"{spent}; {counts(list(facts['verdicts'].values()))}"


def counts(verdicts: list[str]) -> str:
    """As "3 hold, 1 fail, 0 undecided"; estimates without a bound are added."""
    text = ", ".join(f"{verdicts.count(v)} {word}" for v, word in VERDICTS.items())
    estimates = verdicts.count("estimated")
    return f"{text}, {estimates} estimated" if estimates else text
