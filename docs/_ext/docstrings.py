"""Docstrings for Sphinx: formulas stand as they are, and the only markup is ``names``."""

import re

_MARKUP = re.compile(r"(``.*?``)|([|*]|_(?=\W|$)|`)")


def to_restructured_text(lines: list[str]) -> list[str]:
    """Return the lines of a docstring as reStructuredText.

    An indented block is a literal block, and so is an example that begins with >>>. Elsewhere the
    signs of formulas (|w|, w*, w_) would be markup, and are escaped.
    """
    result, is_block = [], False
    text = list(map(str.rstrip, lines))
    for i, line in enumerate(text):
        begins = not is_block and (i == 0 or not text[i - 1])
        if begins and line.startswith(("    ", ">>>")):
            result += ["::", ""]
            is_block = True
        elif is_block and line and not line.startswith(("    ", ">>>")) and not text[i - 1]:
            is_block = False
        result.append(f"    {line}" if is_block else _MARKUP.sub(_escape, line))
    return result


def _escape(match: re.Match[str]) -> str:
    return match[1] or f"\\{match[2]}"


def clean_docstring(app, kind, name, value, options, lines: list[str]) -> None:
    """Rewrite the lines of a docstring in place, as an event of autodoc."""
    lines[:] = to_restructured_text(lines)
