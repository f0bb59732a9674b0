"""What the experiments found, theme by theme, and what the program prints: text of pages that
changes with the repository. It stands where a page says ``<!-- experiments: THEME -->`` or
``<!-- program: ARGUMENTS -->``.

The answer to a question has a page of its own, the README that the report has written beside the
figure.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from lsa_lab.harness.run.laboratory import TIERS, experiments_of

ROOT = Path(__file__).resolve().parents[2]


def experiments(theme: str) -> str:
    """What the ledger's messages say of a theme, then the answer and the figure of each of its
    experiments, in their order, which lead to its page."""
    every = experiments_of("experiments").items()
    own = {name: experiment for name, experiment in every if experiment.theme == theme}
    title = next(iter(own.values())).theme_title
    ledger = (ROOT / "figures" / "CLAIMS.md").read_text("utf-8")
    _, _, section = ledger.partition(f"\n### {title}\n\n")
    rows = [_cells(line) for line in section.partition("\n\n")[0].splitlines()[2:]]
    messages = "".join(f"- {message}.\n" for message, *_ in rows)
    answers = "\n".join(_answer(folder_of(name)) for name in own if folder_of(name))
    return f"## In short\n\n{messages}\n## Questions\n\n{answers}"


def program(arguments: str) -> str:
    """What the program prints, as a block."""
    terminal = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    code = "from lsa_lab.harness.cli.command_line import main; main()"
    words = [sys.executable, "-c", code, *arguments.split()]
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | terminal, capture_output=True, text=True, check=True
    )
    return f"```text\n{done.stdout.strip()}\n```"


def folder_of(name: str) -> str:
    """Where the page of an experiment is, that of its largest tier: "depth/paper"; or nothing."""
    folders = [name, *(f"{name}/{tier}" for tier in TIERS[2:])]
    have = [f for f in folders if (ROOT / "figures" / f / "README.md").exists()]
    return have[-1] if have else ""


def _answer(folder: str) -> str:
    text = (ROOT / "figures" / folder / "README.md").read_text("utf-8")
    heading, question, *_ = text.split("\n\n", 2)
    place, alt = f"/figures/{folder}", question.split("**")[1]
    return f"""### [{heading.removeprefix("# ")}]({place}/README.md)

{question}

![{alt}]({place}/figure.png)
"""


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line)[1:-1]
    return [cell.strip().replace("\\|", "|") for cell in cells]
