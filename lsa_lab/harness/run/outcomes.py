"""What a run left, in words, and how it stands to what lay there before."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run.records import last_run
from lsa_lab.judging.claims import Claim
from lsa_lab.store import results

_MOST_FAILING = 6  # sentences that a run prints
VERDICTS = {"holds": "hold", "fails": "fail", "undecided": "undecided"}  # one, and many


@dataclass(frozen=True)
class Outcome:
    """What a run left, beside what lay in its folder before."""

    facts: dict
    same: bool | None  # to the bit; None where there was no result
    moved: tuple[str, ...]  # "id: old verdict, now new verdict"
    answer: tuple[str, ...] = ()  # what it found, and what failed and why


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


def answer(caption: str, claims: Sequence[Claim]) -> tuple[str, ...]:
    """The caption's first sentence, which answers the question; then each sentence that fails, with
    the number that breaks its criterion and how many of its cells do, and what is undecided."""
    first, stop, _ = " ".join(caption.split()).partition(". ")
    families: dict[str, list[Claim]] = {}
    for claim in claims:
        families.setdefault(f"family {claim.family.id}" if claim.family else claim.id, []).append(
            claim
        )
    lines = [f"{first}{stop}".strip()]
    failing = [each for each in families.values() if any(c.verdict == "fails" for c in each)]
    for each in failing[:_MOST_FAILING]:
        worst = [claim for claim in each if claim.verdict == "fails"]
        share = f" ({len(worst)} of {len(each)})" if len(each) > 1 else ""
        says = worst[0].statement.rstrip(".")
        ends = f"{number(worst[0].value)} {interval(worst[0].interval)}"
        lines.append(f"fails{share}: {says}. Its criterion: {worst[0].criterion}; it is {ends}")
    if len(failing) > _MOST_FAILING:
        lines.append(f"and {len(failing) - _MOST_FAILING} sentences more fail")
    undecided = [claim.id for claim in claims if claim.verdict == "undecided"]
    lines += [f"undecided, for too few runs: {', '.join(undecided)}"] if undecided else []
    return tuple(filter(None, lines))


def number(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}"


def interval(ends: tuple[float, float]) -> str:
    """As "[0.1, 0.2]"; "unknown" without an end."""
    if ends == (-math.inf, math.inf):
        return "unknown"
    return f"[{number(ends[0])}, {number(ends[1])}]"


def together(verdicts: Sequence[str]) -> str:
    """The verdict that all have, or "3 of 6", so many hold; estimates have none to count."""
    judged = [verdict for verdict in verdicts if verdict != "estimated"] or verdicts
    if len(set(judged)) == 1:
        return judged[0]
    text = f"{judged.count('holds')} of {len(judged)}"
    unclear = judged.count("undecided")
    return f"{text}, {unclear} undecided" if unclear else text


def numbered(count: int, singular: str, plural: str = "") -> str:
    """As "1 family" or "2 families"; without another word the plural has an s."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def counts(verdicts: list[str]) -> str:
    """As "3 hold, 1 fail, 0 undecided"; estimates without a bound are added."""
    text = ", ".join(f"{verdicts.count(v)} {word}" for v, word in VERDICTS.items())
    estimates = verdicts.count("estimated")
    return f"{text}, {estimates} estimated" if estimates else text
