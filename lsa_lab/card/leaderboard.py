"""Cards on disk: read a saved card, and write the table of a folder of cards."""

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

from lsa_lab.card import page, summary
from lsa_lab.files import write_file

SCHEMA = 2  # of card.json, described in docs/card.md
_LAYERS = "lsa_lab.card.layers:"  # addresses of the committed layers


def hash_card(body: dict[str, Any]) -> str:
    """Return the sha256 of the contents of card.json without its entry "sha256"."""
    contents = {key: value for key, value in body.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


def read_card(folder: str | Path) -> dict[str, Any]:
    """Return the contents of the card in a folder; raise ValueError if it is not as it was saved.

    Checks the schema, the checksum and the name.
    """
    path = Path(folder) / "card.json"
    try:
        body: Any = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"name a folder that holds a card, not {folder}: {error}") from None
    if not isinstance(body, dict) or body.get("schema") != SCHEMA:
        raise ValueError(f"{path} is no card of schema {SCHEMA}, which this version reads")
    if hash_card(body) != body.get("sha256"):
        raise ValueError(f"{path} was changed after it was written: its checksum is not sha256")
    if (name := Path(folder).resolve().name) != body["name"]:
        raise ValueError(f"{path} is the card of {body['name']}: rename the folder {name}")
    return body


def write_leaderboard(root: str | Path) -> Path:
    """Write ``index.html``, the table of the valid cards of regression in ``root``.

    Committed layers without a folder there are listed too. In the clone's own figures/cards the
    rows of its layers are written into the package, and if they changed, the pages with the ranks.
    """
    root, bodies = Path(root), []
    for path in sorted(root.glob("*/card.json")):
        with contextlib.suppress(ValueError):  # a card of an earlier schema, or one that changed
            bodies.append(read_card(path.parent))
    bodies = [body for body in bodies if body["task"] == "regression"]
    rows = [{**summary.make_row(body), "link": f"{body['name']}/index.html"} for body in bodies]
    if root.resolve() == Path(__file__).resolve().parents[2] / "figures/cards":
        own = [body for body in bodies if body.get("code", "").startswith(_LAYERS)]
        text = json.dumps([*map(summary.make_row, own)], indent=0, ensure_ascii=False)
        if text != summary.COMMITTED.read_text("utf-8"):
            write_file(summary.COMMITTED, text.encode())
            for body in own:
                folder = root / body["name"]
                content = page.render_page("card", body, folder=folder)
                write_file(folder / "index.html", content.encode())
    names = {row["name"] for row in rows}
    rows += [row for row in summary.load_committed() if row["name"] not in names]
    write_file(root / "index.html", page.render_page("table", rows=rows).encode())
    return root / "index.html"
