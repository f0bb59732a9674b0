"""docs/theory and the code agree: references resolve, and statements name what asserts them."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs" / "theory"
FILES = (
    "models",
    "one_layer",
    "descent",
    "flow",
    "clipping",
    "matching",
    "heads",
    "papers",
    "recurrent",
)
CODE = sorted(
    path
    for folder in ("lsa_lab", "experiments", "explorer", "tests", "benchmarks", "notebooks")
    for path in (ROOT / folder).rglob("*.py")
    if path != Path(__file__).resolve()
)
MARKS = re.compile(r"- \*\*(Test|Judged by experiment|Convention|Record)\.\*\*([^*]*)")
REFERENCE = re.compile(r'docs/theory((?:, "[^"]+")+)')


def statements() -> dict[str, str]:
    """Every heading, "2.3 The common map", and its text up to the next one."""
    texts = {}
    for name in FILES:
        _, *parts = re.split(r"^### ", (DOCS / f"{name}.md").read_text("utf-8"), flags=re.MULTILINE)
        for part in parts:
            heading, text = part.split("\n", 1)
            assert heading not in texts, f"two statements are called {heading}"
            texts[heading] = text
    return texts


STATEMENTS = statements()
NAMES = [heading.split(" ", 1)[1] for heading in STATEMENTS]


def unwrapped(path: Path) -> str:
    """The text with its lines joined, a comment's too, so that a name may run over their ends."""
    return re.sub(r"\s*\n\s*(?:#\s)?\s*", " ", path.read_text("utf-8"))


def marks(text: str) -> dict[str, list[str]]:  # of a statement: the names in backticks by mark
    return {mark: re.findall(r"`([^`]+)`", rest) for mark, rest in MARKS.findall(text)}


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_names_are_unique_and_numbers_count_up():
    assert len(set(NAMES)) == len(NAMES)
    numbers = [heading.split()[0] for heading in STATEMENTS]
    counts = [sum(number.startswith(f"{k}.") for number in numbers) for k in range(1, 10)]
    expected = [f"{k}.{i}" for k, count in enumerate(counts, 1) for i in range(1, count + 1)]
    assert numbers == expected


def test_the_index_lists_every_statement():
    links = re.findall(
        r"^- \[([^\]]+)\]\(([^)]+)\)$", (DOCS / "README.md").read_text("utf-8"), re.M
    )
    files = [FILES[int(heading[0]) - 1] for heading in STATEMENTS]
    expected = [
        (heading, f"{name}.md#{anchor(heading)}")
        for heading, name in zip(STATEMENTS, files, strict=True)
    ]
    lines = [f"- [{heading}]({target})" for heading, target in expected]
    lacking = [line for line, pair in zip(lines, expected, strict=True) if pair not in links]
    assert not lacking, "docs/theory/README.md lacks these lines"
    assert links == expected


def test_every_statement_names_what_asserts_it():
    wrong = []
    for heading, text in STATEMENTS.items():
        named = marks(text)
        if not named:
            wrong.append(f"{heading}: no test, no experiment, and no convention or record")
        for test in named.get("Test", []):
            if not (ROOT / test).is_file():
                wrong.append(f"{heading}: {test} does not exist")
        for name in named.get("Judged by experiment", []):
            if not any((ROOT / "experiments").glob(f"**/{name}/config.py")):
                wrong.append(f"{heading}: no experiment {name}")
    assert wrong == []


def test_every_theorem_has_its_statement():
    named = {test for text in STATEMENTS.values() for test in marks(text).get("Test", [])}
    theorems = {str(path.relative_to(ROOT)) for path in ROOT.glob("tests/theorems/test_*.py")}
    assert theorems - named == set(), "name each under - **Test.** of its statement"


def test_statements_refer_to_statements():
    """What stands in double quotation marks is a name, or a word that is quoted from a paper."""
    wrong = []
    for heading, text in STATEMENTS.items():
        quoted = re.findall(r'"([A-Z][^"]*)"', re.sub(r"\s+", " ", text))
        wrong += [f"{heading}: {name}" for name in quoted if name not in {*NAMES, "P-probing"}]
    assert wrong == []


def test_references_in_the_code_resolve():
    wrong = []
    for path in CODE:
        text, where = unwrapped(path), path.relative_to(ROOT)
        references = REFERENCE.findall(text)
        if len(references) != len(re.findall(r"docs/theory(?!/)", text)):
            wrong.append(f'{where}: a reference reads docs/theory, "Name of a statement"')
        names = re.findall(r'"([^"]+)"', "".join(references))
        wrong += [f"{where}: no statement {name!r}" for name in names if name not in NAMES]
        if re.search(r"\b[T]HEORY\b", text):
            wrong.append(f"{where}: cite docs/theory by a statement's name")
    assert wrong == []
