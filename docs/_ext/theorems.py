"""Statements of docs/theory stand in boxes, and their proofs are folded below them."""

from docutils import nodes

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
