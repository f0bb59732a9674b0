"""The notebooks as pages: executed if `make notebooks` has left them so, else as written."""

from pathlib import Path


def pages(root: Path) -> dict[str, str]:
    """Notebook JSON by file name."""
    built = root / ".cache" / "notebooks"
    texts = {}
    for script in sorted(root.glob("notebooks/*.py")):
        executed = built / f"{script.stem}.ipynb"
        fresh = executed.exists() and executed.stat().st_mtime >= script.stat().st_mtime
        texts[executed.name] = executed.read_text("utf-8") if fresh else _unexecuted(script)
    return texts


def _unexecuted(script: Path) -> str:
    import jupytext

    notebook = jupytext.read(script)
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    return jupytext.writes(notebook, fmt="ipynb")
