"""What the pages show of a result: its question, its answer, its claims, its provenance."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lsa_lab.harness.report.tables import Family, families, marks
from lsa_lab.harness.run.laboratory import Experiment, constant_of
from lsa_lab.harness.run.outcomes import counts
from lsa_lab.judging.claims import Claim, judge
from lsa_lab.judging.statements import Statement

_LATEX = r"[&%$#_{}]"
# Numbers of a Config that the line on the setting names.
_SIZES = "d n m sparsity noise_std noise_var depth layers heads shots runs seeds"


def _gap(low: Claim, high: Claim) -> float:
    """Between two values, in what their intervals allow; NaN of numbers without a spread."""
    reach = math.hypot(low.interval[1] - low.value, high.value - high.interval[0])
    return (high.value - low.value) / reach if 0 < reach < math.inf else math.nan


@dataclass(frozen=True)
class Result:
    """One result.nc, judged."""

    experiment: Experiment
    tier: str
    folder: str  # relative to the report
    caption: str
    claims: list[Claim]
    evidence: tuple[Sequence[Statement], Mapping[str, Any]]  # the statements and their samples
    provenance: dict[str, str]
    pixels: tuple[int, int]  # of the picture
    appendix: dict[str, tuple[int, int]]  # pixels of further pictures, by the names of their files
    smaller: tuple["Result", ...] = ()  # of the same experiment, whose place this one takes

    @property
    def name(self) -> str:
        return self.experiment.name

    @property
    def question(self) -> str:
        return self.experiment.question

    @property
    def title(self) -> str:
        return self.name if self.tier == "laptop" else f"{self.name} ({self.tier})"

    @property
    def answer(self) -> str:
        """The first sentence of the caption."""
        first, stop, _ = self.caption.partition(". ")
        return f"{first}{stop}".strip()

    @property
    def rest(self) -> str:
        """The caption after its first sentence."""
        return self.caption.removeprefix(self.answer).strip()

    @property
    def so_what(self) -> str:
        """What follows from the answer; empty where the package does not say."""
        return constant_of(self.experiment.package, "so_what", "SO_WHAT", {}).get(self.name, "")

    @property
    def setting(self) -> str:
        """What was compared, the docstring of its Config, and at which sizes."""
        config = self.experiment.tiers[self.tier]
        what = (type(config).__doc__ or "").partition("\n\n")[0]
        numbers = {name: getattr(config, name, None) for name in _SIZES.split()}
        sizes = [f"{k} = {v:g}" for k, v in numbers.items() if type(v) in (int, float)]
        models = len(getattr(config, "models", ()))
        sizes += [f"{models} model{'s' * (models > 1)}"] if models else []
        return f"{' '.join(what.split())} {', '.join([f'{self.tier.capitalize()} tier', *sizes])}."

    @property
    def limits(self) -> str:
        """What the answer does not reach: other settings, and cells that are not safe."""
        kinds = {
            "undecided": sum(claim.verdict == "undecided" for claim in self.claims),
            "thin": sum(claim.thin for claim in self.claims),
            "post hoc": sum("†" in marks(claim) for claim in self.claims),
            "without a bound": sum(claim.verdict == "estimated" for claim in self.claims),
        }
        unsafe = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
        text = "Nothing is said of other settings."
        text += f" Of {len(self.claims)} cells these are not safe: {unsafe}." if unsafe else ""
        for each, words in self.beside:
            if words != "none":
                text += f" Verdicts that differ at the {each.tier} tier: {len(words.split(', '))}."
        return text

    def bibtex(self, about: Mapping[str, str]) -> str:
        """An entry for this result; ``about`` has title, author and version of the software."""
        title = re.sub(_LATEX, r"\\\g<0>", self.answer.rstrip("."))
        software = re.sub(_LATEX, r"\\\g<0>", about["title"])
        contents = self.provenance["contents"].removeprefix("sha256 ")
        experiment = re.sub("_", r"\_", f"{self.experiment.package}, {self.name}")
        return (
            f"@misc{{{self.experiment.package}_{self.name},\n"
            f"  title = {{{{{title}}}}},\n"
            f"  author = {{{{{about['author']}}}}},\n"
            f"  year = {{{self.provenance['date'][:4]}}},\n"
            f"  howpublished = {{{software}, version {about['version']}}},\n"
            f"  note = {{{experiment}, {self.tier} tier, contents {contents[:16]}}},\n"
            "}\n"
        )

    @property
    def anchor(self) -> str:
        return f"{self.name}-{self.tier}"

    @property
    def command(self) -> str:
        """What computes it again."""
        words = ["lsa-lab", "run", self.name]
        words += [] if self.tier == "laptop" else ["--tier", self.tier]
        package = self.experiment.package
        return " ".join([*words, *([] if package == "experiments" else ["--package", package])])

    @property
    def counts(self) -> str:
        return counts([claim.verdict for claim in self.claims])

    @property
    def families(self) -> list[Family]:
        return families(self.claims)

    @property
    def notes(self) -> list[str]:
        """What its marks stand for, family by family."""
        everything = [each for family in self.families for each in (family, *family.controls)]
        return [
            f"{family.says}: {what}: {remark}"
            for family in everything
            for name, what in (("revision", "after a look"), ("redrawn", "drawn anew"))
            if (remark := family.remarks(name))
        ]

    def judged_at(self, confidence: float) -> dict[str, Claim]:
        """Its claims by id at another confidence, those that it takes from smaller tiers too."""
        return {
            claim.id: claim
            for each in (*self.smaller, self)
            for claim in judge(*each.evidence, confidence)
        }

    @property
    def claim_of(self) -> dict[str, tuple["Result", Claim]]:
        """The claim by its id, and the result that it stands in: a smaller tier's where this one
        has none of that name."""
        return {claim.id: (each, claim) for each in (*self.smaller, self) for claim in each.claims}

    def apart(self, smaller: "Result") -> tuple[int, int]:
        """How many rows lie apart from the same ones of a smaller tier, and of how many: two values
        that differ by more than the halves of their intervals that face each other, √(h² + h'²).

        Of rows with true intervals one in twenty does, where both tiers ask for the same number.
        What a smaller tier estimates without a verdict, as a pilot does, is left out."""
        others = {c.id: c for c in smaller.claims if c.verdict != "estimated"}
        pairs = [(claim, others[claim.id]) for claim in self.claims if claim.id in others]
        gaps = [_gap(*sorted(pair, key=lambda claim: claim.value)) for pair in pairs]
        finite = [gap for gap in gaps if math.isfinite(gap)]
        return sum(gap > 1 for gap in finite), len(finite)

    @property
    def beside(self) -> list[tuple["Result", str]]:
        """The smaller tiers, each with the verdicts that differ there: "steps holds"."""
        here, pairs = self.claim_of, []
        for each in self.smaller:
            other = [claim for claim in each.claims if claim.verdict != here[claim.id][1].verdict]
            words = ", ".join(f"{claim.id} {claim.verdict}" for claim in other)
            pairs.append((each, words or "none"))
        return pairs
