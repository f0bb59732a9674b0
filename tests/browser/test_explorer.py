"""The explorer in a browser: it opens, a slider moves the plot, and it asks nobody else."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120  # seconds, of a machine that does much else


@pytest.fixture
def address(browser, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    where = ["--host", "127.0.0.1", "--port", str(port), "--headless", "--no-token"]
    command = [sys.executable, "-m", "marimo", "run", "explorer/app.py", *where]
    environment = {"LSA_LAB_CACHE": str(ROOT / ".cache")} | os.environ  # that of the tests
    with (
        (tmp_path / "server.log").open("w") as log,
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log) as server,
    ):
        try:
            wait_for(port, server)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def wait_for(port, server):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the explorer does not answer; its status is {server.poll()}")


@pytest.mark.slow
def test_a_slider_moves_the_plot_and_nobody_else_is_asked(visit, address):
    seen = visit(address, viewport={"width": 1280, "height": 800})
    figure, milliseconds = seen.page.locator("#panels"), 1000 * PATIENCE
    figure.wait_for(timeout=milliseconds)
    before = figure.get_attribute("src")
    assert figure.get_attribute("alt").startswith("After 4 layers")
    seen.page.locator("marimo-slider[data-label*=depth]").get_by_role("slider").press("ArrowRight")
    changed = "picture => document.querySelector('#panels').src !== picture"
    seen.page.wait_for_function(changed, arg=before, timeout=milliseconds)
    assert figure.get_attribute("alt").startswith("After 5 layers")
    assert "depth=5" in seen.page.url
    page = seen.page
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    preset = page.locator("#presets a", has_text="too large").first
    assert "scale=1.6" in preset.get_attribute("href")
    assert "Redrawn in" in seen.page.inner_text("body")
    assert seen.complaints == []
    assert {url for url in seen.requests if not url.startswith((address, "data:"))} == set()
