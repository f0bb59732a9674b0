"""Docstrings for Sphinx: formulas stand as they are, and the only markup is ``names``."""

import re

_MARKUP = re.compile(r"(``.*?``)|([|*]|_(?=\W|$)|`)")


def to_restructured_text(lines: list[str]) -> list[str]:
    """Return the lines of a docstring as reStructuredText.

    Indented lines are a literal block, and so is an example that begins with >>>. Elsewhere the
    signs of formulas (|w|, w*, w_) would be markup, and are escaped.
    """
    result, is_block = [], False
    for line in map(str.rstrip, lines):
        if line:
            begins_block = line.startswith(("    ", ">>>")) or (is_block and bool(result[-1]))
            if begins_block and not is_block:
                result += ["", "::", ""]
            elif is_block and not begins_block:
                result.append("")
            is_block = begins_block
        result.append(f"    {line}" if line and is_block else _MARKUP.sub(_escape, line))
    return result


def _escape(match: re.Match[str]) -> str:
    return match[1] or f"\\{match[2]}"


def clean_docstring(app, kind, name, value, options, lines: list[str]) -> None:
    """Rewrite the lines of a docstring in place, as an event of autodoc."""
    lines[:] = to_restructured_text(lines)
