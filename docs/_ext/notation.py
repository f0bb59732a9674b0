"""Format the pages of docs/theory.

A box below the title links the letters of a page to the table of notation, and so does the first
formula that is one letter. Statements stand in boxes, with their proofs folded below them.
"""

import re

from docutils import nodes

TABLE = "docs/theory/README"
_WORDS = r"\\(?:text|operatorname|mathrm|begin|end)\s*\{[^}]*\}"
_GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta kappa lambda mu nu xi pi rho sigma"
)
_GREEK += " tau varphi chi psi omega Gamma Delta Theta Lambda Sigma ell"


def letters(formula: str) -> list[str]:
    """Return the Latin and Greek letters of a TeX formula, each once.

    Accents, operators and words are left out.
    """
    tokens = re.findall(r"\\[A-Za-z]+|[A-Za-z]", re.sub(_WORDS, " ", formula))
    greek = {f"\\{name}" for name in _GREEK.split()}
    return list(dict.fromkeys(token for token in tokens if len(token) == 1 or token in greek))


def place(letter: str) -> str:
    """Return the id of a letter's row."""
    return f"letter-{letter.removeprefix(chr(92))}"


def set_notation(app, document: nodes.document) -> None:
    """Add ids to the table of notation, and the box of letters to every other page of theory."""
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
    """Return, for each letter, the first formula in a paragraph that is this letter alone."""
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
    """Put paragraphs from **Hypotheses.**, **Statement.** or **Proof.** onwards into boxes.

    A box ends at the next box or at the list of sources and tests. A forge shows no boxes.
    """
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
    """Return the kind of box that the first bold word of a paragraph opens, or None."""
    inside = node.children if isinstance(node, nodes.paragraph) else []
    first = next((child for child in inside if child.astext()), None)  # MyST begins with no text
    word = first.astext() if isinstance(first, nodes.strong) else ""
    return next((kind for start, kind in KINDS.items() if word.startswith(start)), None)


def _folded(box: nodes.container) -> list[nodes.Node]:
    opening = "<details class='proof'><summary>Proof</summary>"
    return [nodes.raw("", opening, format="html"), box, nodes.raw("", "</details>", format="html")]
