"""Pages of theory: letters lead to the one table of notation, on the first page of docs/theory, all
of them in a box below the title and the first of each that stands alone in a sentence; statements
stand in boxes, and their proofs are folded below them."""

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
        for node in first_alone(document):
            node.replace_self(_link(node.astext()))
        for letter in sorted(letters(formulas), key=lambda each: (each.strip("\\").lower(), each)):
            box += [_link(letter), nodes.Text(" ")]
        title = next(document.findall(nodes.title))
        title.parent.insert(1, box)


def first_alone(document: nodes.document) -> list[nodes.math]:
    """For each letter the first formula of a paragraph that is this letter and nothing else."""
    alone: dict[str, nodes.math] = {}
    for node in document.findall(nodes.math):
        if isinstance(node.parent, nodes.paragraph) and letters(node.astext()) == [node.astext()]:
            alone.setdefault(node.astext(), node)
    return list(alone.values())


def _link(letter: str) -> nodes.reference:
    link = nodes.reference("", "", refuri=f"README.html#{place(letter)}", internal=True)
    link += nodes.math("", letter)
    return link


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


KINDS = {"Hypotheses": "statement", "Statement": "statement", "Proof": "proof"}


def set_in_boxes(app, document: nodes.document) -> None:
    """What begins with **Hypotheses.**, **Statement.** or **Proof.** goes up to the next box, or to
    the list of sources and tests; a forge shows the same pages without boxes."""
    if not app.env.docname.startswith("docs/theory/"):
        return
    for section in list(document.findall(nodes.section)):
        box, children = None, []
        for child in section.children:
            kind = _kind(child)
            if kind and (box is None or kind not in box["classes"]):
                box = nodes.container(classes=[kind])
                children += _folded(box) if kind == "proof" else [box]
            elif isinstance(child, nodes.section | nodes.bullet_list):
                box = None
            if box is None:
                children.append(child)
            else:
                box += child
        section.children = []
        section += children


def _kind(node: nodes.Node) -> str | None:
    """The box that a paragraph belongs to by the bold word that it begins with."""
    inside = node.children if isinstance(node, nodes.paragraph) else []
    first = next((child for child in inside if child.astext()), None)  # MyST begins with no text
    word = first.astext() if isinstance(first, nodes.strong) else ""
    return next((kind for start, kind in KINDS.items() if word.startswith(start)), None)


def _folded(box: nodes.container) -> list[nodes.Node]:
    opening = "<details class='proof'><summary>Proof</summary>"
    return [nodes.raw("", opening, format="html"), box, nodes.raw("", "</details>", format="html")]
