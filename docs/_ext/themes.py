"""What the experiments found, theme by theme, and what the program prints: text of pages that
changes with the repository. It stands where a page says ``<!-- experiments: THEME -->`` or
``<!-- program: ARGUMENTS -->``.

A finding is the README that the report has written beside the figure, its claims verdict first.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from lsa_lab.harness.report import tables
from lsa_lab.harness.run.laboratory import TIERS, experiments_of

ROOT = Path(__file__).resolve().parents[2]


def experiments(theme: str) -> str:
    """What the ledger's messages say of a theme, then the answer, question, figure, caption and
    verdicts of each of its experiments, in their order."""
    every = experiments_of("experiments").items()
    own = {name: experiment for name, experiment in every if experiment.theme == theme}
    title = next(iter(own.values())).theme_title
    ledger = (ROOT / "figures" / "CLAIMS.md").read_text("utf-8")
    _, _, section = ledger.partition(f"\n### {title}\n\n")
    rows = [_cells(line) for line in section.partition("\n\n")[0].splitlines()[2:]]
    messages = "".join(f"- {message}.\n" for message, *_ in rows)
    findings = "\n".join(_finding(folder) for name in own for folder in _largest(name))
    return f"## In short\n\n{messages}\n{findings}"


def program(arguments: str) -> str:
    """What the program prints, as a block."""
    terminal = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    code = "from lsa_lab.harness.cli.command_line import main; main()"
    words = [sys.executable, "-c", code, *arguments.split()]
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | terminal, capture_output=True, text=True, check=True
    )
    return f"```text\n{done.stdout.strip()}\n```"


def _largest(name: str) -> list[str]:
    """The folder of its largest tier that has a result, if there is one."""
    folders = [name, *(f"{name}/{tier}" for tier in TIERS[2:])]
    return [f for f in folders if (ROOT / "figures" / f / "README.md").exists()][-1:]


def _finding(folder: str) -> str:
    text = (ROOT / "figures" / folder / "README.md").read_text("utf-8")
    _, question, _, caption, _ = text.split("\n\n", 4)
    counts, table = re.search(r"^## (Claims: .*)\n\n((?:\|.*\n)+)", text, re.MULTILINE).groups()
    rows = [_cells(line) for line in table.splitlines()]
    verdict_first = tables.markdown([(row[-1], row[0], row[2]) for row in rows])
    answer, stop, rest = caption.replace("\n", " ").partition(". ")
    place, (name, _, tier) = f"/figures/{folder}", folder.partition("/")
    words = f"run {name} --tier {tier}" if tier else f"run {name}"
    return f"""({name})=
## {answer}{stop.strip()}

`{name}`: {question}{f" At the {tier} tier." if tier else ""}

![{question.strip("*")}]({place}/figure.png)

{rest}

<details><summary>{counts}</summary>

{verdict_first}
</details>

[Sources, and where the numbers come from]({place}/README.md). [Vector figure]({place}/figure.pdf),
[data]({place}/result.nc), [configuration]({place}/config.json). To compute it again, beside what is
committed: `.venv/bin/lsa-lab {words} --out out`
"""


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line)[1:-1]
    return [cell.strip().replace("\\|", "|") for cell in cells]
