"""The gallery in a browser: it searches, fits a phone and a desk, prints, turns dark, has no dead
link, and asks nobody."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

FIGURES = Path(__file__).resolve().parents[2] / "figures"
GALLERY = (FIGURES / "index.html").as_uri()
CELLS = (FIGURES / "cells.html").as_uri()
QUESTION = "clipping_curves/index.html"
PAGES = ("index.html", "flow.html", "statements.html", "cells.html", QUESTION)
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1440, "height": 900}
LEAST_CONTRAST = 4.5
CONTRASTS = """() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => parts(colour).slice(0, 3).map((value) => value / 255)
    .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor, alpha = parts(colour)[3];
      if (alpha === undefined || alpha > 0) return colour;
    }
    return getComputedStyle(document.body).backgroundColor;
  };
  const own = (node) => [...node.childNodes].some((x) => x.nodeType === 3 && x.data.trim());
  const nodes = [...document.body.querySelectorAll("*")].filter(own);
  return nodes.filter((node) => node.checkVisibility())
    .map((node) => {
      const pair = [light(getComputedStyle(node).color), light(behind(node))].sort((a, b) => b - a);
      return [(pair[0] + 0.05) / (pair[1] + 0.05), node.textContent.trim().slice(0, 40)];
    }).sort((a, b) => a[0] - b[0]).slice(0, 3);
}"""


def rows(page, verdict):
    return page.locator(f"tr.claim[data-verdict={verdict}]:not([hidden])").count()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_for_nothing_but_its_own_files_and_complains_of_nothing(visit, name):
    seen = visit((FIGURES / name).as_uri())
    for image in seen.page.locator("img:visible").all():
        image.scroll_into_view_if_needed()
    broken = "[...document.images].every(i => !i.complete || i.naturalWidth > 0)"
    seen.page.wait_for_function(broken)
    assert all(url.startswith(("file:", "data:")) for url in seen.requests)
    assert seen.complaints == []


def test_every_picture_keeps_its_room_and_says_what_it_shows(visit):
    whole = (
        "[...document.images].every(i => i.getAttribute('width') && i.alt && i.loading == 'lazy')"
    )
    assert visit(GALLERY).page.evaluate(whole)


def test_the_first_screen_shows_pictures(visit):
    page = visit(GALLERY, viewport={"width": 1440, "height": 900}).page
    heights = "[...document.images].filter(i => i.getBoundingClientRect().bottom < 900).length"
    assert page.evaluate(heights) >= 3


def test_figures_are_searched_by_their_words(visit):
    page = visit(GALLERY).page
    cards = page.locator(".card:visible")
    before = cards.count()
    page.fill("[name=words]", "clipping curves")
    assert 0 < cards.count() < before
    assert page.locator("#count").inner_text().startswith(f"{cards.count()} of {before} ")
    assert page.locator("section:visible").count() < page.locator("section").count()


def test_a_verdict_and_a_paper_can_be_left_out(visit):
    seen = visit(CELLS)
    page = seen.page
    words = ("holds", "fails", "undecided", "estimated")
    before = {verdict: rows(page, verdict) for verdict in words}
    assert min(before[verdict] for verdict in words[:3]) > 0
    page.uncheck("[name=verdict][value=holds]")
    assert rows(page, "holds") == 0
    assert rows(page, "fails") == before["fails"]
    left = sum(before.values()) - before["holds"]
    assert page.locator("#count").inner_text().startswith(f"{left} ")
    for paper in ("A1", "A2", "A3", "none"):
        page.uncheck(f"[name=paper][value={paper}]")
    visible = page.locator("tr.claim:not([hidden])")
    assert 0 < visible.count() < left
    assert page.locator("tr.claim:not([hidden]):not([data-paper=A4])").count() == 0
    assert seen.complaints == []


def test_without_scripts_all_claims_are_there_and_no_dead_filter(visit):
    page = visit(CELLS, java_script_enabled=False).page
    assert page.locator("#filters").is_hidden()
    assert page.locator("tr.claim").last.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_the_screen_and_every_word_stands_out(visit, name, size, scheme):
    page = visit((FIGURES / name).as_uri(), viewport=size, color_scheme=scheme).page
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    (least, word), *_ = page.evaluate(CONTRASTS)
    assert least >= LEAST_CONTRAST, word


def test_no_link_of_any_page_is_dead():
    pages = [*FIGURES.glob("*.html"), *FIGURES.glob("*/index.html")]
    assert len(pages) > 50
    for page in pages:
        text = page.read_text("utf-8")
        for address in set(re.findall(r' (?:href|src)="([^"]+)"', text)):
            parts = urlsplit(address)
            if parts.scheme:
                continue
            target = page.parent / unquote(parts.path) if parts.path else page
            assert target.exists(), f"{page}: {address}"
            if parts.fragment and target.suffix == ".html":
                assert f'id="{parts.fragment}"' in target.read_text("utf-8"), f"{page}: {address}"


def test_a_question_shows_its_answer_its_figure_and_what_follows_on_the_first_screen(visit):
    page = visit((FIGURES / QUESTION).as_uri(), viewport=DESK).page
    tops = [page.locator(each).bounding_box() for each in ("h1", "article img", "text=So what.")]
    assert all(box["y"] + box["height"] < DESK["height"] for box in tops)
    assert page.locator("details[open]").count() == 0


def test_a_small_picture_leads_to_its_place_and_opens_whole(visit):
    page = visit(GALLERY, viewport=PHONE).page
    page.locator(".card a").first.click()
    assert re.search(r"/\w+/index\.html$", page.url)
    page.locator("article figure a").first.click()
    assert page.url.endswith("/figure.png")


def test_it_is_dark_where_the_reader_wants_it_dark(visit):
    colour = "getComputedStyle(document.body).backgroundColor"
    light, dark = (visit(GALLERY, color_scheme=scheme) for scheme in ("light", "dark"))
    assert light.page.evaluate(colour) == "rgb(255, 255, 255)"
    assert max(map(int, re.findall(r"\d+", dark.page.evaluate(colour)))) < 64


def test_a_question_prints_on_two_pages(visit):
    document = visit((FIGURES / QUESTION).as_uri()).page.pdf(format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", document)) <= 2
