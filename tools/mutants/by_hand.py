"""Changes by hand that make the physics, or the keeping of results, wrong: ``changes/*.toml``.

Each names a file of lsa_lab, a passage that stands in it once, what stands there instead, what is
wrong then in one sentence, and the tests that must notice.
"""

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Change:
    """One mutant of the physics."""

    file: str  # below lsa_lab
    wrong: str
    old: str
    new: str
    tests: tuple[str, ...]  # below tests, as pytest names them

    @property
    def module(self) -> Path:
        return Path("lsa_lab") / self.file

    def source(self) -> str:
        """The file with the change; raises ValueError where it does not apply."""
        text = (ROOT / self.module).read_text("utf-8")
        if text.count(self.old) != 1 or self.old == self.new:
            raise ValueError(f"{self.file} has {self.old!r} {text.count(self.old)} times")
        changed = text.replace(self.old, self.new)
        ast.parse(changed)
        return changed


def changes() -> list[Change]:
    """All of them, those of one file together."""
    entries = []
    for path in sorted(Path(__file__).with_name("changes").glob("*.toml")):
        for file, rows in tomllib.loads(path.read_text("utf-8")).items():
            entries += [
                Change(file, **row | {"tests": tuple(row["tests"].split())}) for row in rows
            ]
    return entries
