"""Pages and code agree: references resolve, statements name what asserts them, commands exist."""

import re
from collections.abc import Iterator
from pathlib import Path

from tools.lint.source import Fault, Tree, line_of, spans

THEORY = ("models", "one_layer", "descent", "flow", "clipping", "matching", "heads", "papers")
THEORY += ("recurrent", "neighbours")
MARKS = re.compile(r"- \*\*(Test|Judged by experiment|Convention|Record)\.\*\*([^*]*)")
REFERENCE = re.compile(r'docs/theory((?:, "[^"]+")+)')
FORMULA = re.compile(r"[Σ√ᵀ²⁻∂]|\^\{")
BROKEN = re.compile(r"\\sum\s*(_\{\w+\})?\s*[=+)$]|\\setminus\s*\\vert|\{E\}\s*[-+]|_\{[a-z][A-Z]")
QUOTED = "P-probing"  # a word of a paper, and no statement
SHOWN = ("README.md", "CONTRIBUTING.md", "docs/index.md")
MOST_BYTES = 12 * 1024  # of the front page


def statements(tree: Tree) -> Iterator[tuple[str, str, str, int]]:
    """The page, heading, text and line of every statement of docs/theory, "2.3 The common map"."""
    for name in THEORY:
        path = f"docs/theory/{name}.md"
        page = tree.page(path)
        for part in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
            heading, _, text = part.partition("\n")
            yield path, heading, text, line_of(page, f"### {heading}")


def statement_number(tree: Tree) -> Iterator[Fault]:
    """Names are unique, and the numbers of a page count up."""
    names, counts = set(), dict.fromkeys(THEORY, 0)
    for path, heading, _, line in statements(tree):
        number, _, name = heading.partition(" ")
        page = Path(path).stem
        counts[page] += 1
        expected = f"{THEORY.index(page) + 1}.{counts[page]}"
        if number != expected:
            yield Fault(path, line, f"{heading}: its number ought to be {expected}")
        if name in names:
            yield Fault(path, line, f"two statements are called {name}")
        names.add(name)


def statement_index(tree: Tree) -> Iterator[Fault]:
    """docs/theory/README.md lists every statement, in order."""
    index = "docs/theory/README.md"
    links = re.findall(r"^- \[[^\]]+\]\([^)]+\)$", tree.page(index), re.MULTILINE)
    lines = []
    for path, heading, _, _ in statements(tree):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        lines.append(f"- [{heading}]({Path(path).name}#{anchor})")
    yield from (Fault(index, 1, f"lacks the line {line}") for line in lines if line not in links)
    if sorted(links) == sorted(lines) and links != lines:
        yield Fault(index, 1, "lists the statements in another order than the pages")
    for link in set(links) - set(lines):
        yield Fault(index, line_of(tree.page(index), link), "lists what is no statement")


def statement_mark(tree: Tree) -> Iterator[Fault]:
    """A statement names what asserts it, and every theorem has its statement."""
    asserted = set()
    for path, heading, text, line in statements(tree):
        marks = [(mark, spans(rest)) for mark, rest in MARKS.findall(text)]
        if not marks:
            yield Fault(path, line, f"{heading}: no test, no experiment, no convention or record")
        for mark, names in marks:
            for name in names:
                place = {"Test": name, "Judged by experiment": f"experiments/*/{name}/config.py"}
                if mark in place and not any(tree.root.glob(place[mark])):
                    yield Fault(path, line, f"{heading}: there is no {name}")
                asserted |= {name} if mark == "Test" else set()
    for source in tree.inside("tests/theorems"):
        if source.path not in asserted:
            yield source.fault(1, "name it under - **Test.** of its statement in docs/theory")


def reference(tree: Tree) -> Iterator[Fault]:
    """What is quoted from docs/theory, there and in the code, is the name of a statement."""
    names = {heading.partition(" ")[2] for _, heading, _, _ in statements(tree)}
    for path, heading, text, line in statements(tree):
        quoted = re.findall(r'"([A-Z][^"]*)"', re.sub(r"\s+", " ", text))
        for name in set(quoted) - names - {QUOTED}:
            yield Fault(path, line, f"{heading}: no statement {name!r}")
    for source in tree.files:
        if source.path.startswith("tools/lint/") or source.path == "tests/test_lint.py":
            continue
        # Lines are joined, a comment's too, so that a name may run over their ends.
        text = re.sub(r"\s*\n\s*(?:#\s)?\s*", " ", source.text)
        references = REFERENCE.findall(text)
        line = line_of(source.text, "docs/theory")
        if len(references) != len(re.findall(r"docs/theory(?!/)", text)):
            yield source.fault(line, 'a reference reads docs/theory, "Name of a statement"')
        for name in set(re.findall(r'"([^"]+)"', "".join(references))) - names:
            yield source.fault(line_of(source.text, name), f"no statement {name!r}")
        if re.search(r"\bTHEORY\b", text):
            yield source.fault(line_of(source.text, "THEORY"), "cite a statement by its name")


def front_page(tree: Tree) -> Iterator[Fault]:
    """The front page is a page: shorten FIRST, or the first sentence of a caption."""
    if len(tree.page("README.md").encode()) > MOST_BYTES:
        yield Fault("README.md", 1, f"more than {MOST_BYTES} bytes")


def link(tree: Tree) -> Iterator[Fault]:
    """Links of the pages at the top lead to files; those of docs are followed by make pages."""
    for page in sorted(tree.root.glob("*.md")):
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
            for target in re.findall(r"\]\(([^)#]+)[^)]*\)", line):
                if not target.startswith("http") and not (tree.root / target).exists():
                    yield Fault(page.name, number, f"no file {target}")


def commands(text: str) -> list[str]:
    """The command lines of a page, in blocks of commands and in the text, without comments."""
    fenced = re.findall(r"^```(.*?)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    blocks = [block for language, block in fenced if language in ("", "sh")]
    outside = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    words = [" ".join(span.split()) for span in spans(outside)]
    return lines + [span for span in words if re.match(r"(\.venv/bin/|lsa-lab |make )", span)]


def command(tree: Tree) -> Iterator[Fault]:
    """A shown program exists after make without activation, and a shown target is one."""
    targets = re.findall(r"^([a-z-]+):", tree.page("Makefile"), re.MULTILINE)
    for name in SHOWN:
        text, active = tree.page(name), False
        for line in filter(None, commands(text)):
            active = active or line == "source .venv/bin/activate"
            place = line_of(text, line)
            if line.startswith("make "):
                if line.split()[1] not in targets:
                    yield Fault(name, place, f"{line}: the Makefile has no such target")
            elif not line.startswith(("source ", ".venv/bin/", "http")) and not active:
                yield Fault(name, place, f"{line}: say .venv/bin/, or activate it first")


def formula(tree: Tree) -> Iterator[Fault]:
    """Formulas of the theory, the findings and the papers are set as mathematics, $...$; a sum has
    a summand, from E as a mean no number is taken, and no index takes in a factor."""
    for page in sorted(tree.root.glob("docs/*/*.md")):
        path = str(page.relative_to(tree.root))
        if path.startswith(("docs/theory/", "docs/findings/", "docs/papers/")):
            text = page.read_text("utf-8")
            blocks = re.findall(r"^ {4}\S.*", text, re.MULTILINE)
            for span in (span for span in [*spans(text), *blocks] if FORMULA.search(span)):
                yield Fault(path, line_of(text, span), f"set {' '.join(span.split())} as $...$")
            for slip in BROKEN.finditer(text):
                line = text.count("\n", 0, slip.start()) + 1
                yield Fault(path, line, f"{slip[0]} is damage: Σ is \\Sigma, a norm \\vert")


def notebook(tree: Tree) -> Iterator[Fault]:
    """A notebook has a title, a guess, a row in notebooks/README.md, an exercise with a solution
    and a summary at its end, and a test."""
    for source in tree.inside("notebooks"):
        name, text = Path(source.path).stem, source.text
        last = re.findall(r"^# ## (.+)", text, re.MULTILINE)[-2:]
        is_lesson = "*Lesson " in text
        ends = ["Exercise 8, hard" if is_lesson else "Exercise", "What you have seen"]
        tags = [text.count(f'tags=["{tag}"]') for tag in ("exercise", "check", "solution")]
        seven = re.findall(r"^# (\d)\. \*(?:Easy|Medium|Hard)\.\* ", text, re.MULTILINE)
        parts = {
            "a title": text.startswith("# %% [markdown]\n# # "),
            "a guess": "# **Guess first.** " in text,
            "a row in README.md": f"[{name}]({name}.py) |" in tree.page("notebooks/README.md"),
            "an exercise and a summary at its end": last == ends,
            "seven short exercises, with levels": not is_lesson or seven == list("1234567"),
            "cells of the exercises": tags == [1 + is_lesson] * 3 and 'tags=["setup"]' in text,
            "a test": f'"{name}": [' in tree.page("tests/notebooks/test_exercises.py"),
        }
        yield from (source.fault(1, f"lacks {part}") for part, has in parts.items() if not has)


RULES = (statement_number, statement_index, statement_mark, reference, front_page, link, command)
RULES += (formula, notebook)
