"""Link names of statements of docs/theory, files of this repository, public names of the library,
and arXiv numbers of papers.

On a forge the pages show the words without links; here Sphinx checks every link.
"""

import functools
import importlib
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("tests", "experiments", "lsa_lab", "benchmarks", "notebooks")
PAPER = r"\b\d{4}\.\d{5}\b"
_ENDS: dict[str, str | None] = {}


@functools.cache
def statements() -> dict[str, tuple[str, str]]:
    """Return the page and anchor of each statement of docs/theory, by name."""
    index = (ROOT / "docs/theory/README.md").read_text("utf-8")
    listed = re.findall(r"\[([^\]]+)\]\((\w+)\.md#([^)]+)\)", index)
    return {name: (f"docs/theory/{page}", anchor) for name, page, anchor in listed}


def library(env) -> dict[str, str | None]:
    """Return the full name for each dotted ending ("trace.predict"), or None if it is ambiguous.

    A name that a package re-exports leads to its definition.
    """
    if _ENDS:
        return _ENDS
    objects, ends = getattr(env, "autoapi_all_objects", {}), {}
    for name in sorted(objects):
        full = _find_definition(name) if objects[name].imported else name
        parts = name.split(".")
        for start in range(len(parts) - 1):
            end = ".".join(parts[start:])
            ends[end] = full if ends.get(end, full) == full else None
    _ENDS.update(ends)  # of this process: those of an earlier build may have moved
    return _ENDS


def _find_definition(name: str) -> str:
    module, _, attribute = name.rpartition(".")
    try:
        value = getattr(importlib.import_module(module), attribute)
        return f"{value.__module__}.{value.__qualname__}"
    except (ImportError, AttributeError):  # a module or a value, or one without its extra
        return name


def link_names(app, document: nodes.document) -> None:
    """Wrap names in references, which later phases of Sphinx resolve and check."""
    page = app.env.docname
    names = library(app.env)
    for link in document.findall(addnodes.pending_xref):
        if link["refdomain"] == "py":
            link["reftarget"] = names.get(link["reftarget"]) or link["reftarget"]
        folder = (ROOT / page).parent / link["reftarget"]
        if link["reftype"] == "myst" and link["refdomain"] is None and folder.is_dir():
            readme = (folder / "README").relative_to(ROOT).as_posix()  # as a forge shows a folder
            link.attributes |= {"refdomain": "doc", "reftarget": readme, "reftargetid": None}
    for literal in list(document.findall(nodes.literal)):
        target = None if _is_linked(literal) else _link_literal(literal.astext(), page, names)
        if target is not None:
            literal.replace_self(target)
            target += nodes.inline("", "", literal)
    _join_lines(document)
    for text in list(document.findall(nodes.Text)):
        if not _is_linked(text) and not isinstance(
            text.parent, nodes.literal | nodes.literal_block
        ):
            _link_text(text, page)


def _link_literal(word: str, page: str, names: dict) -> nodes.Element | None:
    if word.startswith(FOLDERS) and (ROOT / word).is_file() and "://" not in word:
        return addnodes.download_reference("", "", reftarget=f"/{word}", refdoc=page)
    full = names.get(word.partition("(")[0])
    if full and "." in word:
        return addnodes.pending_xref(
            "", refdomain="py", reftype="obj", reftarget=full, refdoc=page, refexplicit=True
        )
    return None


def _link_text(text: nodes.Text, page: str) -> None:
    whole, pieces, end = text.astext(), [], 0
    for match in re.finditer(rf'"([^"]+)"|{PAPER}', whole):
        name = " ".join((match[1] or "").split())
        target = statements().get(name)
        if match[1] is None and page != "docs/bibliography":
            target = ("docs/bibliography", match[0].replace(".", ""))
        if target is not None:
            link = _link_to(*target, page)
            link += nodes.inline("", match[0])
            pieces += [nodes.Text(whole[end : match.start()]), link]
            end = match.end()
    if pieces:
        text.parent.replace(text, [*pieces, nodes.Text(whole[end:])])


def _join_lines(document: nodes.document) -> None:
    """Join the lines of a paragraph into one text, since a name may be split over two lines."""
    for text in list(document.findall(nodes.Text)):
        before = text.parent.index(text) - 1
        if before >= 0 and isinstance(text.parent[before], nodes.Text):
            joined = nodes.Text(text.parent[before].astext() + text.astext())
            text.parent[before : before + 2] = [joined]


def _link_to(document: str, anchor: str, page: str) -> addnodes.pending_xref:
    return addnodes.pending_xref(
        "",
        refdomain="doc",
        reftype="myst",
        reftarget=document,
        reftargetid=anchor,
        refdoc=page,
        refexplicit=True,
    )


def _is_linked(node: nodes.Node) -> bool:
    """Return whether the node is inside a link, a heading or a signature."""
    kinds = nodes.reference | addnodes.pending_xref | addnodes.download_reference | nodes.title
    return any(isinstance(node, kinds | addnodes.desc_signature) for node in _parents(node))


def _parents(node: nodes.Node):
    while node.parent is not None:
        node = node.parent
        yield node
