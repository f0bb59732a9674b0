"""Sphinx reads the repository as it stands: the source folder is its root, so that a link between
two files is the same here and on a forge. `make docs` builds it.
"""

import hashlib
import sys
from collections.abc import Container
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(DOCS / "_ext")]

import docstrings  # noqa: E402
import links  # noqa: E402
import nbformat  # noqa: E402
import notation  # noqa: E402

from lsa_lab import __version__ as release  # noqa: E402
from tools import lessons  # noqa: E402

project = "lsa_lab"
author = "The lsa_lab developers"
copyright = "the lsa_lab developers, Apache-2.0"
extensions = ["autoapi.extension", "myst_nb", "sphinx-mathjax-offline"]
root_doc = "docs/index"
include_patterns = [
    *("docs/**.md", "docs/notebooks/*.ipynb", "CONTRIBUTING.md", "CHANGELOG.md"),
    *("docs/api/**.rst", "figures/CLAIMS.md"),
    *(f"figures/{path.parent.name}/README.md" for path in ROOT.glob("figures/*/claims.json")),
    *("notebooks/README.md", "experiments/weights/README.md"),
]
exclude_patterns = [".*", "*.egg-info", "**/__pycache__", "out", "build", "dist"]
exclude_patterns += ["docs/findings/README.md"]  # its list is that of the index
nitpicky = True
nitpick_ignore_regex = [("py:class", ".*")]  # annotations also name types of other packages
autoapi_dirs = [str(ROOT / "lsa_lab")]
autoapi_root = "docs/api"
autoapi_ignore = ["*/templates/*"]  # what `lsa-lab new` copies
autoapi_options = ["members", "undoc-members", "show-module-summary"]
autoapi_member_order = "bysource"
autoapi_add_toctree_entry = False
add_module_names = False
smartquotes = False  # keys="all" is code
highlight_language = "none"  # a block without a language is a formula
pygments_style = "default"  # comments have a contrast of 4.6
pygments_dark_style = "github-dark"
suppress_warnings = [
    "myst.header",  # statements of docs/theory are ### below #
    "autoapi.python_import_resolution",  # names that a package imports at first use
    "ref.python",  # types of one name in several modules
]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # `make notebooks` has executed them
nb_merge_streams = True  # what a cell prints is one box
TREES = {  # the pages below a page that a forge shows as it is
    "docs/theory/README": [
        f"docs/theory/{name}.md"
        for name in (
            "models",
            "one_layer",
            "descent",
            "flow",
            "clipping",
            "matching",
            "heads",
            "papers",
            "recurrent",
            "neighbours",
            "predictions",
        )
    ]
    + ["docs/bibliography.md"],
    "notebooks/README": [
        f"docs/notebooks/{name}.ipynb"
        for name in (
            "first_theorem",
            "train_and_dissect",
            "does_depth_amplify",
            "design_a_layer",
            "choose_demonstrations",
            "bring_your_own_model",
            "a_language_model",
            "your_own_experiment",
        )
    ],
    "figures/CLAIMS": ["figures/*/README.md"],
    "CONTRIBUTING": ["CHANGELOG.md", "experiments/weights/README.md"],
}
html_theme = "furo"
html_title = f"lsa_lab {release}"
html_static_path = ["_static"]
html_css_files = ["lsa_lab.css"]
html_extra_path = ["_html"]
html_copy_source = False
html_show_sphinx = False


def write_pages(app, config) -> None:
    """Write the pages of the notebooks, before Sphinx looks for pages.

    With the tag "unexecuted" (-t) the notebooks are as written, whatever `make notebooks` left.
    """
    if Path(app.srcdir) != ROOT:  # the pages of a test
        config.autoapi_generate_api_docs = False
        return
    folder = DOCS / "notebooks"
    texts = {}
    for script in lessons.SCRIPTS:
        texts |= _notebooks(script, app.tags)
    folder.mkdir(exist_ok=True)
    for old in {path.name for path in folder.glob("*.*")} - set(texts):
        (folder / old).unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def _notebooks(script: Path, tags: Container[str]) -> dict[str, str]:
    """Return the texts of a lesson and of its solutions by file name.

    The lesson is as `make notebooks` executed it, if wanted and newer than the script.
    """
    built = lessons.BUILT / f"{script.stem}.ipynb"
    lesson, solutions = (nbformat.writes(notebook) for notebook in lessons.read(script))
    is_wanted = "unexecuted" not in tags and built.exists()
    if is_wanted and built.stat().st_mtime >= script.stat().st_mtime:
        lesson = built.read_text("utf-8")
    return {built.name: lesson, f"{script.stem}_solutions.ipynb": solutions}


def list_below(app, docname: str, source: list[str]) -> None:
    """Add the pages below this one to the sidebar."""
    below = [path for pattern in TREES.get(docname, ()) for path in sorted(ROOT.glob(pattern))]
    if below:
        listed = "\n".join(f"/{path.relative_to(ROOT).with_suffix('')}" for path in below)
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"


def setup(app) -> None:
    # Where names lead is kept with each page that was read: another map reads every page again.
    statements = repr(links.statements()).encode()
    app.add_config_value("names_lead_to", hashlib.sha256(statements).hexdigest(), "env")
    app.connect("autodoc-process-docstring", docstrings.clean_docstring)
    app.connect("config-inited", write_pages)
    app.connect("source-read", list_below)
    app.connect("doctree-read", links.link_names, priority=100)
    app.connect("doctree-read", notation.set_in_boxes)
    app.connect("doctree-read", notation.set_notation)
