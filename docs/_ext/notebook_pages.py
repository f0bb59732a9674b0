"""The notebooks as pages: executed if `make notebooks` has left them so, else as written."""

from pathlib import Path


def pages(root: Path, executed: bool) -> dict[str, str]:
    """Notebook JSON by file name, with outputs if they are wanted and newer than the script."""
    built = root / ".cache" / "notebooks"
    texts = {}
    for script in sorted(root.glob("notebooks/*.py")):
        notebook = built / f"{script.stem}.ipynb"
        wanted = executed and notebook.exists()
        fresh = wanted and notebook.stat().st_mtime >= script.stat().st_mtime
        texts[notebook.name] = notebook.read_text("utf-8") if fresh else _convert(script)
    return texts


def _convert(script: Path) -> str:
    import jupytext

    notebook = jupytext.read(script)
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    return jupytext.writes(notebook, fmt="ipynb")
