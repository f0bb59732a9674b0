"""A page of theory has a box of its letters, each a link to the one table of notation, on the first
page of docs/theory."""

import re

from docutils import nodes

TABLE = "docs/theory/README"
_WORDS = r"\\(?:text|operatorname|mathrm|begin|end)\s*\{[^}]*\}"
_GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta kappa lambda mu nu xi pi rho sigma"
)
_GREEK += " tau varphi chi psi omega Gamma Delta Theta Lambda Sigma ell"


def letters(formula: str) -> list[str]:
    """The letters of a formula in TeX, each once: Latin ones, and Greek ones with their stroke;
    accents, operators and words are none."""
    tokens = re.findall(r"\\[A-Za-z]+|[A-Za-z]", re.sub(_WORDS, " ", formula))
    greek = {f"\\{name}" for name in _GREEK.split()}
    return list(dict.fromkeys(token for token in tokens if len(token) == 1 or token in greek))


def place(letter: str) -> str:
    """The id of a letter's row."""
    return f"letter-{letter.removeprefix(chr(92))}"


def set_notation(app, document: nodes.document) -> None:
    """Ids in the table, and on every other page of theory the box below its title."""
    page = app.env.docname
    if page == TABLE:
        _name_rows(document)
    elif page.startswith("docs/theory/"):
        formulas = " ".join(node.astext() for node in document.findall(_is_formula))
        box = nodes.paragraph("", "Notation: ", classes=["notation"])
        for letter in sorted(letters(formulas), key=lambda each: (each.strip("\\").lower(), each)):
            link = nodes.reference("", "", refuri=f"README.html#{place(letter)}", internal=True)
            box += [link, nodes.Text(" ")]
            link += nodes.math("", letter)
        title = next(document.findall(nodes.title))
        title.parent.insert(1, box)


def _name_rows(document: nodes.document) -> None:
    (section,) = (each for each in document.findall(nodes.section) if "notation" in each["ids"])
    before: set[str] = set()
    for row in section.findall(nodes.row):
        formulas = row.children[0].findall(nodes.math)
        names = {letter for node in formulas for letter in letters(node.astext())} - before
        row["ids"] += [place(letter) for letter in sorted(names)]
        before |= names


def _is_formula(node: nodes.Node) -> bool:
    return isinstance(node, nodes.math | nodes.math_block)
