"""A page for each module of lsa_lab, read from its source without importing it.

So the comments of a definition, which hold the shapes, stand on the page as they stand in the code.
Docstrings are read as Markdown: formulas are indented blocks, names stand in double backticks.
"""

import ast
import collections
import re
from pathlib import Path

_EXAMPLE = re.compile(r"^( *)>>> .*\n?(?:\1(?!$).*\S.*\n?)*", re.MULTILINE)
_FENCE = ":" * 6


def modules(root: Path) -> dict[str, Path]:
    """The modules of the library by name."""
    named = {}
    for path in (root / "lsa_lab").rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        if "templates" not in parts:  # what `lsa-lab new` copies
            named[".".join(part for part in parts if part != "__init__")] = path
    return {name: path for name, path in sorted(named.items()) if "._" not in name}


def definitions(path: Path) -> dict[str, ast.stmt]:
    """The functions, classes and values that a module defines, without a leading underscore."""
    return dict(_definitions(ast.parse(path.read_text("utf-8"))))


def names(root: Path) -> list[str]:
    """Every public name, dotted: the modules, and what they define."""
    listed = modules(root)
    return [
        *listed,
        *(f"{module}.{name}" for module, path in listed.items() for name in definitions(path)),
    ]


def pages(root: Path) -> dict[str, str]:
    """MyST Markdown by file name, a page a module, and the page that lists them."""
    listed = modules(root)
    texts = {}
    for module, path in listed.items():
        inside = {name: listed[name] for name in listed if name.rpartition(".")[0] == module}
        texts[f"{module}.md"] = _page(module, path, inside, path.relative_to(root))
    return texts


def _page(module: str, path: Path, inside: dict[str, Path], source: Path) -> str:
    text = path.read_text("utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    parts = [f"# {module}\n\n```{{py:module}} {module}\n```\n", _markdown(tree)]
    if inside:
        handed_on = collections.defaultdict(list)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                handed_on[node.module] += node.names
        for name, file in inside.items():
            about = _markdown(ast.parse(file.read_text("utf-8"))).split("\n\n")[0].strip()
            linked = [f"{{py:obj}}`{n.name} <{name}.{n.name}>`" for n in handed_on[name]]
            parts.append(f"- {{py:mod}}`{name}`. {about} {', '.join(linked)}".replace("\n", " "))
        short = [f"{name.rpartition('.')[2]} <{name}>" for name in inside]
        parts.append("\n```{toctree}\n:hidden:\n\n" + "\n".join(short) + "\n```\n")
    parts += [_entry(name, node, lines) for name, node in dict(_definitions(tree)).items()]
    parts.append(f"[`{source}`](/{source})\n")
    return "\n".join(parts)


def _entry(name: str, node: ast.stmt, lines: list[str], fence: str = _FENCE) -> str:
    """A definition as it stands in the source, comments included, and its docstring."""
    shown, inner = lines[node.lineno - 1 : node.end_lineno], []
    kind = "data"
    if isinstance(node, ast.FunctionDef):
        kind = "function" if fence == _FENCE else "method"
        shown = lines[node.lineno - 1 : node.body[0].lineno - 1]
    elif isinstance(node, ast.ClassDef):
        kind, shown = "class", lines[node.lineno - 1 : node.body[0].lineno - 1]
        for field_name, field in _definitions(node):
            if not isinstance(field, ast.FunctionDef):
                shown += lines[field.lineno - 1 : field.end_lineno]
            elif ast.get_docstring(field):
                inner.append(_entry(field_name, field, lines, fence[1:]))
    indent = len(shown[0]) - len(shown[0].lstrip())
    block = "\n".join(line[indent:] for line in shown)
    said = _markdown(node) if kind != "data" else ""
    body = "\n".join([f"```python\n{block}\n```\n", said, *inner])
    return f"{fence}{{py:{kind}}} {name}\n\n{body}\n{fence}\n"


def _definitions(tree: ast.AST):
    for node in tree.body:
        targets = getattr(node, "targets", [getattr(node, "target", node)])
        for target in targets:
            name = getattr(target, "name", getattr(target, "id", "_"))
            if not name.startswith("_"):
                yield name, node


def _markdown(node: ast.AST) -> str:
    """The docstring, its examples in fences."""

    def fence(match: re.Match[str]) -> str:
        example = "\n".join(line[len(match[1]) :] for line in match[0].rstrip("\n").split("\n"))
        return f"```pycon\n{example}\n```\n"

    return _EXAMPLE.sub(fence, ast.get_docstring(node) or "") + "\n"
