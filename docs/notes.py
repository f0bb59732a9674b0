"""The findings as PDF, each a note of four pages, from the built pages: `make papers`.

python docs/notes.py .cache/docs/html .cache/docs/papers
"""

import shutil
import sys
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

SCALE = 0.78  # type of nine points
# What surrounds a page on a screen lies over its text on paper.
STYLE = """
.skip-to-content, .toc-drawer, .related-pages, .back-to-top, .bottom-of-page, .mobile-header {
    display: none !important;
}
.content { width: 100% !important; max-width: none !important; padding: 0 !important; }
figure, img, table, .math { break-inside: avoid; }
"""


def print_notes(html: Path, folder: Path) -> list[Path]:
    """The PDF files, one a finding."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        sys.exit("No Chromium here: install it by the system's package manager.")
    folder.mkdir(parents=True, exist_ok=True)
    notes = [page for page in sorted(html.glob("docs/findings/*.html")) if page.stem != "README"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        tab = browser.new_page()
        for note in notes:
            tab.goto(note.resolve().as_uri())
            tab.wait_for_function("window.MathJax?.startup?.promise !== undefined")
            tab.evaluate("MathJax.startup.promise")
            tab.wait_for_timeout(500)  # fonts
            tab.add_style_tag(content=STYLE)
            margin = {side: "16mm" for side in ("top", "bottom", "left", "right")}
            tab.pdf(path=folder / f"{note.stem}.pdf", format="A4", margin=margin, scale=SCALE)
        browser.close()
    return [folder / f"{note.stem}.pdf" for note in notes]


if __name__ == "__main__":
    for written in print_notes(*map(Path, sys.argv[1:])):
        print(written)
