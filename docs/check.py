"""Check the links of the built pages.

    python docs/check.py .cache/docs/html

It reads the HTML without Sphinx. Every internal address must be a file, and the part after # an id
in it. Every letter of a formula in docs/theory must lead to the table of notation. Addresses of
other hosts are counted, not fetched; scripts, styles, fonts and images of other hosts are errors.
"""

import re
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_CSS = re.compile(r"@import\s+[\"']?([^\"';]+)|url\(\s*[\"']?([^\"')]+)")
_FETCHED = {"script", "link", "img", "iframe", "source", "video", "audio", "object", "embed"}


class _Page(HTMLParser):
    """The ids of a page, its links, and the addresses that a browser fetches by itself."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.fetched: set[str] = set()
        self.feed(text)

    def handle_data(self, data):
        if self.lasttag == "style":
            self.fetched |= _find_style_addresses(data)

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        addresses = {values[name] for name in ("href", "src", "data") if values.get(name)}
        addresses |= {part.split()[0] for part in values.get("srcset", "").split(",") if part}
        addresses |= _find_style_addresses(values.get("style", ""))
        (self.fetched if tag in _FETCHED else self.links).update(addresses)


def check(folder: Path) -> tuple[list[str], list[str]]:
    """Return the errors, a line each, and the addresses of other hosts."""
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(folder.rglob("*.html"))}
    wrong, outside = [], set()
    for path, page in pages.items():
        where = path.relative_to(folder)
        for address in sorted(page.links | page.fetched):
            parts = urlsplit(address)
            if parts.scheme in ("data", "mailto"):
                continue
            if parts.scheme or parts.netloc:
                outside.add(address)
                if address in page.fetched:
                    wrong.append(f"{where} fetches {address}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                wrong.append(f"{where}: no file {address}")
            elif target in pages and unquote(parts.fragment) not in pages[target].ids | {""}:
                wrong.append(f"{where}: no place {address}")
    for path in sorted(folder.rglob("*.css")):
        addresses = _find_style_addresses(path.read_text("utf-8"))
        remote = [address for address in addresses if re.match(r"(\w+:)?//", address)]
        wrong += [f"{path.relative_to(folder)} fetches {address}" for address in remote]
    return wrong, sorted(outside)


def without_notation(folder: Path) -> list[str]:
    """Return the letters of docs/theory without a link to the table of notation, a line each."""
    sys.path.insert(0, str(Path(__file__).with_name("_ext")))
    import notation

    wrong = []
    for path in sorted((folder / "docs" / "theory").glob("*.html")):
        text = path.read_text("utf-8")
        formulas = re.findall(r'class="math notranslate[^>]*>(.*?)</(?:span|div)>', text, re.DOTALL)
        used = {letter for each in formulas for letter in notation.letters(unescape(each))}
        linked = {address.partition("#")[2] for address in _Page(text).links}
        if path.stem != "README":
            lacking = sorted(letter for letter in used if notation.place(letter) not in linked)
            wrong += [f"docs/theory/{path.name}: no notation of {letter}" for letter in lacking]
    return wrong


def _find_style_addresses(text: str) -> set[str]:
    return {first or second for first, second in _CSS.findall(text)}


if __name__ == "__main__":
    built = Path(sys.argv[1]).resolve()
    errors, hosts = check(built)
    errors += without_notation(built)
    print("\n".join(hosts))
    print(f"{len(hosts)} addresses of other hosts, not fetched; {len(errors)} places are wrong.")
    print("\n".join(errors))
    sys.exit(bool(errors))
