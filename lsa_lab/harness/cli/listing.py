"""The tuple EXPERIMENTS in the source of a package: its names, and the source with another one.

The source is edited, not written anew: comments and everything else stay, byte for byte.
"""

import ast


def names_of(source: bytes) -> list[str] | None:
    """The names that EXPERIMENTS lists; None if it is not names in brackets, assigned once."""
    literal = _literal(source)
    return None if literal is None else [ast.literal_eval(entry) for entry in literal.elts]


def with_name(source: bytes, name: str) -> bytes | None:
    """The source with one more name, the last one; None where the names cannot be read."""
    literal = _literal(source)
    if literal is None:
        return None
    text = _insert(source, literal, name)
    return text if names_of(text) == [*(names_of(source) or ()), name] else None


def _literal(source: bytes) -> ast.Tuple | ast.List | None:
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError):
        return None
    values = [
        node.value
        for node in statements
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id == "EXPERIMENTS"
    ]
    value = values[0] if len(values) == 1 else None
    if not isinstance(value, ast.Tuple | ast.List):
        return None
    strings = all(isinstance(x, ast.Constant) and isinstance(x.value, str) for x in value.elts)
    start, close = _offset(source, value), _offset(source, value, end=True) - 1
    bracketed = source[start : start + 1] + source[close : close + 1] in (b"()", b"[]")
    return value if strings and bracketed else None


def _insert(source: bytes, literal: ast.Tuple | ast.List, name: str) -> bytes:
    """One more string after the last, on a line of its own if the closing bracket has one."""
    close = _offset(source, literal, end=True) - 1
    if not literal.elts:
        return source[:close] + f'"{name}",'.encode() + source[close:]
    last = _offset(source, literal.elts[-1], end=True)
    tail = source[last:close]
    comma = b"" if any(line.split(b"#")[0].strip() for line in tail.splitlines()) else b","
    line_start = source.rfind(b"\n", 0, close) + 1
    if source[line_start:close].strip():
        return source[:last] + comma + tail.rstrip() + f' "{name}"'.encode() + source[close:]
    newline = b"\r\n" if source[:line_start].endswith(b"\r\n") else b"\n"
    first = _offset(source, literal.elts[-1])
    indent = source[source.rfind(b"\n", 0, first) + 1 : first]
    indent = b"    " if indent.strip() else indent
    line = indent + f'"{name}",'.encode() + newline
    return source[:last] + comma + source[last:line_start] + line + source[line_start:]


def _offset(source: bytes, node: ast.expr, end: bool = False) -> int:
    """Where a node begins or ends, in bytes."""
    line = (node.end_lineno if end else node.lineno) or 1
    column = (node.end_col_offset if end else node.col_offset) or 0
    return sum(map(len, source.splitlines(keepends=True)[: line - 1])) + column
