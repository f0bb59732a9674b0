"""The gallery in a browser: it filters, fits a phone, and asks nobody."""

from pathlib import Path

import pytest

GALLERY = (Path(__file__).resolve().parents[2] / "figures" / "index.html").as_uri()
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def gallery(visit):
    return visit(GALLERY)


def rows(page, verdict):
    return page.locator(f"article td.claim[data-verdict={verdict}]:not([hidden])").count()


def test_the_gallery_asks_for_nothing_but_its_own_files_and_complains_of_nothing(gallery):
    page = gallery.page
    for image in page.locator("article figure img").all():
        image.scroll_into_view_if_needed()
    page.wait_for_function("[...document.images].every(i => !i.complete || i.naturalWidth > 0)")
    assert gallery.requests
    assert all(url.startswith(("file:", "data:")) for url in gallery.requests)
    assert gallery.complaints == []


def test_a_verdict_and_a_paper_can_be_left_out(gallery):
    page = gallery.page
    words = ("holds", "fails", "undecided", "estimated")
    before = {verdict: rows(page, verdict) for verdict in words}
    assert min(before[verdict] for verdict in words[:3]) > 0
    page.uncheck("[name=verdict][value=holds]")
    assert rows(page, "holds") == 0
    assert rows(page, "fails") == before["fails"]
    assert (
        page.locator("#count").inner_text().startswith(f"{sum(before.values()) - before['holds']} ")
    )
    for paper in ("A1", "A2", "A3", "none"):
        page.uncheck(f"[name=paper][value={paper}]")
    shown = page.locator("article:not([hidden])")
    assert 0 < shown.count() < page.locator("article").count()
    assert page.locator("article td.claim:not([hidden]):not([data-paper=A4])").count() == 0
    assert gallery.complaints == []


def test_a_phone_shows_it_without_scrolling_sideways_and_opens_a_picture_whole(visit):
    page = visit(GALLERY, viewport=PHONE).page
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.locator("article figure a").first.click()
    assert page.url.endswith("/figure.png")
