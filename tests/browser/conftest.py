"""A headless Chromium of the system; where there is none, these tests are skipped and say so."""

import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser():
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium here: install one by the system's package manager to run these")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Visit:
    """A page, with what it said in the console and what it asked for."""

    def __init__(self, browser, **context):
        self.page = browser.new_context(**context).new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._listen)
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _listen(self, message):
        if message.type == "error":
            self.complaints.append(message.text)


@pytest.fixture
def visit(browser):
    visits = []

    def open_page(url, **context):
        visits.append(Visit(browser, **context))
        visits[-1].page.goto(url)
        return visits[-1]

    yield open_page
    for each in visits:
        each.page.context.close()
